package capacity

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"text/tabwriter"

	"tailgate/internal/fault"
	"tailgate/internal/smallfile"
	"tailgate/internal/yamldoc"
)

// maxEnvelope bounds an envelope in bytes; that of a thousand cells has two million.
const maxEnvelope = 8 << 20

// ReadEnvelope reads an envelope: its YAML or JSON file, or the folder of its test.
func ReadEnvelope(path string) (*Envelope, error) {
	if st, err := os.Stat(path); err == nil && st.IsDir() {
		path = filepath.Join(path, EnvelopeName)
	}
	data, err := smallfile.Data(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.Mark(fmt.Errorf("reading envelope: %w", err), fault.Failure, "an envelope is written when a capacity test has ended")
	}
	if err != nil {
		return nil, fmt.Errorf("reading envelope: %w", err)
	}
	e := &Envelope{}
	text, line, err := yamldoc.ToJSON(data, maxEnvelope) // the decoder of JSON knows embedded structs
	if err != nil {
		return nil, fault.Mark(fmt.Errorf("reading envelope %s:%d: %w", path, line, err), fault.Data, "")
	}
	if err := json.Unmarshal(text, e); err != nil {
		return nil, fault.Mark(fmt.Errorf("reading envelope %s: %w", path, err), fault.Data, "")
	}
	if e.Definition == "" || len(e.Rows) == 0 {
		return nil, fault.Mark(fmt.Errorf("reading envelope %s: it has no rows", path), fault.Data, "")
	}
	return e, nil
}

// RowDiff compares one class and pattern of two envelopes.
type RowDiff struct {
	Class   string  `json:"class"`
	Pattern string  `json:"pattern"`
	Old     float64 `json:"old"` // Safe QPS; 0 = none
	New     float64 `json:"new"`
	// Change is New/Old − 1; 0 where one is missing.
	Change float64 `json:"change"`
	// Beyond tells that the intervals of the two do not meet: more than the error of either search.
	Beyond bool   `json:"beyond_error"`
	Text   string `json:"text"`
}

// Diff compares two envelopes row by row. Notes say why figures may differ for another reason than the cluster.
type Diff struct {
	Rows  []RowDiff `json:"rows"`
	Notes []string  `json:"notes"`
}

// Fell tells that a row of both fell beyond the error of its searches, or lost its rate.
func (d *Diff) Fell() bool {
	return slices.ContainsFunc(d.Rows, func(r RowDiff) bool { return r.Beyond && r.New < r.Old })
}

// DiffEnvelopes compares two envelopes.
func DiffEnvelopes(old, new *Envelope) *Diff {
	d := &Diff{Notes: []string{}}
	if old.TraceSHA256 != new.TraceSHA256 {
		d.Notes = append(d.Notes, "the traces differ: the traffic changed, not only the cluster")
	}
	if !slices.Equal(old.SLOs, new.SLOs) {
		d.Notes = append(d.Notes, "the SLOs differ")
	}
	for _, k := range slices.Concat(required[:], []string{"version", "image"}) {
		if old.Labels[k] != new.Labels[k] {
			d.Notes = append(d.Notes, fmt.Sprintf("label %s changed from %q to %q", k, old.Labels[k], new.Labels[k]))
		}
	}
	row := func(e *Envelope, c Cell) *EnvelopeRow {
		for i := range e.Rows {
			if e.Rows[i].Class == c.Class && e.Rows[i].Pattern == c.Pattern {
				return &e.Rows[i]
			}
		}
		return nil
	}
	var cells []Cell
	for _, e := range []*Envelope{old, new} {
		for _, r := range e.Rows {
			if c := (Cell{r.Class, r.Pattern}); !slices.Contains(cells, c) {
				cells = append(cells, c)
			}
		}
	}
	for _, c := range cells {
		d.Rows = append(d.Rows, diffRow(c, row(old, c), row(new, c)))
	}
	return d
}

func diffRow(c Cell, old, new *EnvelopeRow) RowDiff {
	r := RowDiff{Class: c.Class, Pattern: c.Pattern}
	switch {
	case old == nil:
		r.New, r.Text = new.SafeQPS, "only in the new one"
		return r
	case new == nil:
		r.Old, r.Text = old.SafeQPS, "only in the old one"
		return r
	}
	r.Old, r.New = old.SafeQPS, new.SafeQPS
	switch {
	case r.Old > 0 && r.New == 0:
		r.Beyond, r.Text = true, "no longer confirmed"
		return r
	case r.Old == 0 || r.New == 0:
		r.Text = "not confirmed before"
		return r
	}
	r.Change = r.New/r.Old - 1
	r.Beyond = new.Upper < old.Lower || new.Lower > old.Upper
	r.Text = "within the error of the searches"
	if r.Beyond {
		r.Text = "beyond the error of the searches"
	}
	return r
}

// WriteText writes the comparison for people.
func (d *Diff) WriteText(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "class\tpattern\told\tnew\tchange\t")
	for _, r := range d.Rows {
		fmt.Fprintf(t, "%s\t%s\t%.4g\t%.4g\t%+.1f %%\t%s\n", r.Class, r.Pattern, r.Old, r.New, 100*r.Change, r.Text)
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("writing the comparison: %w", err)
	}
	for _, n := range d.Notes {
		if _, err := fmt.Fprintln(w, "note:", n); err != nil {
			return fmt.Errorf("writing the comparison: %w", err)
		}
	}
	return nil
}
