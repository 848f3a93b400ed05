package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// resetAgain is the pause before a reset that did nothing is asked for again.
const resetAgain = 250 * time.Millisecond

// errNotReset is what a target says while requests hold blocks of its cache.
var errNotReset = errors.New("it says that it has not reset its cache: requests that hold a part of it are still running")

// Reset posts to where, to empty the caches of the targets before a run: a URL, or a path below every target. Where a target
// answers {"success": false}, as vLLM does while requests hold blocks, it asks again until ctx ends. The error names each
// URL that did not reset.
func (c *Client) Reset(ctx context.Context, where string) error {
	if u, err := url.Parse(where); err == nil && u.Scheme != "" {
		return c.resetAt(ctx, where)
	}
	var errs []error
	for _, t := range c.targets {
		errs = append(errs, c.resetAt(ctx, t.base.JoinPath(strings.TrimPrefix(where, "/")).String()))
	}
	return errors.Join(errs...)
}

func (c *Client) resetAt(ctx context.Context, url string) error {
	err := c.post(ctx, url)
	for errors.Is(err, errNotReset) {
		select {
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.Canceled) {
				return context.Cause(ctx)
			}
			return fmt.Errorf("posting to %s: %w", url, err)
		case <-time.After(resetAgain):
		}
		if again := c.post(ctx, url); again == nil || ctx.Err() == nil {
			err = again
		}
	}
	if err != nil {
		return fmt.Errorf("posting to %s: %w", url, err)
	}
	return nil
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
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("it answers %s", resp.Status)
	}
	const limit = 64 << 10
	body, err := io.ReadAll(io.LimitReader(resp.Body, limit))
	if err != nil {
		return err
	}
	var told struct {
		Success *bool `json:"success"`
	}
	// Most engines answer with a text, older vLLM with nothing: only a plain no is one.
	if json.Unmarshal(body, &told) == nil && told.Success != nil && !*told.Success {
		return errNotReset
	}
	return nil
}
