package synth_test

import (
	"context"
	"math"
	"testing"

	"tailgate/internal/testshared"
	"tailgate/profile"
	"tailgate/schemas"
	"tailgate/synth"
	"tailgate/trace"
)

// TestPublicTracesComeBack: profile → synth → profile of public traces. What differs is named in docs/synth.md.
func TestPublicTracesComeBack(t *testing.T) {
	for _, c := range []struct {
		file  string
		laws  bool    // the gaps have a law that the profile fits well
		joint float64 // distance of the dependence of lengths
		// Of sessions: later turns follow from turns before, and a few hundred of them carry the figures.
		hits float64 // distance of the hit curve
		ks   float64 // of lengths, above the limit of two samples
	}{
		{"azure-llm-2023/AzureLLMInferenceTrace_conv.csv", true, .05, 0, 0},
		{"azure-llm-2023/AzureLLMInferenceTrace_code.csv", false, .05, 0, 0},
		{"mooncake-fast25/conversation_trace.jsonl", true, .05, .04, .03},
		{"mooncake-fast25/synthetic_trace.jsonl", true, .1, .07, .07},
	} {
		t.Run(c.file, func(t *testing.T) {
			src, err := trace.Load(context.Background(), testshared.Path(t, "data/"+c.file), trace.Options{})
			if err != nil {
				t.Fatal(err)
			}
			p := profileOf(t, src)
			got := fromProfile(t, p, synth.ModelOptions{Seed: 1})
			back := profileOf(t, got)
			if c.laws {
				sameArrivals(t, p, back)
			} else {
				sameDispersion(t, p, back)
			}
			for name, of := range map[string]func(*schemas.TraceRow) float64{"inputs": inputOf, "outputs": outputOf} {
				if d, limit := ks(binned(column(src, of)), binned(column(got, of))); d > limit+c.ks {
					t.Errorf("%s: KS %.4f, limit %.4f", name, d, limit+c.ks)
				}
			}
			a, b := p.JointStat[0], back.JointStat[0]
			if math.Abs(*a.Spearman-*b.Spearman) > c.joint || math.Abs(*a.MINats-*b.MINats) > c.joint {
				t.Errorf("Spearman %.3f and information %.3f nats, want %.3f and %.3f", *b.Spearman, *b.MINats, *a.Spearman, *a.MINats)
			}
			// Three standard errors of the difference of two rank correlations over that many minutes.
			rho, minutes := *a.SpearmanRateOut, float64(src.LengthUs())/60e6
			if limit := 3 * math.Sqrt2 * (1 - rho*rho) / math.Sqrt(minutes-1); math.Abs(rho-*b.SpearmanRateOut) > limit {
				t.Errorf("requests and mean output in whole minutes: %.3f, want %.3f ± %.3f", *b.SpearmanRateOut, rho, limit)
			}
			if c.hits > 0 {
				sameHits(t, p, back, c.hits)
			}
		})
	}
}

// binned rounds lengths down to the bins of a profile, 16 to the octave: what lies inside one, it does not tell.
func binned(x []float64) []float64 {
	for i, v := range x {
		if v >= 32 {
			step := math.Exp2(math.Floor(math.Log2(v)) - 4)
			x[i] = math.Floor(v/step) * step
		}
	}
	return x
}

// sameDispersion holds the variation of gaps and counts where no law of gaps fits.
func sameDispersion(t *testing.T, p, back *profile.Profile) {
	t.Helper()
	if a, b := *p.IAT[0].CVRaw, *back.IAT[0].CVRaw; math.Abs(b/a-1) > .15 {
		t.Errorf("CV of the gaps %.2f, want %.2f", b, a)
	}
	for i := range p.Dispersion {
		d, e := &p.Dispersion[i], &back.Dispersion[i]
		if d.Tenant == profile.All && d.IDC != nil && math.Abs(*e.IDC / *d.IDC - 1) > .15 {
			t.Errorf("IDC at %d ms is %.2f, want %.2f", d.ScaleUs/1000, *e.IDC, *d.IDC)
		}
	}
}
