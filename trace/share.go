package trace

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"tailgate/internal/fault"
	"tailgate/internal/rng"
	"tailgate/internal/stats"
	"tailgate/schemas"
)

// ShareOptions say how a trace is made fit to leave the house.
type ShareOptions struct {
	Secret  uint64   // seed of shift, jitter and order of labels; draw it anew for every export and keep it nowhere
	K       int      // smallest group that may be told apart; 0 = 5
	Classes []string // class names that may stay; others become "other"; nil = the built-in ones
}

// ShareReport says what Share did.
type ShareReport struct {
	K             int     `json:"k"`
	Rows          int     `json:"rows"`
	Blocks        int64   `json:"blocks"`            // distinct, before
	PrivateBlocks int64   `json:"private_blocks"`    // of them: held by fewer than k sessions, now told apart by session
	Tenants       int     `json:"tenants"`           // before
	TenantRows    int     `json:"tenant_rows_other"` // rows whose tenant became "other"
	ClassRows     int     `json:"class_rows_other"`
	TopInput      int32   `json:"input_top"`  // lengths above were cut to it
	TopOutput     int32   `json:"output_top"` // 0 = none
	CutInputs     int     `json:"input_cut_rows"`
	CutOutputs    int     `json:"output_cut_rows"`
	RareLengths   int     `json:"rare_length_rows"` // rows whose pair of lengths fewer than k rows have
	JitterMs      float64 `json:"jitter_ms"`
	// KS distances of the lengths from the source's lengths on the same grid. Against the bare lengths the distance
	// cannot be smaller than the largest spike between two grid points.
	KSInput  float64 `json:"input_grid_ks"`
	KSOutput float64 `json:"output_grid_ks"`
}

// Limits of a shared trace.
const (
	shareK        = 5
	shareJitterUs = 50_000
	shareShiftUs  = 600_000_000 // the schedule begins up to so much after its zero
	otherLabel    = "other"
)

var shareClasses = []string{"agent", "long_context", "interactive", "batch", otherLabel}

// Validate reports every fault of the options.
func (o ShareOptions) Validate() error {
	var errs []error
	if o.K < 0 || o.K == 1 {
		errs = append(errs, fmt.Errorf("k %d must be at least 2", o.K))
	}
	if o.Secret == 0 {
		errs = append(errs, errors.New("the secret of a shared trace must be drawn at random, it is 0"))
	}
	return fault.Mark(errors.Join(errs...), fault.Usage, "")
}

// Share returns a copy of t that may leave the house: pseudonyms and ids without meaning, lengths and stamps too
// coarse to be found again in someone's own log, small groups merged. It keeps what load depends on; the caller
// compares both before trusting the copy.
//
//   - Ids are dense in order of first use. A block that fewer than k sessions hold becomes the session's own.
//   - Tenants with fewer than k sessions, classes beyond the list, and labels of a (tenant, class, lengths) cell with
//     fewer than k rows become "other"; tenants, sessions and models get new names.
//   - Input lengths become multiples of 16, above 4,096 of 64; output lengths to a grid of 2 %; both are cut at
//     their p99.9.
//   - Stamps move by one secret shift of up to ten minutes and ±50 ms for each session, whole milliseconds; the
//     wall time is dropped.
//
// The design follows the practice of the public traces (Mooncake, Qwen-Bailian), with the gaps closed that allow
// dictionary and linking attacks. It is no anonymisation in the legal sense.
func (t *Trace) Share(o ShareOptions) (*Trace, ShareReport, error) {
	if err := o.Validate(); err != nil {
		return nil, ShareReport{}, err
	}
	if o.K == 0 {
		o.K = shareK
	}
	if o.Classes == nil {
		o.Classes = shareClasses
	}
	s := sharing{t: t, o: o, sessions: t.Sessions(), out: &Trace{Rows: slices.Clone(t.Rows)}, rep: ShareReport{K: o.K, Rows: len(t.Rows), JitterMs: shareJitterUs / 1000}}
	m := t.Meta
	s.out.Meta = Meta{Name: "shared", Format: m.Format, BlockSize: m.BlockSize, Tokenizer: m.Tokenizer, Unit: m.Unit, Convention: m.Convention}
	s.lengths()
	s.labels()
	s.stamps()
	s.blocks()
	return s.out, s.rep, nil
}

type sharing struct {
	t        *Trace
	o        ShareOptions
	sessions Sessions
	out      *Trace
	from     []int64 // row of the source of each row, once the stamps have moved
	rep      ShareReport
}

