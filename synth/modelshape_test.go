package synth_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tailgate/internal/rng"
	"tailgate/profile"
	"tailgate/schemas"
	"tailgate/synth"
	"tailgate/trace"
)

// applications is an hour of two classes and three tenants. Long prompts and middle ones have short answers, others
// long ones: dependent, but not by rank. One prompt in ten is at a cap of 7,436 tokens.
func applications(seed uint64) *trace.Trace {
	r := rng.New(seed, "applications")
	t := &trace.Trace{Meta: trace.Meta{Name: "applications", Unit: trace.UnitMicros, LengthUs: 3_600_000_000}}
	for at := r.ExpFloat64() / 4; at < 3600; at += r.ExpFloat64() / 4 {
		in := int32(math.Exp(5 + 3.5*r.Float64()))
		if r.IntN(10) == 0 {
			in = 7436
		}
		out := 1 + r.Int32N(60)
		if in < 300 || in > 800 && in < 2000 {
			out = 200 + r.Int32N(400)
		}
		class := []string{"chat", "agent"}[b2i(r.Float64() < .25)]
		if class == "agent" {
			out = 1 + out/4
		}
		i := int64(len(t.Rows))
		t.Rows = append(t.Rows, schemas.TraceRow{Row: i, SourceRow: i, ScheduledUs: int64(at * 1e6), InputTokens: in, OutputTokens: &out,
			Tenant: ptr(fmt.Sprintf("t_%d", r.IntN(3))), Class: &class, Session: ptr(fmt.Sprintf("s_%d", i))})
	}
	return t
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// ks is the two-sample Kolmogorov–Smirnov distance, and its 1 % limit.
func ks(a, b []float64) (d, limit float64) {
	slices.Sort(a)
	slices.Sort(b)
	i, j := 0, 0
	for i < len(a) && j < len(b) {
		x := min(a[i], b[j])
		for i < len(a) && a[i] == x {
			i++
		}
		for j < len(b) && b[j] == x {
			j++
		}
		d = max(d, math.Abs(float64(i)/float64(len(a))-float64(j)/float64(len(b))))
	}
	n, m := float64(len(a)), float64(len(b))
	return d, 1.63 * math.Sqrt((n+m)/(n*m))
}

func column(t *trace.Trace, of func(r *schemas.TraceRow) float64) (out []float64) {
	for i := range t.Rows {
		out = append(out, of(&t.Rows[i]))
	}
	return out
}

func inputOf(r *schemas.TraceRow) float64  { return float64(r.InputTokens) }
func outputOf(r *schemas.TraceRow) float64 { return float64(*r.OutputTokens) }

func TestLengthsKeepTheirDependenceAndSpikes(t *testing.T) {
	src := applications(1)
	p := profileOf(t, src)
	got := fromProfile(t, p, synth.ModelOptions{Seed: 2})
	for name, of := range map[string]func(*schemas.TraceRow) float64{"inputs": inputOf, "outputs": outputOf} {
		if d, limit := ks(column(src, of), column(got, of)); d > limit {
			t.Errorf("%s: KS %.4f, limit %.4f", name, d, limit)
		}
	}
	atCap := func(tr *trace.Trace) float64 {
		n := 0
		for i := range tr.Rows {
			n += b2i(tr.Rows[i].InputTokens == 7436)
		}
		return float64(n) / float64(len(tr.Rows))
	}
	if a, b := atCap(src), atCap(got); math.Abs(a-b) > .01 {
		t.Errorf("%.3f of the prompts are at the cap, want %.3f", b, a)
	}
	a, b := p.JointStat[0], profileOf(t, got).JointStat[0]
	if math.Abs(*a.Spearman-*b.Spearman) > .03 || math.Abs(*a.MINats / *b.MINats - 1) > .1 {
		t.Errorf("Spearman %.3f and information %.3f nats, want %.3f and %.3f", *b.Spearman, *b.MINats, *a.Spearman, *a.MINats)
	}
	// By class, the mean output must be the class's own.
	mean := func(tr *trace.Trace, class string) float64 {
		sum, n := 0.0, 0.0
		for i := range tr.Rows {
			if *tr.Rows[i].Class == class {
				sum, n = sum+outputOf(&tr.Rows[i]), n+1
			}
		}
		return sum / n
	}
	for _, class := range []string{"chat", "agent"} {
		if a, b := mean(src, class), mean(got, class); math.Abs(a/b-1) > .05 {
			t.Errorf("class %s: mean output %.1f, want %.1f", class, b, a)
		}
	}
}

// TestRateAndLengthsStayCoupledInsideTheHour: a mix that moves with the load makes peaks of requests smaller peaks of
// work. Lengths drawn by the hour alone would lose that.
func TestRateAndLengthsStayCoupledInsideTheHour(t *testing.T) {
	src := drifting(3)
	p := profileOf(t, src)
	got := fromProfile(t, p, synth.ModelOptions{Seed: 4})
	a, b := p.JointStat[0], profileOf(t, got).JointStat[0]
	if math.Abs(*a.SpearmanRateOut-*b.SpearmanRateOut) > .12 || *a.SpearmanRateOut > -.5 {
		t.Errorf("requests and mean output in whole minutes: %.3f, want %.3f", *b.SpearmanRateOut, *a.SpearmanRateOut)
	}
	if x, y := peakOfWork(src), peakOfWork(got); math.Abs(x/y-1) > .15 {
		t.Errorf("peak minute of work %.3f of the mean, want %.3f", y, x)
	}
	for name, of := range map[string]func(*schemas.TraceRow) float64{"inputs": inputOf, "outputs": outputOf} {
		if d, limit := ks(column(src, of), column(got, of)); d > limit {
			t.Errorf("%s: KS %.4f, limit %.4f", name, d, limit)
		}
	}
}

// peakOfWork is the greatest minute of work over the mean minute.
func peakOfWork(t *trace.Trace) float64 {
	minutes := make([]float64, 60)
	sum := 0.0
	for i := range t.Rows {
		w := workOf(&t.Rows[i])
		minutes[min(t.Rows[i].ScheduledUs/60_000_000, 59)] += w
		sum += w / 60
	}
	return slices.Max(minutes) / sum
}

// talks is an hour of sessions: a system prompt by tenant, turns with think times, prompts that grow by the answer and
// new text, and answers that stay in the prompt.
func talks(seed uint64) *trace.Trace {
	const block = 64
	r := rng.New(seed, "talks")
	t := &trace.Trace{Meta: trace.Meta{Name: "talks", Unit: trace.UnitMicros, BlockSize: block, LengthUs: 3_600_000_000}}
	next := int64(1000)
	for s, at := 0, r.ExpFloat64(); at < 3600; s, at = s+1, at+r.ExpFloat64()*1.5 {
		tenant := s % 3
		var ids []int64
		for k := range 2 + 3*tenant {
			ids = append(ids, int64(100*tenant+k))
		}
		in := int32(len(ids)*block) + 20 + int32(math.Exp(4+2.5*r.Float64()))
		now, name := at, ptr(fmt.Sprintf("s_%d", s))
		for turn := int32(0); ; turn++ {
			for len(ids) < int(in)/block {
				ids = append(ids, next)
				next++
			}
			prompt := slices.Clone(ids)
			if in%block > 0 {
				prompt = append(prompt, next)
				next++
			}
			out := 20 + r.Int32N(200)
			t.Rows = append(t.Rows, schemas.TraceRow{ScheduledUs: int64(now * 1e6), InputTokens: in, OutputTokens: &out, HashIDs: prompt, Session: name, Turn: turn,
				Tenant: ptr(fmt.Sprintf("t_%d", tenant))})
			now += 5 + 40*r.ExpFloat64()
			if in += out + 5 + r.Int32N(100); r.Float64() < .5 || now >= 3600 {
				break
			}
		}
	}
	slices.SortStableFunc(t.Rows, func(a, b schemas.TraceRow) int { return int(a.ScheduledUs - b.ScheduledUs) })
	for i := range t.Rows {
		t.Rows[i].Row, t.Rows[i].SourceRow = int64(i), int64(i)
	}
	return t
}

func TestSessionsComeBack(t *testing.T) {
	src := talks(1)
	p := profileOf(t, src)
	got := fromProfile(t, p, synth.ModelOptions{Seed: 3})
	back := profileOf(t, got)
	a, b := p.SessionStat[0], back.SessionStat[0]
	if math.Abs(float64(a.Turns)/float64(a.Sessions)-float64(b.Turns)/float64(b.Sessions)) > .08 {
		t.Errorf("%d turns in %d sessions, want %d in %d", b.Turns, b.Sessions, a.Turns, a.Sessions)
	}
	if *b.Carry < .999 || *b.NegativeGrowth > 0 {
		t.Errorf("carry %.4f, negative growth %.4f", *b.Carry, *b.NegativeGrowth)
	}
	gaps := func(tr *trace.Trace) (gap, grown []float64) {
		last := map[string]*schemas.TraceRow{}
		for i := range tr.Rows {
			r := &tr.Rows[i]
			if before := last[*r.Session]; before != nil {
				gap = append(gap, float64(r.ScheduledUs-before.ScheduledUs))
				grown = append(grown, inputOf(r)-inputOf(before)-outputOf(before))
				if r.Turn != before.Turn+1 {
					t.Fatalf("row %d: turn %d after %d", i, r.Turn, before.Turn)
				}
			}
			last[*r.Session] = r
		}
		return gap, grown
	}
	ga, ra := gaps(src)
	gb, rb := gaps(got)
	for name, pair := range map[string][2][]float64{"think times": {ga, gb}, "growth": {ra, rb}} {
		if d, limit := ks(pair[0], pair[1]); d > limit+.03 { // a bin of the profile is a quarter of an octave
			t.Errorf("%s: KS %.4f, limit %.4f", name, d, limit)
		}
	}
	if d, limit := ks(column(src, inputOf), column(got, inputOf)); d > limit+.03 {
		t.Errorf("inputs: KS %.4f, limit %.4f", d, limit)
	}
	sameHits(t, p, back, .02)
}

// sameHits holds the hit curve to a distance.
func sameHits(t *testing.T, p, back *profile.Profile, limit float64) {
	t.Helper()
	want := map[string]float64{}
	key := func(h *schemas.ProfileHitCurve) string {
		if h.CapacityBlocks == nil {
			return h.Tenant + h.Class + " infinite"
		}
		return fmt.Sprintf("%s%s LRU of %d blocks", h.Tenant, h.Class, *h.CapacityBlocks)
	}
	for i := range p.HitCurve {
		want[key(&p.HitCurve[i])] = *p.HitCurve[i].BlockHit
	}
	seen := 0
	for i := range back.HitCurve {
		h := &back.HitCurve[i]
		if h.Tenant != profile.All {
			continue
		}
		seen++
		if w := want[key(h)]; math.Abs(*h.BlockHit-w) > limit {
			t.Errorf("%s hits %.4f of the blocks, want %.4f", key(h), *h.BlockHit, w)
		}
	}
	if seen == 0 {
		t.Error("no hit curve")
	}
}

func TestKnobsStandForThemselves(t *testing.T) {
	p := profileOf(t, applications(5))
	share := func(tr *trace.Trace, of func(*schemas.TraceRow) bool) float64 {
		n := 0
		for i := range tr.Rows {
			n += b2i(of(&tr.Rows[i]))
		}
		return float64(n) / float64(len(tr.Rows))
	}
	in := func(lo, hi int32) func(r *schemas.TraceRow) bool {
		return func(r *schemas.TraceRow) bool { return r.InputTokens >= lo && r.InputTokens < hi }
	}
	out := func(lo, hi int32) func(r *schemas.TraceRow) bool {
		return func(r *schemas.TraceRow) bool { return *r.OutputTokens >= lo && *r.OutputTokens < hi }
	}
	class := func(c string) func(r *schemas.TraceRow) bool {
		return func(r *schemas.TraceRow) bool { return *r.Class == c }
	}
	lengths := func(s string) synth.LengthSpec {
		l, err := synth.ParseLengths(s)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	for _, c := range []struct {
		name string
		o    synth.ModelOptions
		of   func(*schemas.TraceRow) bool
		want float64
	}{
		{"a range", synth.ModelOptions{Input: lengths("mid")}, in(1024, 8192), 1},
		{"odd edges", synth.ModelOptions{Input: lengths("777..1333")}, in(777, 1333), 1},
		{"shares", synth.ModelOptions{Input: lengths("short=0.2,mid=0.8")}, in(0, 1024), .2},
		{"both at once: inputs", synth.ModelOptions{Input: lengths("..500=3,500..=1"), Output: lengths("..50=1,50..=1")}, in(0, 500), .75},
		{"both at once: outputs", synth.ModelOptions{Input: lengths("..500=3,500..=1"), Output: lengths("..50=1,50..=1")}, out(0, 50), .5},
		{"one length", synth.ModelOptions{Output: lengths("128")}, out(128, 129), 1},
		{"class mix", synth.ModelOptions{ClassMix: map[string]float64{"agent": .6, "chat": .4}}, class("agent"), .6},
		{"one class", synth.ModelOptions{ClassMix: map[string]float64{"agent": 1}}, class("agent"), 1},
		{"class mix of other arrivals", synth.ModelOptions{Arrivals: synth.Gamma, Burstiness: .5, ClassMix: map[string]float64{"agent": .6, "chat": .4}}, class("agent"), .6},
	} {
		got := fromProfile(t, p, c.o)
		if x := share(got, c.of); math.Abs(x-c.want) > .02 {
			t.Errorf("%s: share %.3f, want %.3f", c.name, x, c.want)
		}
		if rate := float64(len(got.Rows)) / 3600; math.Abs(rate-4) > .25 {
			t.Errorf("%s: %.2f requests/s, want about 4", c.name, rate)
		}
	}
}

func TestRatesAreKept(t *testing.T) {
	talk, apps := profileOf(t, talks(2)), profileOf(t, applications(2))
	perSession := float64(talk.SessionStat[0].Turns) / float64(talk.SessionStat[0].Sessions)
	series := synth.RateSeries{{At: 0, Rate: 2}, {At: 2 * time.Minute, Rate: 20}, {At: 4 * time.Minute, Rate: 8}}
	ramp := slices.Clone(series)
	for i := range ramp {
		ramp[i].Ramp = true
	}
	for _, c := range []struct {
		name string
		p    *profile.Profile
		o    synth.ModelOptions
		want float64 // requests
	}{
		{"scale", apps, synth.ModelOptions{Scale: .5}, 7200},
		{"rate", apps, synth.ModelOptions{RequestRate: 9, Duration: 20 * time.Minute}, 10800},
		{"rate of a part", apps, synth.ModelOptions{RequestRate: 9, Duration: 20 * time.Minute, From: 30 * time.Minute}, 10800},
		{"longer than the profile", apps, synth.ModelOptions{Duration: 2 * time.Hour}, 28800},
		{"ramp", apps, synth.ModelOptions{RequestRate: 2, RateEnd: 12, Duration: 20 * time.Minute}, 8400},
		{"series", apps, synth.ModelOptions{RateSeries: series, Duration: 6 * time.Minute}, 240 + 2400 + 960},
		{"series of ramps", apps, synth.ModelOptions{RateSeries: ramp, Arrivals: synth.Poisson}, 1320 + 1680},
		{"sessions", talk, synth.ModelOptions{RequestRate: 20}, 72000},
		{"sessions in a short window", talk, synth.ModelOptions{RequestRate: 50, Duration: 4 * time.Minute}, 12000},
		{"Poisson sessions", talk, synth.ModelOptions{RequestRate: 50, Duration: 4 * time.Minute, Arrivals: synth.Poisson}, 12000},
		{"long prompts end sessions", talk, synth.ModelOptions{RequestRate: 50, Duration: 4 * time.Minute, Input: synth.LengthSpec{{Lo: 0, Hi: 600, Share: 1}}}, 12000},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := float64(len(fromProfile(t, c.p, c.o).Rows))
			// Sessions bring their turns together, so the count of their requests varies more than Poisson's.
			if sd := math.Sqrt(c.want * 2 * perSession * perSession); math.Abs(got-c.want) > 4*sd {
				t.Errorf("%.0f requests, want %.0f ± %.0f", got, c.want, 4*sd)
			}
		})
	}
}

