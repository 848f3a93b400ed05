package stats_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"tailgate/internal/stats"
)

func rnd() *rand.Rand { return rand.New(rand.NewPCG(1, 2)) }

func TestRankIsTheCeilingWithoutRoundingError(t *testing.T) {
	for _, c := range []struct {
		n    int
		p    float64
		want int
	}{
		{0, .5, 0}, {1, .5, 1}, {10, .5, 5}, {10, .95, 10}, {100, .99, 99}, {100, .07, 7}, {1000, .999, 999},
		{1000, .995, 995}, {990, .99, 981}, {1 << 40, .5, 1 << 39}, {10_000_000_000, .999, 9_990_000_000},
	} {
		if got := stats.Rank(c.n, c.p); got != c.want {
			t.Errorf("Rank(%d, %v) = %d, want %d", c.n, c.p, got, c.want)
		}
	}
}

func TestSelectAgreesWithSorting(t *testing.T) {
	r := rnd()
	for _, n := range []int{1, 2, 63, 64, 65, 500, 4000} {
		for _, spread := range []int{1, 3, 1000000} {
			xs := make([]float64, n)
			for i := range xs {
				xs[i] = float64(r.IntN(spread))
			}
			if spread == 1000000 {
				slices.Sort(xs) // the order that hurts simple pivots
			}
			want := slices.Sorted(slices.Values(xs))
			ks := []int{n - 1, 0, n / 2, n * 9 / 10, n / 2}
			stats.Select(xs, ks...)
			for _, k := range ks {
				if xs[k] != want[k] {
					t.Fatalf("n=%d spread=%d: rank %d is %v, want %v", n, spread, k, xs[k], want[k])
				}
			}
			slices.Sort(xs)
			if !slices.Equal(xs, want) {
				t.Fatalf("n=%d: values were lost", n)
			}
		}
	}
}

// binomialUpTo is P(X <= k) for X ~ Binomial(n, p), summed term by term.
func binomialUpTo(k, n int, p float64) float64 {
	sum := 0.0
	for i := 0; i <= k; i++ {
		a, _ := math.Lgamma(float64(n + 1))
		b, _ := math.Lgamma(float64(i + 1))
		c, _ := math.Lgamma(float64(n - i + 1))
		sum += math.Exp(a - b - c + float64(i)*math.Log(p) + float64(n-i)*math.Log1p(-p))
	}
	return sum
}

func TestBoundsAreThoseOfTheBinomial(t *testing.T) {
	for _, c := range []struct{ k, n int }{{0, 10}, {1, 10}, {9, 10}, {5, 299}, {0, 299}, {30, 1000}, {3, 20000}} {
		v := float64(c.k) / float64(c.n)
		up := stats.Upper(float64(c.n), v, .95)
		if got := binomialUpTo(c.k, c.n, up); math.Abs(got-.05) > 1e-6 {
			t.Errorf("%d of %d: P(X <= k) at the upper bound %v is %v, want .05", c.k, c.n, up, got)
		}
		if c.k == 0 {
			continue
		}
		lo := stats.Lower(float64(c.n), v, .95)
		if got := 1 - binomialUpTo(c.k-1, c.n, lo); math.Abs(got-.05) > 1e-6 {
			t.Errorf("%d of %d: P(X >= k) at the lower bound %v is %v, want .05", c.k, c.n, lo, got)
		}
	}
	// No hit in n trials: 1 − .05^(1/n); the 299 trials that a p99 needs.
	if up := stats.Upper(299, 0, .95); math.Abs(up-(1-math.Pow(.05, 1.0/299))) > 1e-9 || up > .01 {
		t.Errorf("upper bound of 0 in 299 is %v", up)
	}
}

func TestBoundsAtTheEdges(t *testing.T) {
	if stats.Upper(0, 0, .95) != 1 || stats.Lower(0, 0, .95) != 0 {
		t.Error("no trials must bound nothing")
	}
	if stats.Upper(7, 1, .95) != 1 || stats.Lower(7, 0, .95) != 0 {
		t.Error("all or none must reach the end of the scale")
	}
	for _, n := range []float64{.3, 1, 2.5, 1e4, 1e8} {
		for _, v := range []float64{0, 1e-7, .01, .5, .999, 1} {
			lo, up := stats.Lower(n, v, .95), stats.Upper(n, v, .95)
			if math.IsNaN(lo) || math.IsNaN(up) || lo > v || up < v || lo < 0 || up > 1 {
				t.Errorf("n=%v v=%v: [%v, %v]", n, v, lo, up)
			}
		}
	}
}

func TestTrialsForUpperIsTheSmallest(t *testing.T) {
	n, ok := stats.TrialsForUpper(0, .01, .95)
	if !ok || math.Abs(n-math.Log(.05)/math.Log(.99)) > 1e-3 {
		t.Errorf("0 seen against 1 %%: %v trials", n)
	}
	n, ok = stats.TrialsForUpper(.004, .01, .95)
	if !ok || stats.Upper(n, .004, .95) > .01 || stats.Upper(n*.999, .004, .95) <= .01 {
		t.Errorf("0.4 %% seen against 1 %%: %v trials", n)
	}
	if _, ok := stats.TrialsForUpper(.01, .01, .95); ok {
		t.Error("a share at the limit can never be bounded by it")
	}
}

