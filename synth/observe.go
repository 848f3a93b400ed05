package synth

import (
	"cmp"
	"math"
	"slices"

	"tailgate/profile"
	"tailgate/schemas"
)

// observer measures a trace as its rows go by, in bounded memory: it looks at the rows alone, not at how they
// were chosen.
type observer struct {
	rows              int
	tokensIn          float64
	tokensOut         float64
	ins, outs         lengths
	shape             windows // 60 s, or what corresponds to it in a warp
	plain, dispersion windows // 60 s, and the width at which the law of dispersion is read
	tenants           map[string]int
	sample            blockSample
}

func newObserver(shapeUs, dispersionUs int64) *observer {
	return &observer{shape: windows{width: shapeUs, keep: true}, plain: windows{width: minuteUs}, dispersion: windows{width: dispersionUs}, tenants: map[string]int{}}
}

// add takes the next row; source and q tell which row of the source it is a copy of.
func (o *observer) add(r *schemas.TraceRow, source int64, q int32) {
	o.rows++
	o.tokensIn += float64(r.InputTokens)
	o.ins.add(r.InputTokens)
	if r.OutputTokens != nil {
		o.tokensOut += float64(*r.OutputTokens)
		o.outs.add(*r.OutputTokens)
	}
	o.shape.add(r.ScheduledUs)
	o.plain.add(r.ScheduledUs)
	o.dispersion.add(r.ScheduledUs)
	o.tenants[text(r.Tenant)]++
	o.sample.add(r.HashIDs, source, q)
}

// lengths counts rows by their number of tokens.
type lengths struct {
	small []int64 // of lengths below len(small)
	large map[int32]int64
	n     int64
}

const smallLengths = 1 << 17

func (l *lengths) add(tokens int32) {
	l.n++
	if tokens < 0 || tokens >= smallLengths {
		if l.large == nil {
			l.large = map[int32]int64{}
		}
		l.large[tokens]++
		return
	}
	if int(tokens) >= len(l.small) {
		l.small = append(l.small, make([]int64, int(tokens)+1-len(l.small)+len(l.small)/2)...)
	}
	l.small[tokens]++
}

// count is one length and how many rows have it.
type count struct {
	tokens int32
	n      int64
}

func (l *lengths) sorted() []count {
	var out []count
	for tokens, n := range l.small {
		if n > 0 {
			out = append(out, count{int32(tokens), n})
		}
	}
	for tokens, n := range l.large {
		out = append(out, count{tokens, n})
	}
	slices.SortFunc(out, func(a, b count) int { return cmp.Compare(a.tokens, b.tokens) })
	return out
}

// distance is the two-sample Kolmogorov–Smirnov distance.
func (l *lengths) distance(m *lengths) float64 {
	x, y := l.sorted(), m.sorted()
	worst, a, b := 0.0, 0.0, 0.0
	for len(x) > 0 || len(y) > 0 {
		at := int32(math.MaxInt32)
		if len(x) > 0 {
			at = x[0].tokens
		}
		if len(y) > 0 {
			at = min(at, y[0].tokens)
		}
		if len(x) > 0 && x[0].tokens == at {
			a += float64(x[0].n)
			x = x[1:]
		}
		if len(y) > 0 && y[0].tokens == at {
			b += float64(y[0].n)
			y = y[1:]
		}
		worst = max(worst, math.Abs(a/float64(l.n)-b/float64(m.n)))
	}
	return worst
}

// windows counts sorted arrivals in windows of one width: from the schedule's zero (keep), or as
// profile.Counts does from the first arrival, without the last window, in no memory.
type windows struct {
	width  int64
	keep   bool
	counts []float64

	first, current, in int64
	seen               bool
	sum, squares       float64
}

func (w *windows) add(us int64) {
	if w.keep {
		for n := us / w.width; int64(len(w.counts)) <= n; {
			w.counts = append(w.counts, 0)
		}
		w.counts[us/w.width]++
		return
	}
	if !w.seen {
		w.first, w.seen = us, true
	}
	if n := (us - w.first) / w.width; n != w.current {
		w.sum += float64(w.in)
		w.squares += float64(w.in) * float64(w.in)
		w.current, w.in = n, 0
	}
	w.in++
}

// idc is the index of dispersion and the number of whole windows that it is of.
func (w *windows) idc() (idc float64, n int64) {
	n = w.current
	if n < 2 {
		return math.NaN(), n
	}
	mean := w.sum / float64(n)
	return (w.squares - w.sum*mean) / float64(n-1) / mean, n
}

// sampleBlocks is the most blocks that are looked at one by one, on average.
const sampleBlocks = 1 << 19

// blockSample holds the blocks of a trace, or of a large one those whose id hashes to zero in the low shift
// bits: spatial sampling (SHARDS: Waldspurger, Park, Garthwaite, Ahmad 2015), which keeps all uses of a block or
// none, so that a cache of a 2^shift-th of the size sees what the whole cache would see.
type blockSample struct {
	shift int
	fixed bool  // the shift is given
	total int64 // blocks, sampled or not
	ids   []int64
	rows  []sampledRow
	hits  *cacheHits // of these blocks; nil = not yet simulated
}

