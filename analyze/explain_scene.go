package analyze

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"tailgate/internal/stats"
)

// act is one request as an explanation sees it. Times are µs on the clock of its scene, noTime where they are not known.
type act struct {
	i        int32 // row of the data
	scene    int32
	target   int32 // code, noWord when unknown
	measured bool  // counts in tails, and was sent or refused
	ok       bool

	at, sent, first, last, end int64
	queue, prefill             int64 // told by the server
	input, output              int32 // tokens by usage, else as asked; noCount when unknown
	cached, expected           int32 // 0 when not told
}

// fresh counts the prompt tokens that had to be computed.
func (a *act) fresh() int64 { return max(0, int64(a.input)-int64(a.cached)) }

// afterQueue is the time from the queue to the first token: the prefill, where the server tells it, else all of the wait that it
// does not call its queue. The first token has come.
func (a *act) afterQueue() float64 {
	switch {
	case a.prefill != noTime:
		return float64(a.prefill)
	case a.queue != noTime:
		return float64(a.first - a.sent - a.queue)
	}
	return float64(a.first - a.sent)
}

// asked counts the prompt tokens that an endless cache would have had to compute, where the trace tells them.
func (a *act) asked() int64 {
	return min(a.fresh(), max(0, int64(a.input)-int64(a.expected)))
}

// scene is what one clock covers: a run in all its shards, warm-up included, with what its servers showed.
type scene struct {
	x        *explainer
	acts     []act // in order of the schedule
	base     int   // of acts in those of all scenes
	from, to int64 // first scheduled, last known instant
	byTarget map[int32][]int32
	gauges   map[int32]*gauges // by target; noWord = all targets together
	pace     *pace
}

// stage builds the scenes and everything that is the same for all buckets.
func (x *explainer) stage(ctx context.Context, out *Explanation) error {
	d := x.v.d
	measured := make([]bool, d.n)
	for _, i := range d.tails(x.v.rows) {
		measured[i] = d.status.at(i) != statusNotSent
	}
	clocks, _ := d.clocks()
	byClock := map[int][]act{}
	for i := range int32(d.n) {
		c := clocks[d.input.at(i)]
		byClock[c] = append(byClock[c], d.act(i, measured[i]))
	}
	for _, c := range slices.Sorted(maps.Keys(byClock)) {
		acts := byClock[c]
		slices.SortStableFunc(acts, func(a, b act) int { return cmp.Compare(a.at, b.at) })
		s := &scene{x: x, acts: acts, base: len(x.acts), byTarget: map[int32][]int32{}, from: acts[0].at}
		for k := range acts {
			a := &acts[k]
			a.scene = int32(len(x.scenes))
			s.byTarget[a.target] = append(s.byTarget[a.target], int32(k))
			s.to = max(s.to, a.at, a.end, a.last)
		}
		if err := s.readGauges(ctx, c, clocks, out); err != nil {
			return err
		}
		x.scenes = append(x.scenes, s)
		x.acts = append(x.acts, acts...)
	}
	for k, s := range x.scenes {
		end := len(x.acts)
		if k+1 < len(x.scenes) {
			end = x.scenes[k+1].base
		}
		s.acts = x.acts[s.base:end]
	}
	x.of = make([]int32, d.n)
	for k := range x.acts {
		x.of[x.acts[k].i] = int32(k)
	}
	x.expect()
	x.usual(out)
	x.suspect(out)
	return nil
}

func (d *Data) act(i int32, measured bool) act {
	a := act{i: i, target: d.target.at(i), measured: measured, ok: d.ok(i), at: d.scheduled.at(i), sent: d.sent.at(i),
		first: d.firstToken(i), last: d.last.at(i), end: d.done(i), queue: d.queue.at(i), prefill: noTime,
		input: d.inputTokens.at(i), output: d.outputTokens.at(i)}
	if a.input == noCount {
		a.input = d.inputLength.at(i)
	}
	if a.output == noCount {
		a.output = d.outputLength.at(i)
	}
	if d.wide {
		a.prefill, a.cached = d.prefill.at(i), max(0, d.cached.at(i))
	}
	return a
}

// pace is what is usual in a run: of its successful requests that count.
type pace struct {
	tpot    float64 // µs, median; NaN when unknown
	queue   float64 // µs, median
	prefill map[int]float64
	told    bool // servers tell the queue time of most requests
}

// lengthBin groups prompts by half octaves of the tokens to compute.
func lengthBin(fresh int64) int { return int(math.Round(2 * math.Log2(float64(max(1, fresh))))) }

