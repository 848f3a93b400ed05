package synth_test

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tailgate/internal/testshared"
	"tailgate/profile"
	"tailgate/schemas"
	"tailgate/synth"
)

// clients writes files of two clients over two hours: a smooth one, and one whose gaps cluster and which stops after
// an hour.
func clients(t *testing.T) *profile.Profile {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var smooth, clustered strings.Builder
	for w := range 12 {
		fmt.Fprintf(&smooth, "%d,2,1,Gamma,1,0.5\n", 600*w)
		if w < 6 {
			fmt.Fprintf(&clustered, "%d,1,2,Gamma,0.25,4\n", 600*w)
		} else {
			fmt.Fprintf(&clustered, "%d,0,0,,0,0\n", 600*w)
		}
	}
	write("chunk-1-trace.csv", smooth.String())
	write("chunk-1-dataset.json", `{"0": {"input_tokens": "{100: 0.5, 2000: 0.5}", "output_tokens": "{10: 1.0}"}}`)
	write("chunk-2-trace.csv", clustered.String())
	write("chunk-2-dataset.json", `{"0": {"input_tokens": "{50: 1.0}", "output_tokens": "{300: 0.25, 400: 0.75}"}}`)
	s, err := profile.ReadServeGen(dir)
	if err != nil {
		t.Fatal(err)
	}
	return s.Profile()
}

func TestClientsOfServeGen(t *testing.T) {
	p := clients(t)
	const seeds = 40
	var sum, squares [2]float64 // counts of the clustered client in one window
	for seed := range uint64(seeds) {
		got := fromProfile(t, p, synth.ModelOptions{Seed: seed})
		counts := map[string]float64{}
		var first, second float64
		for _, r := range got.Rows {
			counts[*r.Tenant]++
			if r.Class != nil || r.Session != nil || r.HashIDs != nil {
				t.Fatalf("row %+v has what no client told", r)
			}
			switch *r.Tenant {
			case "client-1":
				if in := r.InputTokens; in != 100 && in != 2000 || *r.OutputTokens != 10 {
					t.Fatalf("client 1 sends %d and gets %d tokens", in, *r.OutputTokens)
				}
			case "client-2":
				if r.InputTokens != 50 || *r.OutputTokens != 300 && *r.OutputTokens != 400 {
					t.Fatalf("client 2 sends %d and gets %d tokens", r.InputTokens, *r.OutputTokens)
				}
				if r.ScheduledUs >= 3_600_000_000 {
					t.Fatalf("client 2 sends at %d µs, after its last window", r.ScheduledUs)
				}
				first += float64(b2i(r.ScheduledUs < 600_000_000))
				second += float64(b2i(r.ScheduledUs >= 600_000_000 && r.ScheduledUs < 1_200_000_000))
			}
		}
		if n := counts["client-1"]; math.Abs(n-14400) > 5*120 {
			t.Errorf("client 1 sends %v requests, want about 14400", n)
		}
		for i, n := range []float64{first, second} {
			sum[i] += n / seeds
			squares[i] += n * n / seeds
		}
	}
	// ServeGen's own generator gives every window its exact count. The gaps' law says 4 times the mean.
	for i := range sum {
		idc := (squares[i] - sum[i]*sum[i]) / sum[i]
		if math.Abs(sum[i]/600-1) > .06 || idc < 2 || idc > 6.5 {
			t.Errorf("window %d: %.1f requests with a dispersion of %.2f, want 600 and about 4", i, sum[i], idc)
		}
	}
}

// TestPublicClientsOfServeGen takes an hour of the clients beside the checkout.
func TestPublicClientsOfServeGen(t *testing.T) {
	s, err := profile.ReadServeGen(testshared.Path(t, "data/servegen/data/reason/deepseek-r1"))
	if err != nil {
		t.Fatal(err)
	}
	p := s.Profile()
	want := 0.0
	for _, r := range p.Rate {
		if r.Tenant == profile.All && r.BinStartUs >= 28_800e6 && r.BinStartUs < 32_400e6 {
			want += float64(r.Requests)
		}
	}
	n := 0.0
	_, _, err = synth.Generate(context.Background(), p, synth.ModelOptions{From: 8 * time.Hour, Duration: time.Hour}, func(*schemas.TraceRow) error {
		n++
		return nil
	})
	if err != nil || math.Abs(n/want-1) > .1 {
		t.Errorf("%v requests, want about %v (%v)", n, want, err)
	}
}
