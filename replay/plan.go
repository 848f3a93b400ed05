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
	// Packed holds the rows instead of Rows, where there are many.
	Packed *Packed
	// BlockSize is the number of tokens that one hash id stands for; 0 = unknown.
	BlockSize int
	// Warmup: rows scheduled before it have the phase warmup. 0 = no warm-up.
	Warmup time.Duration
	// Cooldown: rows scheduled in this last part of the length have the phase drain: they keep the load up under
	// those before them and count in success, not in tails. 0 = none. Of a closed loop it is the last part of its time.
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

// ofLoop is the plan as a closed loop sends it: its length is the loop's own, to the deadline, whatever the stamps say.
func (p *Plan) ofLoop(deadline time.Duration) (*Plan, error) {
	if p.Cooldown > 0 && deadline == 0 {
		return nil, fault.Mark(errors.New("cooldown: a closed loop without a duration does not know where its last part begins"), fault.Usage,
			"give --duration, or the last step of --concurrency a time")
	}
	out := *p
	out.Length = deadline
	return &out, nil
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
	twice := p.numberedTwice()
	for i := range p.Len() {
		if len(errs) >= limit {
			bad("more faults follow")
			break
		}
		switch row := p.number(i); {
		case twice[int32(i)]:
			bad("row %d: is in the plan twice", row)
		case p.At(i) < 0:
			bad("row %d: scheduled_us must be >= 0", row)
		case i > 0 && p.At(i) < p.At(i-1):
			bad("row %d: is scheduled before the row in front of it", row)
		case p.input(i) < 0:
			bad("row %d: input_tokens must be >= 0", row)
		case p.output(i) < -1:
			bad("row %d: output_tokens must be >= 0", row)
		}
	}
	return fault.Mark(errors.Join(errs...), fault.Data, "")
}

// length is the length of the schedule.
func (p *Plan) length() time.Duration {
	if p.Length > 0 || p.Len() == 0 {
		return p.Length
	}
	return p.At(p.Len() - 1)
}

// numberedTwice finds the rows whose number a row in front has too.
func (p *Plan) numberedTwice() map[int32]bool {
	ascending := true
	for i := 1; i < p.Len() && ascending; i++ {
		ascending = p.number(i) > p.number(i-1)
	}
	if ascending {
		return nil // the usual case, without a map of all
	}
	seen, twice := make(map[int64]struct{}, p.Len()), map[int32]bool{}
	for i := range p.Len() {
		if _, ok := seen[p.number(i)]; ok {
			twice[int32(i)] = true
		}
		seen[p.number(i)] = struct{}{}
	}
	return twice
}

// parents maps each row index to the index of the row that it follows, -1 = none in this plan (a first turn, or
// a parent that a window cut off).
func (p *Plan) parents() []int32 {
	out := make([]int32, p.Len())
	wanted := map[int64]int32{} // of the rows that others follow
	for i := range out {
		out[i] = -1
		if parent := p.parentOf(i); parent >= 0 {
			wanted[parent] = -1
		}
	}
	if len(wanted) == 0 {
		return out
	}
	for i := range out {
		// Only rows in front are indexed yet, so a parent always precedes its turn and no cycle can wait for itself.
		if parent := p.parentOf(i); parent >= 0 {
			out[i] = wanted[parent]
		}
		if _, ok := wanted[p.number(i)]; ok {
			wanted[p.number(i)] = int32(i)
		}
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
	needed := false
	for i := 0; i < p.Len() && !needed; i++ {
		needed = p.output(i) < 0
	}
	if !needed {
		return nil
	}
	var all []int32
	byClass := map[string][]int32{}
	for i := range p.Len() {
		if n := p.output(i); n >= 0 {
			all = append(all, n)
			byClass[p.class(i)] = append(byClass[p.class(i)], n)
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
	if n, ok := m.class[orEmpty(r.Class)]; ok {
		return &n
	}
	return m.all
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