// usual measures the pace of each scene, and says what had to be inferred.
func (x *explainer) usual(out *Explanation) {
	inferred := 0
	for _, s := range x.scenes {
		p := &pace{prefill: map[int]float64{}, tpot: math.NaN()}
		var tpots, queues []float64
		waits := map[int][]float64{}
		ok, told := 0, 0
		for k := range s.acts {
			a := &s.acts[k]
			if !a.ok || !a.measured || a.first == noTime || a.sent == noTime {
				continue
			}
			ok++
			if t := x.v.d.value(tpot, a.i); !math.IsNaN(t) {
				tpots = append(tpots, t)
			}
			if a.queue != noTime {
				told++
				queues = append(queues, float64(a.queue))
			}
			waits[lengthBin(a.fresh())] = append(waits[lengthBin(a.fresh())], a.afterQueue())
		}
		p.told = 2*told >= ok && told > 0
		q := .5
		if !p.told && ok > 0 {
			// A prompt that finds the server free waits for nothing but its own prefill.
			q = .2
			inferred++
		}
		for bin, w := range waits {
			slices.Sort(w)
			p.prefill[bin] = w[stats.Rank(len(w), q)-1]
		}
		if len(tpots) > 0 {
			p.tpot = medianOf(tpots)
		}
		if len(queues) > 0 {
			p.queue = medianOf(queues)
		}
		s.pace = p
	}
	if inferred > 0 {
		out.Inferred = append(out.Inferred, "server queue and prefill: the servers do not tell them; a request's prefill is taken as that of the "+
			"fastest fifth of prompts of its length, the rest of its wait as the queue")
	}
}

// usualPrefill is the usual time from the queue to the first token for a prompt, by the nearest length that was seen.
func (p *pace) usualPrefill(fresh int64) float64 {
	bin := lengthBin(fresh)
	for away := range 64 {
		for _, b := range [2]int{bin - away, bin + away} {
			if w, ok := p.prefill[b]; ok {
				return w * math.Pow(2, float64(bin-b)/2)
			}
		}
	}
	return 0
}

// window is the part of the run that may make a request break a limit of a family. It is set by what was asked and not by how
// long it took, or the slow ones would meet more only for being slow: from its send for as long as the limit for a first token,
// else for as long as its work usually takes.
func (s *scene) window(a *act, f family) (from, to int64) {
	from = a.at
	if a.sent != noTime {
		from = a.sent
	}
	if f == firstFamily {
		return from, from + int64(s.x.firstLimit)
	}
	us := s.pace.usualPrefill(a.fresh())
	if a.output > 1 && !math.IsNaN(s.pace.tpot) {
		us += float64(a.output-1) * s.pace.tpot
	}
	return from, from + int64(us)
}

// medianOf sorts its argument.
func medianOf(x []float64) float64 {
	slices.Sort(x)
	m, _ := stats.Quantile(x, .5)
	return m
}

// Phases of a request's life.
const (
	phaseLag       = "client_lag"
	phaseQueue     = "server_queue"
	phasePrefill   = "prefill"
	phaseTransport = "transport" // between the server's first token and the client's
	phaseDecode    = "decode"
	phaseReasoning = "reasoning"
	phaseFailed    = "failed"
	phaseNone      = "none" // nothing takes longer than is usual for so much work
)

// phase is where the request exceeds the usual by most.
func (s *scene) phase(a *act, f family) string {
	if !a.ok {
		return phaseFailed
	}
	p := s.pace
	best, most := phaseNone, 0.0
	exceeds := func(name string, us float64) {
		if us > most {
			best, most = name, us
		}
	}
	if a.sent == noTime || a.first == noTime {
		return phaseNone
	}
	exceeds(phaseLag, float64(a.sent-a.at))
	usual := p.usualPrefill(a.fresh())
	if a.queue != noTime {
		exceeds(phaseQueue, float64(a.queue)-p.queue)
		exceeds(phasePrefill, a.afterQueue()-usual)
	} else {
		exceeds(phaseQueue, a.afterQueue()-usual)
	}
	if a.queue != noTime && a.prefill != noTime {
		exceeds(phaseTransport, float64(a.first-a.sent-a.queue-a.prefill))
	}
	if f == firstFamily {
		if out := s.x.v.d.firstOutputToken(a.i); out != noTime {
			exceeds(phaseReasoning, float64(out-a.first))
		}
	} else if a.last != noTime && !math.IsNaN(p.tpot) {
		exceeds(phaseDecode, float64(a.last-a.first)-float64(max(0, a.output-1))*p.tpot)
	}
	return best
}

// targetName names a target for people.
func (x *explainer) targetName(code int32) string {
	if code < 0 {
		return "an unknown target"
	}
	return x.v.d.target.dict.Words[code]
}

func clockText(us int64) string {
	s := us / 1_000_000
	if s < 3600 {
		return fmt.Sprintf("%dm%02ds", s/60, s%60)
	}
	return fmt.Sprintf("%dh%02dm%02ds", s/3600, s/60%60, s%60)
}
