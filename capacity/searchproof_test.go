package capacity_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"tailgate/capacity"
	"tailgate/internal/rng"
	"tailgate/internal/testshared"
	"tailgate/schemas"
	"tailgate/sim"
	"tailgate/synth"
)

// scenario is an engine of the study under one kind of arrivals, with the rates that it really holds.
type scenario struct {
	name       string
	spec       string
	burstiness float64
	ladder     float64 // requests/s
	// truth is the rate ÷ ladder at which the allowed share of requests is late.
	truth map[float64]float64
	late  func(schemas.EngineEvent) bool
}

const slo = 2 * time.Second

func lateToken(ev schemas.EngineEvent) bool { return time.Duration(ev.QueueNs+ev.PrefillNs) > slo }

// scenarios have the truths of the study; TestEnginesOfTheStudy of sim repeats them.
var scenarios = []scenario{
	{"slots, Poisson", sim.StudySlots, 1, 4.00, map[float64]float64{.05: .818, .01: .739}, lateToken},
	{"slots, bursty", sim.StudySlots, .3, 4.00, map[float64]float64{.05: .692, .01: .573}, lateToken},
	{"batches, Poisson", sim.StudyBatch, 1, 5.61, map[float64]float64{.05: .911, .01: .868}, lateToken},
	{"batches, bursty", sim.StudyBatch, .3, 5.61, map[float64]float64{.05: .818, .01: .734}, lateToken},
}

func (sc scenario) rows(r *rand.Rand) func() schemas.TraceRow {
	if sc.spec == sim.StudyBatch {
		return func() schemas.TraceRow { return row(lognormal(r, 1200, 1.2, 16, 8192), lognormal(r, 220, 1, 2, 4000)) }
	}
	return func() schemas.TraceRow { return row(1, 2) }
}

func row(in, out int32) schemas.TraceRow {
	return schemas.TraceRow{InputTokens: in, OutputTokens: &out}
}

// lognormal draws with the given mean and CV, rounded, within lo…hi.
func lognormal(r *rand.Rand, mean, cv float64, lo, hi int32) int32 {
	s2 := math.Log1p(cv * cv)
	x := mean * math.Exp(math.Sqrt(s2)*r.NormFloat64()-s2/2)
	return int32(min(max(math.Round(x), float64(lo)), float64(hi)))
}

// run measures one step: the engine starts empty, and each block counts the requests that were due in it.
func (sc scenario) run(t testing.TB, step capacity.Step, seed uint64) []capacity.Count {
	t.Helper()
	config, err := sim.ParseSpec(fmt.Sprintf("%s,seed=%d", sc.spec, seed))
	if err != nil {
		t.Error(err)
		return nil
	}
	engine, err := sim.NewCluster(config)
	if err != nil {
		t.Error(err)
		return nil
	}
	o := synth.ArrivalOptions{Kind: synth.Gamma, Rate: step.Rate, Burstiness: sc.burstiness, Duration: step.Warmup + step.Length, Seed: seed}
	if sc.burstiness == 1 {
		o.Kind, o.Burstiness = synth.Poisson, 0
	}
	at, err := synth.Arrivals(o)
	if err != nil {
		t.Error(err)
		return nil
	}
	counts := make([]capacity.Count, step.Blocks)
	place := func(i int64) int {
		if at[i] < step.Warmup {
			return -1
		}
		return min(int(int64(at[i]-step.Warmup)*int64(step.Blocks)/int64(step.Length)), step.Blocks-1)
	}
	emit := func(ev schemas.EngineEvent) {
		if j := place(ev.ID); ev.Done && j >= 0 && sc.late(ev) {
			counts[j].Violations++
		}
	}
	next := sc.rows(rng.New(seed, "lengths"))
	for i, when := range at {
		engine.Advance(when, emit)
		r := next()
		engine.Submit(when, int64(i), &r)
		if j := place(int64(i)); j >= 0 {
			counts[j].N++
		}
	}
	engine.Advance(math.MaxInt64, emit)
	return counts
}

