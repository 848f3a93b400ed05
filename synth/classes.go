package synth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"tailgate/internal/fault"
	"tailgate/schemas"
	"tailgate/trace"
)

// RescaleClasses rescales the rows of some workload classes and leaves all others as they are: what happens when
// only these users become more or fewer. The invariants are those of the rescaled classes. A session with turns
// of several classes is parted. New block ids lie above those of the whole trace, and SourceRow is the row of t.
func RescaleClasses(ctx context.Context, t *trace.Trace, classes []string, o Options) (*Result, error) {
	switch o.Mode {
	case "", ModeSession, ModeIndependent:
	default:
		return nil, fault.Mark(fmt.Errorf("mode %s moves the whole trace, not some classes of it", o.Mode), fault.Usage, "use mode session or independent")
	}
	chosen, err := t.SelectClasses(classes)
	if err != nil {
		return nil, err
	}
	var inside, outside []int64 // rows of t
	rest := t.Select(func(row int) bool {
		if c := t.Rows[row].Class; c != nil && slices.Contains(classes, *c) {
			inside = append(inside, int64(row))
			return false
		}
		outside = append(outside, int64(row))
		return true
	})
	for i := range rest.Rows {
		for _, id := range rest.Rows[i].HashIDs {
			o.above = max(o.above, id)
		}
	}
	res, err := Rescale(ctx, chosen, o)
	if err != nil {
		return nil, err
	}
	if res.Scale != 1 { // else the rows are those of t, as they are
		for i := range res.Trace.Rows {
			r := &res.Trace.Rows[i]
			r.SourceRow = inside[r.SourceRow]
		}
		for i := range rest.Rows {
			rest.Rows[i].SourceRow = outside[i]
		}
	}
	merged, err := merge(rest, res.Trace)
	if err != nil {
		return nil, err
	}
	res.Trace = merged
	return res, nil
}

// merge joins the rows of two traces of one clock, in order of their stamps, and renumbers them. Of equal stamps
// those of a come first.
func merge(a, b *trace.Trace) (*trace.Trace, error) {
	if a.Meta.BlockSize != b.Meta.BlockSize {
		return nil, errors.New("merging traces of different block sizes")
	}
	type place struct {
		from *trace.Trace
		row  int
	}
	order := make([]place, 0, len(a.Rows)+len(b.Rows))
	for _, t := range []*trace.Trace{a, b} {
		for i := range t.Rows {
			order = append(order, place{t, i})
		}
	}
	slices.SortStableFunc(order, func(x, y place) int {
		return cmp.Compare(x.from.Rows[x.row].ScheduledUs, y.from.Rows[y.row].ScheduledUs)
	})
	at := map[place]int64{}
	for n, p := range order {
		at[p] = int64(n)
	}
	out := &trace.Trace{Meta: b.Meta, Notes: b.Notes, Rows: make([]schemas.TraceRow, len(order))}
	out.Meta.LengthUs = max(a.LengthUs(), b.LengthUs())
	for n, p := range order {
		row := p.from.Rows[p.row]
		row.Row = int64(n)
		if row.Parent != nil {
			parent := at[place{p.from, int(*row.Parent)}]
			row.Parent = &parent
		}
		out.Rows[n] = row
	}
	return out, nil
}