func (s *sharing) lengths() {
	in, out := lengthsOf(s.t.Rows)
	s.rep.TopInput, s.rep.TopOutput = inputGrid(topCode(in)), outputGrid(topCode(out))
	for i := range s.out.Rows {
		row := &s.out.Rows[i]
		if n := inputGrid(row.InputTokens); row.InputTokens > 0 {
			if row.InputTokens = min(n, s.rep.TopInput); n > s.rep.TopInput {
				s.rep.CutInputs++
			}
		}
		if row.OutputTokens != nil {
			n := outputGrid(*row.OutputTokens)
			if n > s.rep.TopOutput {
				s.rep.CutOutputs++
			}
			n = min(n, s.rep.TopOutput)
			row.OutputTokens = &n
		}
	}
	inNow, outNow := lengthsOf(s.out.Rows)
	s.rep.KSInput = stats.KS(floats(in, inputGrid), floats(inNow, nil))
	s.rep.KSOutput = stats.KS(floats(out, outputGrid), floats(outNow, nil))
}

func lengthsOf(rows []schemas.TraceRow) (in, out []int32) {
	for i := range rows {
		in = append(in, rows[i].InputTokens)
		if n := rows[i].OutputTokens; n != nil {
			out = append(out, *n)
		}
	}
	return in, out
}

func floats(v []int32, grid func(int32) int32) []float64 {
	out := make([]float64, len(v))
	for i, n := range v {
		if grid != nil {
			n = grid(n)
		}
		out[i] = float64(n)
	}
	return out
}

// topCode is the p99.9 of lengths, nearest rank; 0 when there are none.
func topCode(lengths []int32) int32 {
	if len(lengths) == 0 {
		return 0
	}
	slices.Sort(lengths)
	return lengths[stats.Rank(len(lengths), .999)-1]
}

// inputGrid is the nearest multiple of 16, above 4,096 of 64; at least 16.
func inputGrid(n int32) int32 {
	step := int32(16)
	if n > 4096 {
		step = 64
	}
	if n > math.MaxInt32-step {
		return n
	}
	return max((n+step/2)/step*step, step)
}

// outputGrid is the nearest point of 1.02^j, at least 1.
func outputGrid(n int32) int32 {
	if n <= 1 {
		return n
	}
	step := math.Log(1.02)
	return int32(math.Round(math.Exp(step * math.Round(math.Log(float64(n))/step))))
}

// blocks relabels ids: dense, in order of first use; rare ones by session.
func (s *sharing) blocks() {
	holders := map[int64][]int32{} // up to k sessions that hold the block
	for i := range s.t.Rows {
		for _, id := range s.t.Rows[i].HashIDs {
			h := holders[id]
			if len(h) < s.o.K && !slices.Contains(h, s.sessions.Of[i]) {
				holders[id] = append(h, s.sessions.Of[i])
			}
		}
	}
	s.rep.Blocks = int64(len(holders))
	type key struct {
		id      int64
		session int32
		partial int32 // tokens of a block that is not full: it is not the same block at another length
	}
	fresh := map[key]int64{}
	for _, h := range holders {
		if len(h) > 1 && len(h) < s.o.K {
			s.rep.PrivateBlocks++
		}
	}
	next := int64(0)
	size := s.t.Meta.BlockSize
	for i := range s.out.Rows {
		row, session := &s.out.Rows[i], s.sessions.Of[s.from[i]]
		if row.HashIDs == nil || size <= 0 {
			continue
		}
		want := blocks(row.InputTokens, size)
		ids := make([]int64, want)
		for j := range ids {
			k := key{id: -1 - int64(i), session: int32(j)} // beyond the source's blocks: the row's own
			if j < len(row.HashIDs) {
				k = key{id: row.HashIDs[j], session: -1}
				if len(holders[k.id]) < s.o.K {
					k.session = session
				}
				if end := int(row.InputTokens) - j*size; end < size {
					k.partial = int32(end)
				}
			}
			id, ok := fresh[k]
			if !ok {
				id = next
				next++
				fresh[k] = id
			}
			ids[j] = id
		}
		row.HashIDs = ids
	}
}

// stamps moves every session by a little and the whole by a secret shift.
func (s *sharing) stamps() {
	r := rng.New(s.o.Secret, "share", "time")
	shift := r.Int64N(shareShiftUs)
	move := make([]int64, len(s.sessions.Rows))
	for j := range move {
		move[j] = r.Int64N(2*shareJitterUs+1) - shareJitterUs
	}
	for i := range s.out.Rows {
		at := s.out.Rows[i].ScheduledUs + shift + move[s.sessions.Of[i]]
		s.out.Rows[i].ScheduledUs = max(0, at/1000*1000)
	}
	s.out.Meta.LengthUs = s.t.LengthUs() + shift + shareJitterUs
	s.out.Meta.StartedAt = time.Time{}
	order := make([]int64, len(s.out.Rows)) // place of each old row
	slices.SortStableFunc(s.out.Rows, func(a, b schemas.TraceRow) int { return cmp.Compare(a.ScheduledUs, b.ScheduledUs) })
	s.from = make([]int64, len(s.out.Rows))
	for i := range s.out.Rows {
		s.from[i] = s.out.Rows[i].Row
		order[s.from[i]] = int64(i)
	}
	for i := range s.out.Rows {
		row := &s.out.Rows[i]
		row.Row, row.SourceRow = int64(i), int64(i)
		if row.Parent != nil {
			p := order[*row.Parent]
			row.Parent = &p
		}
	}
}