// found is the outcome of one search.
type found struct {
	over    float64 // published rate ÷ truth − 1
	minutes float64
	state   string
	confirm int
}

func (sc scenario) search(t testing.TB, allowed float64, seed uint64) found {
	t.Helper()
	r := rng.New(seed, "ladder")
	// The ladder is off by 2 %.
	s, err := capacity.NewSearch(capacity.SearchOptions{
		Ladder: sc.ladder * (1 + .02*r.NormFloat64()), Rules: []capacity.SearchRule{{Name: "ttft", Allowed: allowed}}, Confirm: 28 * time.Minute,
	})
	if err != nil {
		t.Error(err)
		return found{}
	}
	for step, ok := s.Next(); ok; step, ok = s.Next() {
		if err := s.Add([][]capacity.Count{sc.run(t, step, rng.Hash(seed, uint64(step.Number)))}); err != nil {
			t.Error(err)
			return found{}
		}
	}
	a := s.Answer()
	return found{over: (a.SafeRate+a.Provisional)/(sc.ladder*sc.truth[allowed]) - 1, minutes: a.Measured.Minutes(), state: a.State, confirm: a.Confirms}
}

// tally sums up the searches of one scenario.
type tally struct {
	over, within, confirmed float64
	bias, sd                float64
	minutes                 []float64
}

func sum(all []found) tally {
	var s tally
	n := float64(len(all))
	for _, f := range all {
		if f.over > .02 {
			s.over += 1 / n
		}
		if f.over >= -.08 {
			s.within += 1 / n
		}
		if f.state == capacity.SearchConfirmed {
			s.confirmed += 1 / n
		}
		s.bias += f.over / n
		s.minutes = append(s.minutes, f.minutes)
	}
	for _, f := range all {
		s.sd += (f.over - s.bias) * (f.over - s.bias) / max(n-1, 1)
	}
	s.sd = math.Sqrt(s.sd)
	slices.Sort(s.minutes)
	return s
}

func (s tally) String() string {
	return fmt.Sprintf("over by 2 %%: %4.1f %%, within 8 %%: %5.1f %%, bias %+.1f %%, SD %.1f %%, confirmed %3.0f %%, minutes %.0f [%.0f]", 100*s.over,
		100*s.within, 100*s.bias, 100*s.sd, 100*s.confirmed, s.minutes[len(s.minutes)/2], s.minutes[len(s.minutes)*9/10])
}

// bisect is what people do without the search: six probes of 30 min, halving the range by the run's own percentile.
func (sc scenario) bisect(t testing.TB, allowed float64, seed uint64) found {
	low, high := .45*sc.ladder, 1.02*sc.ladder
	for i := range 6 {
		step := capacity.Step{Rate: (low + high) / 2, Warmup: 2 * time.Minute, Length: 28 * time.Minute, Blocks: 1}
		if c := sc.run(t, step, rng.Hash(seed, uint64(i)))[0]; c.Violations <= allowed*float64(c.N) {
			low = step.Rate
		} else {
			high = step.Rate
		}
	}
	return found{over: low/(sc.ladder*sc.truth[allowed]) - 1, minutes: 180}
}

func sideBySide(n int, do func(seed uint64) found) []found {
	out := make([]found, n)
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i := range out {
		g.Go(func() error { out[i] = do(uint64(1000 + i)); return nil })
	}
	_ = g.Wait() // no error is returned
	return out
}

