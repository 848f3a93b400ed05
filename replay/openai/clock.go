package openai

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"tailgate/schemas"
)

// clockEvery is the pause between two questions for the time.
const clockEvery = 5 * time.Millisecond

// ClockOffset measures how far this machine's wall clock is ahead of the first target's: it asks until the whole
// second of the answers' Date header changes, for two seconds at most. Between the last answer of the old second and the
// first of the new one lies the target's full second; the error is half of the time between the first question and
// the second answer.
func (c *Client) ClockOffset(ctx context.Context) (*schemas.ClockOffset, error) {
	const patience = 2 * time.Second
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errTimeout)
	defer cancel()
	var asked, last time.Time
	for {
		began := time.Now()
		date, err := c.date(ctx)
		if err != nil {
			return nil, fmt.Errorf("asking %s for the time: %w", c.targets[0].name, err)
		}
		answered := time.Now()
		if !last.IsZero() && date.After(last) {
			// The target's clock read date at some instant between the two.
			half := answered.Sub(asked) / 2
			return &schemas.ClockOffset{OffsetUs: asked.Add(half).Sub(date).Microseconds(), ErrorUs: half.Microseconds() + 1, Source: "target"}, nil
		}
		asked, last = began, date
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("asking %s for the time: %w", c.targets[0].name, context.Cause(ctx))
		case <-time.After(clockEvery):
		}
	}
}

// date is the Date header of one answer.
func (c *Client) date(ctx context.Context) (time.Time, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.targets[0].base.JoinPath("v1/models").String(), nil)
	if err != nil {
		return time.Time{}, err
	}
	req.Header = c.header.Clone()
	resp, err := c.http.RoundTrip(req)
	if err != nil {
		return time.Time{}, err
	}
	defer resp.Body.Close()
	// Only the connection's reuse is at stake.
	_, _ = io.CopyN(io.Discard, resp.Body, 64<<10)
	date, err := http.ParseTime(resp.Header.Get("Date"))
	if err != nil {
		return time.Time{}, errors.New("the answer has no Date")
	}
	return date, nil
}
