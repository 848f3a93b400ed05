package synth_test

import (
	"context"
	"fmt"
	"math"
	"os"
	"slices"
	"testing"

	"tailgate/internal/rng"
	"tailgate/internal/testshared"
	"tailgate/profile"
	"tailgate/schemas"
	"tailgate/synth"
	"tailgate/trace"
)

// The queue experiment: what a way to scale does to a tail. A trace is thinned to 2/3 and scaled back to 1.5 times
// that; a queue fed by the result should wait as it does when fed by the trace itself.

// queue is one first-come-first-served server. A request's work is its input and 20 times its output, in tokens.
type queue struct{ perToken float64 } // seconds

// queueFor is the server that t keeps busy for a share of the time.
func queueFor(t *trace.Trace, busy float64) queue {
	work := 0.0
	for i := range t.Rows {
		work += workOf(&t.Rows[i])
	}
	return queue{busy * float64(t.LengthUs()) / 1e6 / work}
}

func workOf(r *schemas.TraceRow) float64 {
	w := float64(r.InputTokens)
	if r.OutputTokens != nil {
		w += 20 * float64(*r.OutputTokens)
	}
	return w
}

// p99 is the nearest-rank 99th percentile of the waits for t, in seconds.
func (q queue) p99(t *trace.Trace) float64 {
	waits := make([]float64, len(t.Rows))
	free := 0.0
	for i := range t.Rows {
		at := float64(t.Rows[i].ScheduledUs) / 1e6
		waits[i] = max(free-at, 0)
		free = at + waits[i] + q.perToken*workOf(&t.Rows[i])
	}
	slices.Sort(waits)
	return waits[int(math.Ceil(.99*float64(len(waits))))-1]
}

// there is a way back to the rate before.
type wayBack func(t *testing.T, thin *trace.Trace, seed uint64) *trace.Trace

func sessionsBack(t *testing.T, thin *trace.Trace, seed uint64) *trace.Trace {
	return rescaled(t, thin, synth.Options{Scale: 1.5, Seed: seed, AllowDistorted: true})
}

func warpBack(t *testing.T, thin *trace.Trace, seed uint64) *trace.Trace {
	return rescaled(t, thin, synth.Options{Scale: 1.5, Mode: synth.ModeWarp, Seed: seed, AllowDistorted: true})
}

func modelBack(t *testing.T, thin *trace.Trace, seed uint64) *trace.Trace {
	t.Helper()
	p, err := profile.Compute(context.Background(), thin, profile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	res, err := synth.FromProfile(context.Background(), p, synth.ModelOptions{Scale: 1.5, Seed: seed})
	if err != nil {
		t.Fatal(err)
	}
	return res.Trace
}

func rescaled(t *testing.T, src *trace.Trace, o synth.Options) *trace.Trace {
	t.Helper()
	res, err := synth.Rescale(context.Background(), src, o)
	if err != nil {
		t.Fatal(err)
	}
	return res.Trace
}

const queueSeeds = 12

// thinned is src at 2/3 of its rate, once per seed.
func thinned(t *testing.T, src *trace.Trace) (out []*trace.Trace) {
	for seed := range uint64(queueSeeds) {
		out = append(out, rescaled(t, src, synth.Options{Scale: 2.0 / 3, Seed: 100 + seed, AllowDistorted: true}))
	}
	return out
}

// medianBack scales thinned traces back and returns the least, the median and the greatest p99 wait.
func medianBack(t *testing.T, thin []*trace.Trace, q queue, back wayBack) (least, median, greatest float64) {
	t.Helper()
	var waits []float64
	for seed, tr := range thin {
		waits = append(waits, q.p99(back(t, tr, 200+uint64(seed))))
	}
	slices.Sort(waits)
	n := len(waits)
	return waits[0], (waits[(n-1)/2] + waits[n/2]) / 2, waits[n-1]
}

// checkQueue holds session resampling to 25 % of the untouched trace, and shows that warping is optimistic.
func checkQueue(t *testing.T, src *trace.Trace, busy float64) {
	q := queueFor(src, busy)
	truth := q.p99(src)
	thin := thinned(t, src)
	lo, sessions, hi := medianBack(t, thin, q, sessionsBack)
	wlo, warped, whi := medianBack(t, thin, q, warpBack)
	t.Logf("p99 wait: untouched %.2f s; sessions %.2f [%.2f–%.2f]; warp %.2f [%.2f–%.2f]", truth, sessions, lo, hi, warped, wlo, whi)
	if math.Abs(sessions/truth-1) > .25 {
		t.Errorf("session resampling: median p99 wait %.2f s, untouched %.2f s: more than 25 %% off", sessions, truth)
	}
	if !(warped < .9*truth && warped < .9*sessions) {
		t.Errorf("warp: median p99 wait %.2f s is not well below the untouched %.2f s and session resampling's %.2f s", warped, truth, sessions)
	}
	if os.Getenv("TAILGATE_PROVE") != "full" {
		return
	}
	// One draw of a model is one more hour of the kind, so it scatters more than resampling does.
	mlo, model, mhi := medianBack(t, thin, q, modelBack)
	t.Logf("model %.2f [%.2f–%.2f]", model, mlo, mhi)
	if !(model > .7*truth && model < 1.6*truth) {
		t.Errorf("model: median p99 wait %.2f s, untouched %.2f s", model, truth)
	}
}

func TestQueueAfterThinningAndScalingBack(t *testing.T) {
	for _, c := range []struct {
		file string
		busy float64
	}{{"conv", .85}, {"code", .5}} {
		t.Run(c.file, func(t *testing.T) {
			path := testshared.Path(t, "data/azure-llm-2023/AzureLLMInferenceTrace_"+c.file+".csv")
			src, err := trace.Load(context.Background(), path, trace.Options{})
			if err != nil {
				t.Fatal(err)
			}
			checkQueue(t, src, c.busy)
		})
	}
}

// TestQueueOfKnownLaw needs no public data: an hour whose rate and mix of lengths move together.
func TestQueueOfKnownLaw(t *testing.T) {
	checkQueue(t, drifting(7), .85)
}

// drifting is an hour of requests in which two applications take turns: a steady one with long answers and one with
// short answers that comes in waves of minutes.
func drifting(seed uint64) *trace.Trace {
	r := rng.New(seed, "drifting")
	t := &trace.Trace{Meta: trace.Meta{Name: "drifting", Unit: trace.UnitMicros, LengthUs: 3_600_000_000}}
	wave := 1.0
	for second := range int64(3600) {
		if second%60 == 0 {
			wave = math.Exp(.7*r.NormFloat64() - .245)
		}
		for at := r.ExpFloat64() / (1.5 + 4*wave); at < 1; at += r.ExpFloat64() / (1.5 + 4*wave) {
			in, out := 200+r.Int32N(1200), 5+r.Int32N(120)
			if r.Float64() < 1.5/(1.5+4*wave) {
				in, out = 50+r.Int32N(500), 200+r.Int32N(500)
			}
			i := int64(len(t.Rows))
			t.Rows = append(t.Rows, schemas.TraceRow{Row: i, SourceRow: i, ScheduledUs: second*1_000_000 + int64(at*1e6), InputTokens: in, OutputTokens: &out,
				Session: ptr(fmt.Sprintf("s_%d", i))})
		}
	}
	return t
}