// The search overstates the true rate by more than 2 % in at most 2 % (p95) and 5 % (p99) of searches, and comes
// within 8 % below it in at least 95 % and 85 %; half of them take 3 h of measured time. Bisection on equal time
// overstates more often. With a tenth of the searches the bounds are those that a search that keeps the shares
// breaks once in a hundred times.
func TestSearchErrorRates(t *testing.T) {
	full := testshared.ErrorRates(t)
	n := 6
	if full {
		n = 60
	}
	for _, tc := range []struct {
		name             string
		allowed          float64
		mostOver, within float64
		minutes          float64 // of half the searches
	}{
		{"p95", .05, .02, .95, 180},
		{"p99", .01, .05, .85, 225},
	} {
		var searches, bisections []found
		for _, sc := range scenarios {
			all := sideBySide(n, func(seed uint64) found { return sc.search(t, tc.allowed, seed) })
			t.Logf("%s, %-17s %s", tc.name, sc.name, sum(all))
			searches = append(searches, all...)
			all = sideBySide(n, func(seed uint64) found { return sc.bisect(t, tc.allowed, seed) })
			t.Logf("%s, %-17s %s by bisection", tc.name, sc.name, sum(all))
			bisections = append(bisections, all...)
		}
		s, b := sum(searches), sum(bisections)
		t.Logf("%s, all               %s", tc.name, s)
		t.Logf("%s, all               %s by bisection", tc.name, b)
		mostOver, outside := tc.mostOver, 1-tc.within
		if !full {
			mostOver, outside = rareShare(len(searches), mostOver), rareShare(len(searches), outside)
		}
		if s.over > mostOver {
			t.Errorf("%s: %.3f of the searches are over by 2 %%, at most %.3f may be", tc.name, s.over, mostOver)
		}
		if s.within < 1-outside {
			t.Errorf("%s: %.3f of the searches are within 8 %%, at least %.3f must be", tc.name, s.within, 1-outside)
		}
		if m := s.minutes[len(s.minutes)/2]; m > tc.minutes {
			t.Errorf("%s: half of the searches took %v min or more, want %v", tc.name, m, tc.minutes)
		}
		if b.over <= s.over {
			t.Errorf("%s: bisection overstates in %.3f of the searches, ours in %.3f", tc.name, b.over, s.over)
		}
	}
}

// rareShare is the share of n that a chance of p exceeds in one of a hundred times.
func rareShare(n int, p float64) float64 {
	at := 0.0
	for k := range n {
		lk, _ := math.Lgamma(float64(k + 1))
		lnk, _ := math.Lgamma(float64(n - k + 1))
		ln, _ := math.Lgamma(float64(n + 1))
		at += math.Exp(ln - lk - lnk + float64(k)*math.Log(p) + float64(n-k)*math.Log1p(-p))
		if at >= .99 {
			return float64(k) / float64(n)
		}
	}
	return 1
}

// M/M/c has its truth in closed form: P(W > t) = C·exp(−(cµ − λ)·t) with Erlang's C.
func TestSearchOnMMc(t *testing.T) {
	const slots, service, limit, allowed = 16, 4.0, 5.0, .05
	ladder := slots / service
	share := func(rate float64) float64 {
		a := rate * service
		b := 1.0
		for n := 1; n <= slots; n++ {
			b = a * b / (float64(n) + a*b)
		}
		rho := a / slots
		return b / (1 - rho*(1-b)) * math.Exp(-(ladder-rate)*limit)
	}
	low, high := .1*ladder, .999*ladder
	for range 60 {
		if mid := (low + high) / 2; share(mid) > allowed {
			high = mid
		} else {
			low = mid
		}
	}
	sc := scenario{"M/M/16", "sim:queue:service=4s,dist=exponential,slots=16", 1, ladder, map[float64]float64{allowed: low / ladder},
		func(ev schemas.EngineEvent) bool { return float64(ev.QueueNs) > limit*1e9 }}
	n := 12
	if testshared.ErrorRates(t) {
		n = 120
	}
	s := sum(sideBySide(n, func(seed uint64) found { return sc.search(t, allowed, seed) }))
	t.Logf("true rate %.3f of the capacity: %s", low/ladder, s)
	if s.over > rareShare(n, .02) || s.within < 1-rareShare(n, .05) || s.confirmed < .9 {
		t.Errorf("%s", s)
	}
}