func TestBurstsAreSplicedIn(t *testing.T) {
	o := synth.ModelOptions{Seed: 1, Bursts: []synth.Burst{{At: 10 * time.Minute, For: time.Minute, X: 4}, {At: 30 * time.Minute, For: 2 * time.Minute, X: 2}}}
	for name, p := range map[string]*profile.Profile{"requests": profileOf(t, applications(3)), "sessions": profileOf(t, talks(3))} {
		for _, arrivals := range []string{synth.ArrivalsProfile, synth.Poisson, synth.Constant} {
			o.Arrivals = arrivals
			minutes := make([]float64, 60)
			for _, r := range fromProfile(t, p, o).Rows {
				minutes[r.ScheduledUs/60_000_000]++
			}
			plain := 0.0
			for m, n := range minutes {
				if m != 10 && m != 30 && m != 31 {
					plain += n / 57
				}
			}
			for m, x := range map[int]float64{10: 4, 30: 2, 31: 2} {
				if got := minutes[m] / plain; math.Abs(got/x-1) > 5*math.Sqrt(3/(x*plain)) {
					t.Errorf("%s, %s arrivals: minute %d has %.2f times the requests, want %v", name, arrivals, m, got, x)
				}
			}
		}
	}
}

func TestPrefixShareIsAKnob(t *testing.T) {
	for _, c := range []struct {
		share    float64
		prefixes int
	}{{0, 0}, {.5, 1}, {.5, 8}, {1, 3}} {
		o := synth.ModelOptions{RequestRate: 20, Requests: 4000, Input: synth.LengthSpec{{Lo: 4096, Hi: 4097, Share: 1}}, Output: synth.LengthSpec{{Lo: 10, Hi: 11, Share: 1}},
			PrefixShare: &c.share, Prefixes: c.prefixes, BlockSize: 64}
		got := fromProfile(t, nil, o)
		firsts := map[int64]int{}
		for _, r := range got.Rows {
			firsts[r.HashIDs[0]]++
		}
		if n := max(c.prefixes, 1); c.share > 0 && len(firsts) != n {
			t.Errorf("share %v: %d different prefixes, want %d", c.share, len(firsts), n)
		}
		hits := *got.Info().BlockHit
		if want := c.share * (1 - float64(len(firsts))/4000); c.share > 0 && math.Abs(hits-want) > .01 || c.share == 0 && hits > 0 {
			t.Errorf("share %v of %d prefixes: an infinite cache hits %.4f, want %.4f", c.share, c.prefixes, hits, want)
		}
	}
}

