package synth

import (
	"fmt"
	"slices"
)

// restrict makes the model draw lengths by the specs: shares of ranges, inside which the profile's lengths stand, or
// exact lengths. Given for both dimensions, the shares are reached together by iterative proportional fitting. It
// returns the buckets that the profile has no length in, and false when nothing is left.
func (m *lengthModel) restrict(in, out LengthSpec) (missing []string, ok bool) {
	if in.literal() || out.literal() {
		m.split()
	}
	if in.literal() {
		m.each(func(t *lengthTable) { t.in, t.inW = in.parts() })
		m.maxIn, in = 0, nil
		for _, p := range m.all.in {
			m.maxIn = max(m.maxIn, p.hi-1)
		}
	}
	if out.literal() {
		m.each(func(t *lengthTable) { t.out, t.outW = out.parts() })
		out = nil
	}
	if in == nil && out == nil {
		return nil, true
	}
	mass := m.masses(in, out)
	fin, missIn := mass.missing(in, "input", func(i, j int) float64 { return mass.m[i][j] }, len(mass.m[0]))
	fout, missOut := mass.missing(out, "output", func(j, i int) float64 { return mass.m[i][j] }, len(mass.m))
	missing = append(missIn, missOut...)
	if !mass.fit(fin, fout) {
		return missing, false
	}
	m.weigh(in, out, fin, fout)
	return missing, true
}

// literal tells that every bucket is one length.
func (s LengthSpec) literal() bool {
	return s != nil && !slices.ContainsFunc(s, func(b LengthBucket) bool { return b.Hi-b.Lo != 1 })
}

// parts are the buckets as a distribution of their own, uniform inside.
func (s LengthSpec) parts() (list []*part, weights []float64) {
	sorted := slices.Clone(s)
	slices.SortFunc(sorted, func(a, b LengthBucket) int { return int(a.Lo - b.Lo) })
	for _, b := range sorted {
		if b.Share > 0 {
			list = append(list, newPart(span{b.Lo, b.Hi}, nil))
			weights = append(weights, b.Share)
		}
	}
	return list, weights
}

// each visits every table once.
func (m *lengthModel) each(visit func(t *lengthTable)) {
	for _, t := range m.hours {
		visit(t)
	}
	for i := range m.windows {
		visit(m.windows[i].t)
	}
	visit(m.all)
}

// split makes the two dimensions independent of each other.
func (m *lengthModel) split() {
	m.drift = nil
	m.each(func(t *lengthTable) { t.independent, t.cells, t.from = true, nil, nil })
}

// masses is the share of requests by input and output bucket.
type masses struct{ m [][]float64 }

// cut is what a spec leaves of a part: by bucket, the share of its weight. A nil spec is one bucket of everything.
func (p *part) cut(s LengthSpec) []float64 {
	if s == nil {
		return []float64{1}
	}
	out := make([]float64, len(s))
	total := 0.0
	for _, u := range p.subs {
		total += u.w[anyTurn]
		for i, b := range s {
			if lo, hi := max(u.lo, b.Lo), min(u.hi, b.Hi); hi > lo {
				out[i] += u.w[anyTurn] * float64(hi-lo) / float64(u.hi-u.lo)
			}
		}
	}
	for i := range out {
		if total > 0 {
			out[i] /= total
		}
	}
	return out
}

func (m *lengthModel) masses(in, out LengthSpec) masses {
	t := m.all
	cuts := func(parts []*part, s LengthSpec) (all [][]float64) {
		for _, p := range parts {
			all = append(all, p.cut(s))
		}
		return all
	}
	ci, co := cuts(t.in, in), cuts(t.out, out)
	ms := masses{m: make([][]float64, max(len(in), 1))}
	for i := range ms.m {
		ms.m[i] = make([]float64, max(len(out), 1))
	}
	add := func(i, o int, w float64) {
		for a, x := range ci[i] {
			for b, y := range co[o] {
				ms.m[a][b] += w * x * y
			}
		}
	}
	if !t.independent {
		for _, c := range t.cells {
			add(int(c.in), int(c.out), c.w)
		}
		return ms
	}
	for i := range t.in {
		for o := range t.out {
			add(i, o, t.inW[i]*t.outW[o])
		}
	}
	return ms
}

