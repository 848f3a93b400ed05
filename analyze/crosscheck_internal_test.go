package analyze

import (
	"math"
	"testing"
)

func TestCrossChecksByHand(t *testing.T) {
	// 24 values in 12 batches of two; limit 400, quarter 100. Clusters: 500 (150 keeps it open) 600, then 700.
	values := []float64{50, 500, 150, 600, 90, 90, 90, 90, 90, 90, 90, 700, 90, 90, 90, 90, 90, 90, 90, 90, 90, 90, 90, 90}
	s := &rowSample{values: values}
	c := s.crossCheck(Limit{Op: "<=", Value: 400}, 1, .95)
	if c.Clusters != 2 {
		t.Errorf("%d clusters", c.Clusters)
	}
	// Shares of the batches: three of .5, nine of 0: mean .125, s = sqrt((3·.375² + 9·.125²)/11) = .226134; t(.95, 11) = 1.795885.
	near(t, "batch means", float64(c.BatchUpper), .125+1.795885*.226134/math.Sqrt(12))
	// Sizes 2 and 1, added max(2, 24/60·15 = 6) = 6: (3 + 6 + 1.644854·sqrt(4+1+36))/24.
	near(t, "clusters", float64(c.ClusterUpper), (9+1.644854*math.Sqrt(41))/24)
	near(t, "batch length", float64(c.BatchMinutes), 1./12)
	if c := (&rowSample{values: values[:11]}).crossCheck(Limit{Op: "<=", Value: 400}, 0, .95); c.BatchUpper.Known() || c.ClusterUpper.Known() {
		t.Errorf("bounds of too little: %+v", c)
	}
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-5 {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}