// cacheHits is what caches hit of a trace's blocks.
type cacheHits struct {
	at       []int64   // probed capacities in sampled blocks, ascending; nil = no row tells its blocks
	lru      []float64 // share of blocks hit at each
	infinite float64   // and in an infinite cache
}

// sampledRow is a row with n sampled blocks.
type sampledRow struct {
	source  int64
	q, ours int32
}

// shiftFor is the sampling of a trace of so many blocks.
func shiftFor(total int64) (shift int) {
	for total>>shift > sampleBlocks {
		shift++
	}
	return shift
}

func sampled(id int64, shift int) bool {
	if shift == 0 {
		return true
	}
	x := uint64(id) * 0x9e3779b97f4a7c15 // a short mixer: it runs for every block
	x = (x ^ x>>32) * 0xd6e8feb86659fd93
	return (x^x>>32)&(1<<shift-1) == 0
}

func (s *blockSample) add(ids []int64, source int64, q int32) {
	s.total += int64(len(ids))
	before := len(s.ids)
	for _, id := range ids {
		if sampled(id, s.shift) {
			s.ids = append(s.ids, id)
		}
	}
	if n := len(s.ids) - before; n > 0 {
		s.rows = append(s.rows, sampledRow{source, q, int32(n)})
	}
	if !s.fixed && len(s.ids) > 2*sampleBlocks {
		s.thin()
	}
}

// thin samples as thinly as the blocks so far ask for.
func (s *blockSample) thin() {
	shift := shiftFor(s.total)
	if s.fixed || shift <= s.shift {
		return
	}
	s.shift = shift
	ids, rows, from := s.ids[:0], s.rows[:0], 0
	for _, r := range s.rows {
		n := int32(0)
		for _, id := range s.ids[from : from+int(r.ours)] {
			if sampled(id, shift) {
				ids = append(ids, id)
				n++
			}
		}
		from += int(r.ours)
		if r.ours = n; n > 0 {
			rows = append(rows, r)
		}
	}
	s.ids, s.rows = ids, rows
}

// each visits the rows that have sampled blocks.
func (s *blockSample) each(visit func(r sampledRow, ids []int64)) {
	from := 0
	for _, r := range s.rows {
		visit(r, s.ids[from:from+int(r.ours)])
		from += int(r.ours)
	}
}

// traceRows are the same rows for the simulation of caches.
func (s *blockSample) traceRows(yield func(*schemas.TraceRow) bool) {
	from := 0
	for _, r := range s.rows {
		row := schemas.TraceRow{Row: r.source, HashIDs: s.ids[from : from+int(r.ours)]}
		if !yield(&row) {
			return
		}
		from += int(r.ours)
	}
}

// probeParts are the capacities at which caches are compared, as parts of the source's different blocks.
var probeParts = [...]int64{64, 16, 4}

// cache sends the blocks through caches of the probed capacities, once.
func (s *blockSample) cache() *cacheHits {
	if s.hits == nil {
		s.hits = &cacheHits{at: s.probes()}
		s.hits.simulate(s.traceRows, nil)
	}
	return s.hits
}

// probes are the probed capacities; nil when no row tells its blocks.
func (s *blockSample) probes() []int64 {
	if len(s.ids) == 0 {
		return nil
	}
	seen := make(map[int64]struct{}, len(s.ids)/2)
	for _, id := range s.ids {
		seen[id] = struct{}{}
	}
	out := make([]int64, len(probeParts))
	for k, part := range probeParts {
		out[k] = max(int64(len(seen))/part, 1)
	}
	return out
}

// simulate fills in what caches of the capacities hit of rows. each is told for every hit the smallest that has it.
func (c *cacheHits) simulate(rows func(yield func(*schemas.TraceRow) bool), each func(r *schemas.TraceRow, smallest int)) {
	blocks, hit := 0, make([]int, len(c.at)+1)
	profile.NeededCapacity(rows, func(r *schemas.TraceRow, _ int, need int64) {
		blocks++
		if need == profile.Cold {
			return
		}
		k := 0
		for k < len(c.at) && c.at[k] < need {
			k++
		}
		hit[k]++
		if each != nil && k < len(c.at) {
			each(r, k)
		}
	})
	sum := 0
	c.lru = make([]float64, len(c.at))
	for k, n := range hit {
		sum += n
		if k < len(c.at) {
			c.lru[k] = float64(sum) / float64(max(blocks, 1))
		}
	}
	c.infinite = float64(sum) / float64(max(blocks, 1))
}

// needed counts for each row the sampled blocks that the source itself hits at each probed capacity.
func (s *blockSample) needed(rows int) [][len(probeParts)]uint16 {
	s.hits = &cacheHits{at: s.probes()}
	if s.hits.at == nil {
		return nil
	}
	out := make([][len(probeParts)]uint16, rows)
	s.hits.simulate(s.traceRows, func(r *schemas.TraceRow, smallest int) {
		for k := smallest; k < len(probeParts); k++ {
			out[r.Row][k] = min(out[r.Row][k], math.MaxUint16-1) + 1
		}
	})
	return out
}
