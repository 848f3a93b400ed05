package main

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tailgate/internal/rng"
)

func TestGapsHaveTheirLaw(t *testing.T) {
	for _, shape := range []float64{.3, 1, 2.5} {
		r, sum, squares := rng.New(1, "gaps"), 0.0, 0.0
		const n = 200_000
		for range n {
			x := scenario{shape: shape}.gap(r)
			sum, squares = sum+x, squares+x*x
		}
		mean := sum / n
		if cv2 := squares/n/mean/mean - 1; math.Abs(mean-1) > .02 || math.Abs(cv2*shape-1) > .04 {
			t.Errorf("shape %v: mean %v, squared CV %v", shape, mean, cv2)
		}
	}
}

// Inside a burst time passes faster, and the way does not matter: two steps are one.
func TestTimeInBursts(t *testing.T) {
	l := load{burst: burst{from: 100, length: 50, factor: 2}}
	for _, c := range []struct{ at, dt, want float64 }{
		{0, 10, 10}, {90, 10, 100}, {100, 10, 105}, {90, 20, 105}, {100, 100, 150}, {90, 120, 160}, {150, 5, 155}, {200, 5, 205},
	} {
		if got := l.after(c.at, c.dt); got != c.want {
			t.Errorf("%v after %v: %v, want %v", c.dt, c.at, got, c.want)
		}
		if got := l.after(l.after(c.at, c.dt/4), c.dt*3/4); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%v after %v in two steps: %v, want %v", c.dt, c.at, got, c.want)
		}
	}
}

// The document has a place for every section, and only what lies between its markers changes.
func TestSectionsOfTheDocument(t *testing.T) {
	doc, err := os.ReadFile("../../docs/statistics.md")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "doc.md")
	if err := os.WriteFile(path, doc, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, name := range sectionNames() {
		if err := replace(path, name, "new "+name+"\n"); err != nil {
			t.Error(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(got), "\nnew "); n != len(sections) || strings.Contains(string(got), "| E1P |") || !strings.HasPrefix(string(got), "# ") {
		t.Errorf("%d sections were replaced in\n%s", n, got)
	}
	if err := replace(path, "none", ""); err == nil {
		t.Error("a section that has no place is put somewhere")
	}
}

func BenchmarkSimulate(b *testing.B) {
	for _, s := range scenarios {
		b.Run(s.name, func(b *testing.B) {
			n := 0
			for i := range b.N {
				rs := s.simulate(load{rate: s.capacity * .85, minutes: 60, seed: uint64(i)})
				n += len(rs)
			}
		})
	}
}

func BenchmarkJudge(b *testing.B) {
	s := scenarios[0]
	rs := s.simulate(load{rate: s.rateAt(.05), minutes: 61, seed: 1})
	for b.Loop() {
		if _, err := judged(b.Context(), data(rs, warmupUs, 60), tailGate); err != nil {
			b.Fatal(err)
		}
	}
}
