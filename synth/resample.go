package synth

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"tailgate/internal/fault"
	"tailgate/schemas"
	"tailgate/trace"
)

// resampler rescales by copying and dropping whole sessions.
type resampler struct {
	t        *trace.Trace
	o        Options
	move     jitter
	sessions []session
	of       []int32 // session of each row
	copies   []int32 // of each session
}

// resample is session resampling: duration kept, whole sessions copied or dropped by stratum, copies moved by
// one jitter each.
func resample(ctx context.Context, t *trace.Trace, rowsOf [][]int32, o Options) (*Result, error) {
	sessions, strata := stratify(t, rowsOf)
	whole := math.Floor(o.Scale)
	target := int(math.Round(o.Scale * float64(len(t.Rows))))
	move := jitter{seed: o.Seed, us: o.jitterUs(), lengthUs: t.LengthUs()}
	s := &selector{
		f: o.Scale, seed: o.Seed, sessions: sessions, strata: strata,
		want: target - int(whole)*len(t.Rows), score: newScorer(t, sessions, o.Scale, move),
	}
	sel, err := s.best(ctx, o.threads())
	if err != nil {
		return nil, err
	}
	r := &resampler{t: t, o: o, move: move, sessions: sessions}
	r.of, r.copies = make([]int32, len(t.Rows)), make([]int32, len(sessions))
	for j := range sessions {
		r.copies[j] = int32(whole)
		if sel[j] {
			r.copies[j]++
		}
		for _, i := range sessions[j].rows {
			r.of[i] = int32(j)
		}
	}
	out := &trace.Trace{Rows: r.rows(), Meta: t.Meta, Notes: slices.Clone(t.Notes)}
	if len(out.Rows) == 0 {
		return nil, fault.Mark(fmt.Errorf("%d sessions leave no whole one at scale %v", len(sessions), o.Scale), fault.Usage, "take a larger scale")
	}
	out.Meta.LengthUs = t.LengthUs()
	out.Meta.Lines = nil // SourceRow says where a row comes from
	return &Result{Trace: out, Notes: r.notes(strata, target, len(out.Rows))}, nil
}

func (r *resampler) notes(strata []stratum, target, got int) []string {
	var out []string
	small := 0
	for _, st := range strata {
		if len(st.members) < st.group() {
			small++
		}
	}
	if small > 0 && r.o.Scale != math.Floor(r.o.Scale) {
		out = append(out, fmt.Sprintf("%d of %d strata (tenant × class × size) are smaller than a selection group: "+
			"their remainder is carried to the next stratum of the same size", small, len(strata)))
	}
	if got != target {
		out = append(out, fmt.Sprintf("no choice of whole sessions has %d rows: %d", target, got))
	}
	return out
}

// place is where one row of the result comes from.
type place struct {
	at   int64
	row  int32 // of the source
	copy int32
}

func (r *resampler) rows() []schemas.TraceRow {
	places := r.places()
	// start[i]+q is the place in the result of the q-th copy of row i.
	start, n := make([]int, len(r.t.Rows)), 0
	for i := range start {
		start[i] = n
		n += int(r.copies[r.of[i]])
	}
	placeOf := make([]int64, n)
	for k, p := range places {
		placeOf[start[p.row]+int(p.copy)] = int64(k)
	}
	fresh := newFreshIDs(r.t, r.sessions, r.of, r.copies)
	names := r.names()
	out := make([]schemas.TraceRow, n)
	for k, p := range places {
		row := r.t.Rows[p.row]
		row.Row, row.SourceRow, row.Copy, row.ScheduledUs = int64(k), int64(p.row), p.copy, p.at
		if parent := row.Parent; parent != nil {
			row.Parent = nil
			if r.sameSession(*parent, p.row) {
				row.Parent = &placeOf[start[*parent]+int(p.copy)]
			}
		}
		if p.copy > 0 {
			row.Session = names(p.row, p.copy)
			row.HashIDs = fresh.of(p.row, p.copy)
		}
		out[k] = row
	}
	return out
}

func (r *resampler) sameSession(parent int64, row int32) bool {
	return parent >= 0 && parent < int64(len(r.of)) && r.of[parent] == r.of[row]
}

// places lists the rows of the result in order of time, source row and copy.
func (r *resampler) places() []place {
	var out []place
	for j := range r.sessions {
		s := &r.sessions[j]
		for q := range r.copies[j] {
			shift := r.move.shift(s, int32(j), q)
			for _, i := range s.rows {
				out = append(out, place{at: r.t.Rows[i].ScheduledUs + shift, row: i, copy: q})
			}
		}
	}
	slices.SortFunc(out, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.row, b.row), cmp.Compare(a.copy, b.copy))
	})
	return out
}

// names returns the function that names the session of a copy: id#q. The mark is lengthened until no name of
// the source has it, so that no new name meets an old one.
func (r *resampler) names() func(row, q int32) *string {
	mark := "#"
	for i := range r.t.Rows {
		for s := r.t.Rows[i].Session; s != nil && strings.Contains(*s, mark); {
			mark += "#"
		}
	}
	made := make([][]*string, len(r.sessions))
	return func(row, q int32) *string {
		id := r.t.Rows[row].Session
		if id == nil {
			return nil
		}
		j := r.of[row]
		if made[j] == nil {
			made[j] = make([]*string, r.copies[j])
		}
		if made[j][q] == nil {
			name := fmt.Sprintf("%s%s%d", *id, mark, q)
			made[j][q] = &name
		}
		return made[j][q]
	}
}