// geyerByHand follows the published recipe with no shortcut.
func geyerByHand(x []float64) float64 {
	n, mean := len(x), 0.0
	for _, v := range x {
		mean += v / float64(n)
	}
	cov := func(k int) (c float64) {
		for i := 0; i+k < n; i++ {
			c += (x[i] - mean) * (x[i+k] - mean) / float64(n)
		}
		return c
	}
	var gammas []float64
	for m := 0; 2*m+1 < n; m++ {
		g := (cov(2*m) + cov(2*m+1)) / cov(0)
		if g <= 0 {
			break
		}
		if m > 0 {
			g = min(g, gammas[m-1])
		}
		gammas = append(gammas, g)
	}
	sum := 0.0
	for _, g := range gammas {
		sum += g
	}
	return max(1, 2*sum-1)
}

func TestTauFollowsTheRecipe(t *testing.T) {
	r := rnd()
	for _, n := range []int{2, 3, 63, 64, 65, 128, 700} {
		for _, stay := range []float64{.5, .9, .98} {
			var b stats.Bits
			x := make([]float64, n)
			on := false
			for i := range x {
				if r.Float64() > stay {
					on = !on
				}
				b.Append(on)
				if on {
					x[i] = 1
				}
			}
			if b.Ones() == 0 || b.Ones() == n {
				continue
			}
			want := geyerByHand(x)
			if got := b.Tau(); math.Abs(got-want) > 1e-6*want {
				t.Errorf("n=%d stay=%v: Bits.Tau %v, want %v", n, stay, got, want)
			}
			if got := stats.TauOf(x); math.Abs(got-want) > 1e-6*want {
				t.Errorf("n=%d stay=%v: TauOf %v, want %v", n, stay, got, want)
			}
		}
	}
}

func TestTauOfAnAutoregression(t *testing.T) {
	r := rnd()
	const phi = .8
	x := make([]float64, 200_000)
	for i := 1; i < len(x); i++ {
		x[i] = phi*x[i-1] + r.NormFloat64()
	}
	if got, want := stats.TauOf(x), (1+phi)/(1-phi); math.Abs(got-want) > .1*want {
		t.Errorf("tau %v, theory says %v", got, want)
	}
}

func TestTauOfConstantsIsOne(t *testing.T) {
	var none, all, empty stats.Bits
	for range 100 {
		none.Append(false)
		all.Append(true)
	}
	for name, got := range map[string]float64{"none": none.Tau(), "all": all.Tau(), "empty": empty.Tau(),
		"slice": stats.TauOf([]float64{2, 2, 2}), "nil": stats.TauOf(nil)} {
		if got != 1 {
			t.Errorf("%s: tau %v", name, got)
		}
	}
	if empty.Share() != 0 || all.Share() != 1 || all.Len() != 100 {
		t.Error("counts are wrong")
	}
}

func TestTheilSen(t *testing.T) {
	for _, c := range []struct {
		y    []float64
		want float64
	}{
		{nil, 0}, {[]float64{3}, 0}, {[]float64{1, 3}, 2}, {[]float64{5, 4, 3, 2}, -1},
		{[]float64{0, 1, 2, 3, 4, 5, 900, 7, 8, 9}, 1}, // one wild value does not move it
		{[]float64{0, 1, 0}, 0},
	} {
		if got := stats.TheilSen(c.y); got != c.want {
			t.Errorf("%v: slope %v, want %v", c.y, got, c.want)
		}
	}
}

func TestKS(t *testing.T) {
	r := rnd()
	a, b := make([]float64, 137), make([]float64, 91)
	for i := range a {
		a[i] = float64(r.IntN(40))
	}
	for i := range b {
		b[i] = float64(r.IntN(40)) + 5
	}
	want := 0.0
	share := func(xs []float64, x float64) (f float64) {
		for _, v := range xs {
			if v <= x {
				f++
			}
		}
		return f / float64(len(xs))
	}
	for _, x := range append(slices.Clone(a), b...) {
		want = max(want, math.Abs(share(a, x)-share(b, x)))
	}
	if got := stats.KS(a, b); math.Abs(got-want) > 1e-12 {
		t.Errorf("KS %v, want %v", got, want)
	}
	if stats.KS(a, a) != 0 || stats.KS(nil, b) != 0 || stats.KS([]float64{1}, []float64{2}) != 1 {
		t.Error("KS at the edges")
	}
}

func BenchmarkSelect(b *testing.B) {
	r := rnd()
	src, xs := make([]float64, 1_000_000), make([]float64, 1_000_000)
	for i := range src {
		src[i] = math.Round(r.ExpFloat64() * 1e5)
	}
	for b.Loop() {
		copy(xs, src)
		stats.Select(xs, 500_000, 900_000, 950_000, 990_000, 999_000, 999_999)
	}
}
