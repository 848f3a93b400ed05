package openai

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// Reset posts to where, to empty the caches of the targets before a run: a URL, or a path below every target.
func (c *Client) Reset(ctx context.Context, where string) error {
	if u, err := url.Parse(where); err == nil && u.Scheme != "" {
		return c.post(ctx, where)
	}
	var errs []error
	for i := range c.targets {
		errs = append(errs, c.post(ctx, c.targets[i].base.JoinPath(strings.TrimPrefix(where, "/")).String()))
	}
	return errors.Join(errs...)
}

func (c *Client) post(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, nil)
	if err != nil {
		return err
	}
	req.Header = c.header.Clone()
	resp, err := c.http.RoundTrip(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	// Only the connection's reuse is at stake.
	_, _ = io.CopyN(io.Discard, resp.Body, 64<<10)
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("%s answers %s", url, resp.Status)
	}
	return nil
}
