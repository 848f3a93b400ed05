package ingest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"

	"tailgate/schemas"
)

// DayState is what a lake holds of one day, by the footers of its segments.
type DayState struct {
	Day   string
	Epoch string // of the rows that a build takes
	Rows  int64  // of that epoch, before duplicates are merged; 0 = nothing arrived on the day
	// Waiting rows of the epoch are in no segment of the live build; Refused ones have another epoch than the day.
	Waiting int64
	Refused int64
	// IsComplete: every log was read beyond the day's end by the longest duration, to OpenUntil (RFC 3339).
	IsComplete bool
	OpenUntil  string
	// Inputs pins the segments that a build takes, who was forgotten, the epoch and whether the day is complete.
	Inputs string
	Live   *schemas.Manifest // of the live build; nil = the day was not published
	// Fault is why the day cannot be published as it is; nil = it can.
	Fault error
}

// LookAt tells what the lake holds of each of some days, without reading rows. Of o it takes the lake, Backfill and
// MaxDuration. The error is that of a broken segment log or manifest.
func LookAt(ctx context.Context, o PublishOptions, days []string) ([]DayState, error) {
	o = o.withDefaults()
	s := o.lake()
	g, err := gather(ctx, s)
	if err != nil {
		return nil, err
	}
	gone, err := readForgotten(ctx, s)
	if err != nil {
		return nil, err
	}
	out := make([]DayState, 0, len(days))
	for _, day := range days {
		o.Day = day
		at, err := openSite(ctx, &o, s)
		if err != nil {
			return nil, err
		}
		state := DayState{Day: day}
		if state.Live, err = at.readManifest(ctx); err != nil {
			return nil, err
		}
		g.look(&o, &state, &gone)
		out = append(out, state)
	}
	return out, nil
}

func (g *segmentsOf) look(o *PublishOptions, d *DayState, gone *forgotten) {
	in, err := g.day(o, d.Live)
	if errors.Is(err, ErrNoRequests) {
		in = &dayInput{seen: g.logs.seenUs()}
	} else if err != nil {
		d.Fault = err
		return
	}
	r := in.report(o)
	d.Epoch, d.Rows, d.Waiting, d.Refused = in.footer.Epoch, in.rows, in.late, in.refused
	d.IsComplete, d.OpenUntil = r.IsComplete, r.OpenUntil
	if d.Live == nil {
		d.Waiting = d.Rows
	}
	keys := make([]string, len(in.segments))
	for i, s := range in.segments {
		keys[i] = fmt.Sprintf("%s %d %d\n", s.key, s.facts.Next, s.facts.Rows)
	}
	for token := range gone.tokens {
		keys = append(keys, token+"\n")
	}
	slices.Sort(keys)
	h := sha256.New()
	for _, k := range keys {
		io.WriteString(h, k)
	}
	fmt.Fprintf(h, "%s %t\n", d.Epoch, d.IsComplete)
	d.Inputs = hex.EncodeToString(h.Sum(nil))
}