func TestMicroBenchmark(t *testing.T) {
	o := synth.ModelOptions{Arrivals: synth.Constant, RequestRate: 10, Duration: 10 * time.Minute,
		Input: synth.LengthSpec{{Lo: 512, Hi: 513, Share: 1}}, Output: synth.LengthSpec{{Lo: 128, Hi: 129, Share: 1}}}
	got := fromProfile(t, nil, o)
	if len(got.Rows) != 6000 || got.Meta.LengthUs != 600_000_000 || got.Meta.BlockSize != 0 {
		t.Fatalf("%d rows, %+v", len(got.Rows), got.Meta)
	}
	for i, r := range got.Rows {
		want := schemas.TraceRow{Row: int64(i), SourceRow: int64(i), ScheduledUs: int64(i) * 100_000, InputTokens: 512, OutputTokens: ptr(int32(128))}
		if diff := cmp.Diff(want, r); diff != "" {
			t.Fatal(diff)
		}
	}
	o.Arrivals, o.Burstiness, o.Duration, o.Requests = synth.Gamma, .25, 0, 20_000
	cv := profileOf(t, fromProfile(t, nil, o)).IAT[0].CVRaw
	if math.Abs(*cv-2) > .08 {
		t.Errorf("CV %.3f of gamma gaps of shape .25, want 2", *cv)
	}
}

