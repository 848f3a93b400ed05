package replay

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"tailgate/internal/fault"
	"tailgate/schemas"
)

// Plan is a finished schedule.
type Plan struct {
	RunID string
	// Rows in send order: sorted by ScheduledUs, which counts from the schedule's zero.
	//
	// A row with null OutputTokens asks for the median of its class in this plan (of all rows where the class
	// has none; the target decides where no length is known); RunFacts.UnknownOutput counts such sends.
	Rows []schemas.TraceRow
	// BlockSize is the number of tokens that one hash id stands for; 0 = unknown.
	BlockSize int
	// Warmup: rows scheduled before it have the phase warmup. 0 = no warm-up.
	Warmup time.Duration
	// Cooldown: rows scheduled in this last part of the length have the phase drain: they keep the load up under
	// those before them and count in success, not in tails. 0 = none.
	Cooldown time.Duration
	// Bursts are declared: rows scheduled in one of them have the phase burst. They are judged like measured ones.
	Bursts []Span
	// Length of the schedule; 0 = up to the last stamp.
	Length time.Duration

	// lengths are the medians of the whole plan, where this one is a shard of it.
	lengths *medians
}

// Span is a part of the schedule: From ≤ t < To.
type Span struct{ From, To time.Duration }

// Phase is the phase of a request that is scheduled at the instant at.
func (p *Plan) Phase(at time.Duration) string {
	switch {
	case at < p.Warmup:
		return schemas.PhaseWarmup
	case p.Cooldown > 0 && at >= p.length()-p.Cooldown:
		return schemas.PhaseDrain
	}
	for _, b := range p.Bursts {
		if b.From <= at && at < b.To {
			return schemas.PhaseBurst
		}
	}
	return schemas.PhaseMeasure
}

func (p *Plan) burstSpans() []schemas.BurstSpan {
	var out []schemas.BurstSpan
	for _, b := range p.Bursts {
		out = append(out, schemas.BurstSpan{FromUs: b.From.Microseconds(), ToUs: b.To.Microseconds()})
	}
	return out
}

// Validate reports every fault of the plan: rows out of order or before zero, negative lengths, row numbers used
// twice. The error is fault.Data.
func (p *Plan) Validate() error {
	var errs []error
	bad := func(format string, a ...any) { errs = append(errs, fmt.Errorf(format, a...)) }
	if p.Warmup < 0 || p.Cooldown < 0 || p.Length < 0 || p.BlockSize < 0 {
		bad("plan: warmup, cooldown, length and block size must not be negative")
	}
	for _, b := range p.Bursts {
		if b.From < 0 || b.From >= b.To {
			bad("plan: a burst from %v to %v holds nothing", b.From, b.To)
		}
	}
	const limit = 20 // a broken trace repeats one fault on every row
	seen := make(map[int64]struct{}, len(p.Rows))
	for i := range p.Rows {
		if len(errs) >= limit {
			bad("more faults follow")
			break
		}
		r := &p.Rows[i]
		switch _, twice := seen[r.Row]; {
		case twice:
			bad("row %d: is in the plan twice", r.Row)
		case r.ScheduledUs < 0:
			bad("row %d: scheduled_us must be >= 0", r.Row)
		case i > 0 && r.ScheduledUs < p.Rows[i-1].ScheduledUs:
			bad("row %d: is scheduled before the row in front of it", r.Row)
		case r.InputTokens < 0:
			bad("row %d: input_tokens must be >= 0", r.Row)
		case r.OutputTokens != nil && *r.OutputTokens < 0:
			bad("row %d: output_tokens must be >= 0", r.Row)
		}
		seen[r.Row] = struct{}{}
	}
	return fault.Mark(errors.Join(errs...), fault.Data, "")
}

// length is the length of the schedule.
func (p *Plan) length() time.Duration {
	if p.Length > 0 || len(p.Rows) == 0 {
		return p.Length
	}
	return stamp(&p.Rows[len(p.Rows)-1])
}

func stamp(r *schemas.TraceRow) time.Duration { return time.Duration(r.ScheduledUs) * time.Microsecond }

// parents maps each row index to the index of the row that it follows, -1 = none in this plan (a first turn, or
// a parent that a window cut off).
func (p *Plan) parents() []int32 {
	index := make(map[int64]int32, len(p.Rows))
	out := make([]int32, len(p.Rows))
	for i := range p.Rows {
		out[i] = -1
		if parent := p.Rows[i].Parent; parent != nil {
			// Only rows in front are indexed yet, so a parent always precedes its turn and no cycle can wait
			// for itself.
			if j, ok := index[*parent]; ok {
				out[i] = j
			}
		}
		index[p.Rows[i].Row] = int32(i)
	}
	return out
}

// medians are the medians of the known output lengths, by class and over all rows.
type medians struct {
	class map[string]int32
	all   *int32
}

// medianLengths takes the nearest-rank median of each class. It returns nil where no row needs one.
func (p *Plan) medianLengths() *medians {
	if p.lengths != nil {
		return p.lengths
	}
	needed := slices.ContainsFunc(p.Rows, func(r schemas.TraceRow) bool { return r.OutputTokens == nil })
	if !needed {
		return nil
	}
	var all []int32
	byClass := map[string][]int32{}
	for i := range p.Rows {
		if n := p.Rows[i].OutputTokens; n != nil {
			all = append(all, *n)
			byClass[className(&p.Rows[i])] = append(byClass[className(&p.Rows[i])], *n)
		}
	}
	m := &medians{class: make(map[string]int32, len(byClass))}
	for class, n := range byClass {
		m.class[class] = *median(n)
	}
	m.all = median(all)
	return m
}

// of returns the length that r asks for; null when nothing is known.
func (m *medians) of(r *schemas.TraceRow) *int32 {
	if n, ok := m.class[className(r)]; ok {
		return &n
	}
	return m.all
}

func className(r *schemas.TraceRow) string {
	if r.Class == nil {
		return ""
	}
	return *r.Class
}

// median sorts n and returns its nearest-rank median, null when it is empty.
func median(n []int32) *int32 {
	if len(n) == 0 {
		return nil
	}
	slices.Sort(n)
	return &n[rank(len(n), 500)]
}

// rank is the index of a nearest-rank percentile, given in per mille, in n sorted values: ⌈p·n⌉ − 1.
func rank(n, permille int) int { return max((n*permille+999)/1000-1, 0) }
