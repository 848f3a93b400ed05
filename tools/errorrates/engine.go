package main

import (
	"math"
	"math/rand/v2"
	"time"

	"tailgate/internal/rng"
	"tailgate/schemas"
	"tailgate/sim"
)

// scenario is one of the four worlds of the study: an engine and the law of its arrivals.
type scenario struct {
	name     string
	spec     string  // of the engine
	shape    float64 // of the Gamma law of the gaps; 1 is Poisson
	capacity float64 // requests per second that the engine serves when saturated
	lengths  func(*rand.Rand) (in, out int32)
}

func slotLengths(*rand.Rand) (in, out int32) { return 1, 2 }

func batchLengths(r *rand.Rand) (in, out int32) {
	return lognormal(r, 1200, 1.2, 16, 8192), lognormal(r, 220, 1, 2, 4000)
}

// lognormal draws with the given mean and CV, rounded, within lo…hi.
func lognormal(r *rand.Rand, mean, cv float64, lo, hi int32) int32 {
	s2 := math.Log1p(cv * cv)
	x := mean * math.Exp(math.Sqrt(s2)*r.NormFloat64()-s2/2)
	return int32(min(max(math.Round(x), float64(lo)), float64(hi)))
}

// scenarios in the order of the tables. E1 serves 32 / 8 s; `errorrates -truth` measures both capacities to 0.3 %.
var scenarios = []scenario{
	{"E1P", sim.StudySlots, 1, 4.00, slotLengths},
	{"E1G", sim.StudySlots, .3, 4.00, slotLengths},
	{"E2P", sim.StudyBatch, 1, 5.61, batchLengths},
	{"E2G", sim.StudyBatch, .3, 5.61, batchLengths},
}

// request is what became of one request, in µs since the start.
type request struct {
	at, first, done int64
	in, planned     int32 // tokens
	out             int32 // tokens that came; they differ from the plan with noise only
}

// burst multiplies the rate from a time on for a while, in seconds.
type burst struct {
	from, length, factor float64
}

// load is what is sent to an engine.
type load struct {
	rate    float64 // per second
	minutes float64
	burst   burst  // none when its length is 0
	faults  string // beside the engine's spec
	seed    uint64
	// noise, when set, names a run of its own on the load: each answer is longer or shorter than planned by 5 % (SD).
	noise string
}

// simulate sends the load to the scenario's engine, which starts empty, and lets it drain. It steps the engine of sim by
// itself, without a recorder.
func (s scenario) simulate(l load) []request {
	// One event a request: its last carries the times of the first token.
	c, err := sim.ParseSpec(s.spec + ",chunk=1:1000000" + l.faults)
	if err != nil {
		panic(err)
	}
	c.Seed = rng.Hash(l.seed, 1)
	engine, err := sim.NewCluster(c)
	if err != nil {
		panic(err)
	}
	arrivals, lengths, noise := rng.New(l.seed, "arrivals"), rng.New(l.seed, "lengths"), rng.New(l.seed, "noise", l.noise)
	out := make([]request, 0, int(l.rate*l.minutes*66))
	emit := func(e schemas.EngineEvent) {
		r := &out[e.ID]
		r.done, r.first = e.AtNs/1000, r.at+(e.QueueNs+e.PrefillNs)/1000
	}
	for at := 0.0; ; {
		at = l.after(at, s.gap(arrivals)/l.rate)
		if at >= l.minutes*60 {
			break
		}
		now := time.Duration(at * 1e9)
		engine.Advance(now, emit)
		in, planned := s.lengths(lengths)
		tokens := planned
		if l.noise != "" {
			tokens = max(1, int32(math.Round(float64(planned)*(1+.05*noise.NormFloat64()))))
		}
		out = append(out, request{at: int64(now) / 1000, in: in, planned: planned, out: tokens})
		engine.Submit(now, int64(len(out)-1), &schemas.TraceRow{InputTokens: in, OutputTokens: &tokens})
	}
	engine.Advance(math.MaxInt64, emit)
	return out
}

// after is the time at which the operational time dt has passed since at: inside a burst it passes faster.
func (l load) after(at, dt float64) float64 {
	b := l.burst
	for _, part := range []struct{ until, factor float64 }{{b.from, 1}, {b.from + b.length, b.factor}} {
		if at < part.until {
			if room := (part.until - at) * part.factor; dt > room {
				at, dt = part.until, dt-room
				continue
			}
			return at + dt/part.factor
		}
	}
	return at + dt
}

// gap draws a gap of mean 1.
func (s scenario) gap(r *rand.Rand) float64 {
	if s.shape == 1 {
		return r.ExpFloat64()
	}
	return gamma(r, s.shape) / s.shape
}

// gamma draws from the Gamma law of scale 1 (Marsaglia and Tsang, 2000, with the power of a uniform for shapes below 1).
func gamma(r *rand.Rand, shape float64) float64 {
	boost := 1.0
	if shape < 1 {
		boost = math.Pow(1-r.Float64(), 1/shape)
		shape++
	}
	d := shape - 1./3
	c := 1 / math.Sqrt(9*d)
	for {
		x := r.NormFloat64()
		v := 1 + c*x
		if v <= 0 {
			continue
		}
		v = v * v * v
		if math.Log(1-r.Float64()) < x*x/2+d-d*v+d*math.Log(v) {
			return boost * d * v
		}
	}
}
