package analyze

import (
	"fmt"
	"math"
	"slices"

	"tailgate/internal/stats"
)

// sample is what a percentile rule is judged on: values in order of the schedule, failures infinite.
type sample interface {
	size() int
	// over counts the values that break the limit, and tells how many independent values the share is worth.
	over(l Limit) (count int, effective float64)
	// smallest returns the values at 1-based ranks, +Inf where the rank falls on a failure.
	smallest(ranks ...int) []float64
}

// evidence is a sample, or why there is none to judge on.
type evidence struct {
	sample
	lacks string
}

// evidence collects metric m of the rows for a rule, without those of the cool-down.
func (d *Data) evidence(rows []int32, m metric) evidence {
	rows = d.tails(rows)
	if !m.pooled() {
		s := d.rowSample(rows, m)
		switch {
		case len(s.values) == 0:
			return evidence{s, "insufficient: no data"}
		case s.ok > 0 && s.defined == 0:
			return evidence{s, fmt.Sprintf("insufficient: no data, none of %d ok requests tells it", s.ok)}
		}
		return evidence{s, ""}
	}
	s := d.gapSample(rows, m)
	switch {
	case m == itl && s.mostlyChunked():
		return evidence{s, fmt.Sprintf("gaps between tokens are known for %d of %d ok requests; use tpot_p99 or inter_chunk_p99", s.known(), s.known()+s.chunked)}
	case s.size() == 0:
		return evidence{s, "insufficient: no data"}
	}
	return evidence{s, ""}
}

// rowSample has one value a request.
type rowSample struct {
	values      []float64 // +Inf for failures
	sorted      []float64
	ok, defined int
}

// rowSample collects metric m; ok rows that do not have it are left out.
func (d *Data) rowSample(rows []int32, m metric) *rowSample {
	s := &rowSample{values: make([]float64, 0, len(rows))}
	d.each(m, rows, func(values []float64) {
		for _, x := range values {
			switch {
			case math.IsInf(x, 1):
			case math.IsNaN(x):
				s.ok++
				continue
			default:
				s.ok++
				s.defined++
			}
			s.values = append(s.values, x)
		}
	})
	return s
}

func (s *rowSample) size() int { return len(s.values) }

func (s *rowSample) over(l Limit) (int, float64) {
	var b stats.Bits
	for _, x := range s.values {
		b.Append(l.breaks(x))
	}
	return b.Ones(), float64(b.Len()) / b.Tau()
}

func (s *rowSample) smallest(ranks ...int) []float64 {
	if s.sorted == nil {
		s.sorted = slices.Clone(s.values)
		slices.Sort(s.sorted)
	}
	out := make([]float64, len(ranks))
	for i, r := range ranks {
		out[i] = s.sorted[r-1]
	}
	return out
}

// gapSample pools the gaps of many requests. A failed request counts as infinite gaps, as many as the mean ok
// request has.
type gapSample struct {
	d         *Data
	m         metric
	rows      []int32 // with gaps, or failed
	counts    gapCounts
	failed    int
	weight    int // gaps of one failed request
	undefined int // ok rows without gaps of this kind
	chunked   int // those among them that do have gaps of the other kind
}

func (d *Data) gapSample(rows []int32, m metric) *gapSample {
	s := &gapSample{d: d, m: m, rows: make([]int32, 0, len(rows))}
	ok := 0
	d.eachGaps(m, rows, func(i int32, state gapState, gaps []int32) {
		switch state {
		case gapsFailed:
			s.failed++
			s.rows = append(s.rows, i)
		case gapsNone:
			s.undefined++
		case gapsOther:
			s.undefined++
			s.chunked++
		default:
			ok++
			s.rows = append(s.rows, i)
			s.counts.add(gaps)
		}
	})
	if ok > 0 {
		s.weight = max(1, int(math.Round(float64(s.counts.n)/float64(ok))))
	}
	return s
}

func (s *gapSample) finite() *gapCounts { return &s.counts }

// infinite counts the gaps of failed requests; none while no gap was seen at all.
func (s *gapSample) infinite() int { return s.failed * s.weight }

func (s *gapSample) size() int { return s.counts.n + s.infinite() }

// over takes requests as clusters: the variance of the ratio Σb/Σg of bad gaps to all gaps is that of the residuals
// b − v·g, inflated by their autocorrelation (Cochran, Sampling Techniques, ratio estimator); the effective number
// is v(1−v) over that variance. Without a bad gap it is Kish's number of clusters (Σg)²/Σg².
func (s *gapSample) over(l Limit) (int, float64) {
	bad, all := make([]float64, len(s.rows)), make([]float64, len(s.rows))
	count, total, squares := 0.0, 0.0, 0.0
	for j, i := range s.rows {
		if !s.d.ok(i) {
			bad[j], all[j] = float64(s.weight), float64(s.weight)
		} else {
			gaps := s.d.gapsOf(s.m, i)
			all[j] = float64(len(gaps))
			for _, g := range gaps {
				if l.breaks(float64(g)) {
					bad[j]++
				}
			}
		}
		count, total, squares = count+bad[j], total+all[j], squares+all[j]*all[j]
	}
	v := count / total
	if v == 0 || v == 1 {
		return int(count), total * total / squares
	}
	variance := 0.0
	for j := range bad {
		bad[j] -= v * all[j]
		variance += bad[j] * bad[j]
	}
	variance *= stats.TauOf(bad) / (total * total)
	return int(count), min(total, v*(1-v)/variance)
}

func (s *gapSample) smallest(ranks ...int) []float64 { return pick(&s.counts, s.counts.n, ranks) }

// gapCounts counts gaps by value, exactly. Pages of counts are made as they are met, so that gaps of seconds, which
// lie far apart, take little memory and time.
type gapCounts struct {
	n     int
	sum   int64
	pages []gapPage
}

// gapPage has the gaps of 4 ms: how many in all, and how many of each.
type gapPage struct {
	n      int
	counts *[1 << pageBits]uint32
}

const pageBits = 12

func (c *gapCounts) add(gaps []int32) {
	for _, us := range gaps {
		at := int(us >> pageBits)
		if at >= len(c.pages) {
			c.pages = append(c.pages, make([]gapPage, at+1-len(c.pages))...)
		}
		page := &c.pages[at]
		if page.counts == nil {
			page.counts = new([1 << pageBits]uint32)
		}
		page.counts[us&(1<<pageBits-1)]++
		page.n++
		c.sum += int64(us)
	}
	c.n += len(gaps)
}

func (c *gapCounts) count() int { return c.n }

func (c *gapCounts) mean() float64 { return float64(c.sum) / float64(c.n) }

func (c *gapCounts) smallest(ranks ...int) []float64 {
	order := make([]int, len(ranks))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return ranks[a] - ranks[b] })
	out := make([]float64, len(ranks))
	seen := 0
	for p := range c.pages {
		page := &c.pages[p]
		if len(order) == 0 || page.n == 0 || ranks[order[0]] > seen+page.n {
			seen += page.n
			continue
		}
		for at, n := range page.counts {
			seen += int(n)
			for n > 0 && len(order) > 0 && ranks[order[0]] <= seen {
				out[order[0]] = float64(p<<pageBits | at)
				order = order[1:]
			}
		}
	}
	return out
}

// known counts the ok requests whose gaps are in the sample.
func (s *gapSample) known() int { return len(s.rows) - s.failed }

// mostlyChunked is true when over 1 % of the requests with gaps have only those of the other kind: the sample is
// then not the workload.
func (s *gapSample) mostlyChunked() bool {
	return float64(s.chunked) > .01*float64(s.chunked+s.known())
}