// missing are the wanted shares of the buckets that have requests, and the names of the others.
func (ms masses) missing(s LengthSpec, dim string, at func(i, j int) float64, others int) (shares []float64, names []string) {
	if s == nil {
		return []float64{1}, nil
	}
	shares = make([]float64, len(s))
	for i, b := range s {
		sum := 0.0
		for j := range others {
			sum += at(i, j)
		}
		if sum > 0 {
			shares[i] = b.Share
		} else if b.Share > 0 {
			names = append(names, fmt.Sprintf("%s lengths %s", dim, b))
		}
	}
	return shares, names
}

// String is the bucket as flags write it.
func (b LengthBucket) String() string {
	switch {
	case b.Hi-b.Lo == 1:
		return fmt.Sprint(b.Lo)
	case b.Hi == openEnd:
		return fmt.Sprintf("%d..", b.Lo)
	}
	return fmt.Sprintf("%d..%d", b.Lo, b.Hi)
}

const ipfRounds = 100

// fit turns wanted shares into factors of the buckets; false when no request satisfies them.
func (ms masses) fit(in, out []float64) bool {
	normalise := func(x []float64) bool {
		sum := 0.0
		for _, v := range x {
			sum += v
		}
		for i := range x {
			x[i] /= sum
		}
		return sum > 0
	}
	if !normalise(in) || !normalise(out) {
		return false
	}
	wantIn, wantOut := slices.Clone(in), slices.Clone(out)
	for i := range in {
		in[i] = b2f(in[i] > 0)
	}
	for j := range out {
		out[j] = b2f(out[j] > 0)
	}
	total := 0.0
	for range ipfRounds {
		total = 0
		for i := range in {
			sum := 0.0
			for j := range out {
				sum += ms.m[i][j] * out[j]
			}
			if in[i] = 0; sum > 0 {
				in[i] = wantIn[i] / sum
			}
		}
		for j := range out {
			sum := 0.0
			for i := range in {
				sum += ms.m[i][j] * in[i]
			}
			if out[j] = 0; sum > 0 {
				out[j] = wantOut[j] / sum
				total += wantOut[j]
			}
		}
	}
	return total > 0
}

func b2f(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// weigh cuts the parts at the buckets' edges and multiplies the weights by the buckets' factors.
func (m *lengthModel) weigh(in, out LengthSpec, fin, fout []float64) {
	done := map[*part]float64{}
	weighPart := func(p *part, s LengthSpec, f []float64) float64 {
		if s == nil {
			return 1
		}
		if ratio, ok := done[p]; ok {
			return ratio
		}
		var subs []sub
		before, after := 0.0, 0.0
		for _, u := range p.subs {
			before += u.w[anyTurn]
			for i, b := range s {
				lo, hi := max(u.lo, b.Lo), min(u.hi, b.Hi)
				if hi <= lo || f[i] == 0 {
					continue
				}
				k := f[i] * float64(hi-lo) / float64(u.hi-u.lo)
				subs = append(subs, sub{span: span{lo, hi}, w: u.w.times(k)})
				after += u.w[anyTurn] * k
			}
		}
		ratio := 0.0
		if before > 0 {
			ratio = after / before
		}
		if len(subs) > 0 {
			p.subs = subs
		}
		done[p] = ratio
		return ratio
	}
	m.each(func(t *lengthTable) {
		for i := range t.cells {
			c := &t.cells[i]
			c.w *= weighPart(t.in[c.in], in, fin) * weighPart(t.out[c.out], out, fout)
		}
		if t.independent {
			for i := range t.in {
				t.inW[i] *= weighPart(t.in[i], in, fin)
			}
			for i := range t.out {
				t.outW[i] *= weighPart(t.out[i], out, fout)
			}
		}
		t.index()
	})
}

// specModel draws lengths without a profile: uniform inside the buckets.
func specModel(in, out LengthSpec) *lengthModel {
	t := &lengthTable{independent: true}
	t.in, t.inW = in.parts()
	t.out, t.outW = out.parts()
	m := &lengthModel{all: t}
	for _, p := range t.in {
		m.maxIn = max(m.maxIn, p.hi-1)
	}
	return m
}
