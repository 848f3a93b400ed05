package stats_test

import (
	"testing"

	"tailgate/internal/rng"
	"tailgate/internal/stats"
)

// autoregression is x_i = phi·x_{i-1} + noise.
func autoregression(n int, phi float64) []float64 {
	r := rng.New(7, "ar")
	xs := make([]float64, n)
	for i := 1; i < n; i++ {
		xs[i] = phi*xs[i-1] + r.NormFloat64()
	}
	return xs
}

func TestBitsAboveAreTheBits(t *testing.T) {
	for _, n := range []int{0, 1, 63, 64, 65, 1000} {
		xs := autoregression(n, .5)
		limits := []float64{-1e9, 0, 1, 1e9}
		for k, got := range stats.BitsAbove(xs, limits) {
			var want stats.Bits
			for _, x := range xs {
				want.Append(x > limits[k])
			}
			if got.Len() != want.Len() || got.Ones() != want.Ones() || got.Tau() != want.Tau() {
				t.Errorf("n %d above %g: %d of %d, tau %g; want %d of %d, tau %g", n, limits[k], got.Ones(), got.Len(), got.Tau(),
					want.Ones(), want.Len(), want.Tau())
			}
		}
	}
}

func TestTauCoarseIsNearTau(t *testing.T) {
	for _, phi := range []float64{0, .9, .99} {
		for k, b := range stats.BitsAbove(autoregression(400_000, phi), []float64{0, 1}) {
			want, got := b.Tau(), b.TauCoarse(1<<11)
			if got < .8*want || got > 1.25*want {
				t.Errorf("phi %g limit %d: coarse tau %g, tau %g", phi, k, got, want)
			}
		}
	}
	short := stats.BitsAbove(autoregression(100, .5), []float64{0})[0]
	if short.TauCoarse(1<<11) != short.Tau() {
		t.Error("a short series has another tau")
	}
}