func TestEqualSeedsGiveEqualTraces(t *testing.T) {
	for name, p := range map[string]*profile.Profile{"requests": profileOf(t, applications(6)), "sessions": profileOf(t, talks(6))} {
		text := func(o synth.ModelOptions) string {
			var b bytes.Buffer
			if err := fromProfile(t, p, o).Write(&b, trace.FormatMooncake); err != nil {
				t.Fatal(err)
			}
			return b.String()
		}
		o := synth.ModelOptions{Seed: 9, Duration: 20 * time.Minute}
		a := text(o)
		if a != text(o) {
			t.Fatalf("%s: two traces of one seed differ", name)
		}
		d, err := synth.StreamProfile(context.Background(), p, o)
		if err != nil {
			t.Fatal(err)
		}
		before := runtime.GOMAXPROCS(1)
		one := text(o)
		runtime.GOMAXPROCS(before)
		if a != one {
			t.Errorf("%s: one thread gives another trace", name)
		}
		for range 2 {
			var b bytes.Buffer
			if err := d.Write(context.Background(), &b, trace.FormatMooncake); err != nil || b.String() != a {
				t.Errorf("%s: row by row it is another trace (%v)", name, err)
			}
		}
		o.Seed = 10
		if a == text(o) {
			t.Errorf("%s: another seed gives the same trace", name)
		}
	}
}

// TestSubStreamsDoNotDisturbEachOther: what changes the lengths leaves the arrivals.
func TestSubStreamsDoNotDisturbEachOther(t *testing.T) {
	p := profileOf(t, applications(8))
	at := func(r *schemas.TraceRow) float64 { return float64(r.ScheduledUs) }
	a := column(fromProfile(t, p, synth.ModelOptions{Seed: 9}), at)
	b := column(fromProfile(t, p, synth.ModelOptions{Seed: 9, Output: synth.LengthSpec{{Lo: 5, Hi: 6, Share: 1}}}), at)
	if !slices.Equal(a, b) {
		t.Error("other outputs, other arrivals")
	}
}

func TestGenerateStopsWhenItsRowsAreNotWanted(t *testing.T) {
	p := profileOf(t, applications(7))
	full := errors.New("full")
	if _, _, err := synth.Generate(context.Background(), p, synth.ModelOptions{}, func(*schemas.TraceRow) error { return full }); !errors.Is(err, full) {
		t.Errorf("error %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := synth.FromProfile(ctx, p, synth.ModelOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}
