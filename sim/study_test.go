package sim_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"tailgate/internal/rng"
	"tailgate/internal/testshared"
	"tailgate/schemas"
	"tailgate/sim"
)

// erlangC is the probability of waiting in M/M/c with the offered load a = λ/µ (Erlang, 1917).
func erlangC(c int, a float64) float64 {
	b := 1.0 // Erlang B by its recursion
	for n := 1; n <= c; n++ {
		b = a * b / (float64(n) + a*b)
	}
	rho := a / float64(c)
	return b / (1 - rho*(1-b))
}

// Poisson arrivals and exponential service on c slots: the share that waits is Erlang's C, a wait lasts
// 1/(cµ − λ) in the mean, and P(W > t) = C·exp(−(cµ − λ)·t).
func TestWaitsOfMMc(t *testing.T) {
	testshared.NotUnderRace(t, "virtual time, in one thread")
	type queue struct {
		slots int
		load  float64
	}
	// Near saturation waits are alike for long, and 2 % takes many more requests.
	queues := []queue{{1, .5}, {4, .5}, {16, .6}}
	n := prove(t, 1_000_000, 15_000_000)
	if n > 1_000_000 {
		queues = append(queues, queue{1, .8}, queue{4, .8}, queue{32, .85})
	}
	for _, tc := range queues {
		const service = .1
		rate := tc.load * float64(tc.slots) / service
		c := mustCluster(t, mustConfig(t, fmt.Sprintf("sim:queue:service=100ms,dist=exponential,slots=%d,seed=5", tc.slots)))
		one := row(1, 1)
		drain := (1 - tc.load) * float64(tc.slots) / service
		limit := int64(1e9 / drain)
		var sum, waited, long float64
		drive(c, poisson(5, n, rate, func(int) schemas.TraceRow { return one }), func(ev schemas.EngineEvent) {
			sum += float64(ev.QueueNs) / 1e9
			if ev.QueueNs > 0 {
				waited++
			}
			if ev.QueueNs > limit {
				long++
			}
		})
		p := erlangC(tc.slots, tc.load*float64(tc.slots))
		name := fmt.Sprintf("M/M/%d at load %v: ", tc.slots, tc.load)
		near(t, name+"share that waits", waited/float64(n), p, .02)
		near(t, name+"mean wait", sum/float64(n), p/drain, .02)
		near(t, name+"P(W > 1/(cµ − λ))", long/float64(n), p/math.E, .03)
		s := c.Stats()[0]
		near(t, name+"mean service", s.Busy.Seconds()/float64(n), service, .005)
	}
}

// prove returns the size of a proof: small in every test run, full with TAILGATE_PROVE=full.
func prove(t testing.TB, small, full int) int {
	t.Helper()
	if os.Getenv("TAILGATE_PROVE") == "full" {
		return full
	}
	return small
}

func TestServiceTimesFollowTheirLaw(t *testing.T) {
	testshared.NotUnderRace(t, "virtual time, in one thread")
	const n = 200_000
	for spec, want := range map[string]struct{ mean, cv float64 }{
		"dist=exponential":                         {.1, 1},
		"dist=lognormal,cv=1":                      {.1, 1},
		"dist=lognormal,cv=0.3":                    {.1, .3},
		"dist=exponential,max_service=100ms":       {.1 * (1 - 1/math.E), .5861},
		"dist=fixed":                               {.1, 0},
		"dist=exponential,prefill=1ms,slow=0:2@0s": {.2, 1},
	} {
		c := mustCluster(t, mustConfig(t, "sim:queue:service=100ms,slots=1000000,"+spec))
		var sum, squares float64
		one := row(1, 1)
		drive(c, poisson(1, n, 1000, func(int) schemas.TraceRow { return one }), func(ev schemas.EngineEvent) {
			x := float64(ev.PrefillNs) / 1e9
			sum += x
			squares += x * x
		})
		mean := sum / n
		near(t, spec+": mean", mean, want.mean, .01)
		if cv := math.Sqrt(max(0, squares/n/mean/mean-1)); math.Abs(cv-want.cv) > .02 {
			t.Errorf("%s: CV %v, want %v", spec, cv, want.cv)
		}
	}
}

func TestFirstTokenComesAfterThePrefill(t *testing.T) {
	var got []int64
	for _, ev := range collect(mustCluster(t, mustConfig(t, "sim:queue:service=1s,prefill=100ms,dist=fixed")), arrival{row: row(1, 4)}) {
		got = append(got, ev.AtNs/1e6)
	}
	if fmt.Sprint(got) != "[100 400 700 1000]" {
		t.Errorf("tokens at %v ms", got)
	}
}

// lognormal draws with the given mean and CV, rounded, within lo…hi.
func lognormal(r *rand.Rand, mean, cv float64, lo, hi int32) int32 {
	s2 := math.Log1p(cv * cv)
	x := mean * math.Exp(math.Sqrt(s2)*r.NormFloat64()-s2/2)
	return int32(min(max(math.Round(x), float64(lo)), float64(hi)))
}

// The engines of the study serve what they are said to, and at its rates the share of first tokens after 2 s is
// the one that it found: at 0.818 and 0.739 of the capacity 5 % and 1 % with slots, at 0.911 and 0.868 with
// batches (Poisson arrivals; its rates are known to 0.5 %, and the share moves 16 to 35 times as fast).
func TestEnginesOfTheStudy(t *testing.T) {
	testshared.NotUnderRace(t, "virtual time, in one thread")
	hours := float64(prove(t, 4, 96))
	for name, tc := range map[string]struct {
		spec            string
		capacity, error float64
		p95, p99        float64 // rates ÷ capacity at which 5 % and 1 % are late
	}{
		"slots": {sim.StudySlots, 4.00, .02, .818, .739},
		"batch": {sim.StudyBatch, 5.61, .02, .911, .868},
	} {
		r := rng.New(1, "lengths")
		lengths := func(int) schemas.TraceRow {
			if name == "slots" {
				return row(1, 2)
			}
			return row(lognormal(r, 1200, 1.2, 16, 8192), lognormal(r, 220, 1, 2, 4000))
		}
		// Saturated: everything is there at once.
		c := mustCluster(t, mustConfig(t, tc.spec))
		n, end := 20_000, time.Duration(0)
		drive(c, poisson(1, n, 1e6, lengths), func(ev schemas.EngineEvent) { end = time.Duration(ev.AtNs) })
		near(t, name+": capacity", float64(n)/end.Seconds(), tc.capacity, tc.error)

		for share, rate := range map[float64]float64{.05: tc.p95 * tc.capacity, .01: tc.p99 * tc.capacity} {
			n := int(rate * hours * 3600)
			c := mustCluster(t, mustConfig(t, tc.spec))
			var late, counted float64
			drive(c, poisson(7, n, rate, lengths), func(ev schemas.EngineEvent) {
				if ev.Done {
					counted++
					if ev.QueueNs+ev.PrefillNs > 2e9 {
						late++
					}
				}
			})
			t.Logf("%s at %.3f/s: %.4f late over %v h, the study has %v", name, rate, late/counted, hours, share)
			if got := late / counted; hours > 10 && (got < share*.75 || got > share*1.33) {
				t.Errorf("%s at %.3f/s: %.4f late, the study has %v", name, rate, got, share)
			}
		}
	}
}
