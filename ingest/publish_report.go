package ingest

import (
	"fmt"
	"io"
	"strings"

	"tailgate/schemas"
)

// PublishReport is what one build of a day did.
type PublishReport struct {
	Day        string `json:"day"`
	Epoch      string `json:"epoch"`
	Segments   int    `json:"segments"`
	Read       int64  `json:"read"`       // rows of the day in the segments
	Rows       int64  `json:"rows"`       // rows of the build
	Duplicates int64  `json:"duplicates"` // Read − Rows − Forgotten
	Conflicts  int64  `json:"conflicts"`  // duplicates with different token counts or outcomes

	// IsComplete: every log was read beyond the day's end by the longest duration. Otherwise requests of the
	// day may still be missing until the logs have come to OpenUntil (UTC).
	IsComplete bool   `json:"complete"`
	OpenUntil  string `json:"open_until"`
	// InFlight requests arrived on the day and ended after it: those that an early cut would lose first.
	InFlight int64 `json:"in_flight"`
	// Late rows came after the last build of the day; Refused ones have another epoch than the day and are
	// left out.
	Late    int64 `json:"late"`
	Refused int64 `json:"refused"`
	// Forgotten rows of the segments are left out: a tombstone names their tenant or session.
	Forgotten int64 `json:"forgotten,omitempty"`

	// ModelsMixed: tokenizers or templates by model (--models) changed on the day. A model that changed shares no
	// blocks across the change.
	ModelsMixed bool `json:"models_mixed"`

	Suspicious Suspicious   `json:"suspicious"`
	Suppressed []Suppressed `json:"suppressed"`

	Shared         Shared `json:"shared"`
	SharedBlocks   int64  `json:"shared_blocks"`   // ids that were kept
	PrivateBlocks  int64  `json:"private_blocks"`  // full blocks that became a run length
	UnknownPrompts int64  `json:"unknown_prompts"` // rows without hash_ids

	Quality Quality `json:"quality"` // by the labels as published

	Spilled int                `json:"spilled"` // files of sorted rows that did not fit in memory
	File    schemas.FileDigest `json:"file"`
}

// Suspicious tells of request ids with more than 16 different starts or sessions: what looks like an id is
// none, and duplicates may have been missed or, where it is a constant, never merge.
type Suspicious struct {
	IDs   int64   `json:"ids"`
	Rows  int64   `json:"rows"`
	Worst []OddID `json:"worst"` // at most 10
}

// OddID is a suspicious request id, as its token.
type OddID struct {
	RequestID string `json:"request_id"`
	Rows      int64  `json:"rows"`
}

// notes words the report for the manifest.
func (r *PublishReport) notes() []string {
	notes := []string{
		fmt.Sprintf("%d rows of %d segments, %d duplicates merged, %d of them with different counts or outcomes",
			r.Read, r.Segments, r.Duplicates, r.Conflicts),
		fmt.Sprintf("%d shared blocks, %d private blocks, %d rows without a known prompt",
			r.SharedBlocks, r.PrivateBlocks, r.UnknownPrompts),
	}
	add := func(when bool, format string, args ...any) {
		if when {
			notes = append(notes, fmt.Sprintf(format, args...))
		}
	}
	add(!r.IsComplete, "open until the logs have come to %s: requests of the day may still be missing", r.OpenUntil)
	add(r.InFlight > 0, "%d requests were in flight at the day's end", r.InFlight)
	add(r.Late > 0, "%d rows came after the last build", r.Late)
	add(r.Refused > 0, "%d rows of another epoch are left out: ingest the whole day under one epoch and publish with --backfill", r.Refused)
	add(r.Forgotten > 0, "%d rows of tenants or sessions that were forgotten are left out", r.Forgotten)
	add(r.ModelsMixed, "the choices of tokenizer and template by model changed on the day: a model that changed shares no blocks across the change")
	add(r.Suspicious.IDs > 0, "%d request ids have more than %d different starts or sessions (%d rows): they may be no ids",
		r.Suspicious.IDs, suspiciousRows, r.Suspicious.Rows)
	for _, s := range r.Suppressed {
		if s.Labels == 0 && !s.Nulled {
			continue
		}
		note := fmt.Sprintf("%s: %d labels of %d rows merged into %q", s.Column, s.Labels, s.Rows, schemas.LabelOther)
		if s.Nulled {
			note += ", which was too small itself and left out"
		}
		notes = append(notes, note)
	}
	s := r.Shared
	notes = append(notes, fmt.Sprintf("prefix reuse within the day: %.2f %% of the blocks, %.2f %% after the cross-tenant rule (lost: %.2f %%)",
		100*s.HitRatio, 100*s.KeptHits, 100*s.LostHits))
	if s.Rows > 0 {
		how := "cut before it, since there are no keys (--keys)"
		if s.Keyed {
			how = "keyed per tenant from there"
		}
		notes = append(notes, fmt.Sprintf("%d rows share a block with too few other tenants and are %s", s.Rows, how))
	}
	return notes
}

// WriteText writes the report for people.
func (r *PublishReport) WriteText(w io.Writer) error {
	_, err := fmt.Fprintf(w, "%s: %d requests, %d bytes\n%s\n", r.Day, r.Rows, r.File.Bytes, strings.Join(r.notes(), "\n"))
	if err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return r.Quality.writeText(w)
}
