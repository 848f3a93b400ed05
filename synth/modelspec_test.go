package synth_test

import (
	"bytes"
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tailgate/internal/fault"
	"tailgate/profile"
	"tailgate/schemas"
	"tailgate/synth"
	"tailgate/trace"
)

func TestLengthsAreRead(t *testing.T) {
	for text, want := range map[string]synth.LengthSpec{
		"512":                         {{Lo: 512, Hi: 513, Share: 1}},
		"1024..8192":                  {{Lo: 1024, Hi: 8192, Share: 1}},
		"..10":                        {{Lo: 0, Hi: 10, Share: 1}},
		"short":                       {{Lo: 0, Hi: 1024, Share: 1}},
		"long":                        {{Lo: 8192, Hi: math.MaxInt32, Share: 1}},
		"short=0.6,mid=30%,8192..=.1": {{Lo: 0, Hi: 1024, Share: .6}, {Lo: 1024, Hi: 8192, Share: .3}, {Lo: 8192, Hi: math.MaxInt32, Share: .1}},
	} {
		got, err := synth.ParseLengths(text)
		if err != nil || !cmp.Equal(got, want) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for text, says := range map[string]string{
		"": "not a number of tokens", "x": `"x"`, "-5": "-5", "10..10": "empty", "20..10": "empty", "short,mid": "no share", "short=x": "invalid",
		"0..10=1,5..20=1": "overlap", "short=0": "no share above 0", "short=-1": ">= 0", "short=NaN": "finite", "3000000000": "3000000000", "1,5": "no share",
	} {
		_, err := synth.ParseLengths(text)
		if err == nil || fault.Of(err) != fault.Usage || !strings.Contains(err.Error(), says) || fault.Hint(err) == "" {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestBurstsAreRead(t *testing.T) {
	got, err := synth.ParseBurst("at=10m, for=30s,x=4x")
	if want := (synth.Burst{At: 10 * time.Minute, For: 30 * time.Second, X: 4}); err != nil || got != want {
		t.Errorf("%v, %v", got, err)
	}
	for text, says := range map[string]string{
		"": "missing", "at=10m": "for is missing", "at=1,for=1s,x=2": "missing unit", "at=1s,for=0s,x=2": "last", "at=-1s,for=1s,x=2": "0 or later",
		"at=1s,for=1s,x=1": "> 1", "at=1s,for=1s,x=NaN": "> 1", "at=1s,for=1s,x=Inf": "> 1", "at=1s,at=2s,for=1s,x=2": "twice", "at=1s,for=1s,x=2,y=3": `"y"`,
	} {
		if _, err := synth.ParseBurst(text); err == nil || fault.Of(err) != fault.Usage || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestRateSeriesAreRead(t *testing.T) {
	got, err := synth.ReadRateSeries(strings.NewReader("time,rate\n# morning\n0,1\n90.5, 10\n\n10m,0.5\n"), "r.csv", false)
	want := synth.RateSeries{{At: 0, Rate: 1}, {At: 90500 * time.Millisecond, Rate: 10}, {At: 10 * time.Minute, Rate: .5}}
	if err != nil || !cmp.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	for text, says := range map[string]string{
		"": "no point", "time,rate\n": "no point", "0,1\n0,2\n": "r.csv:2", "0,1\n-1,2\n": "r.csv:2", "0,x\n": "r.csv:1", "0,-1\n": "-1", "0,1,2\n": "3 fields",
		"0,NaN\n": "NaN", "0,Inf\n": "Inf", "0,0\n10,0\n": "0 all the time", "a,1\n": `"a"`, "0,\"1\n": "r.csv:1", "1e99,1\n": "ten years", "NaN,1\n": "NaN",
	} {
		if _, err := synth.ReadRateSeries(strings.NewReader(text), "r.csv", false); err == nil || fault.Of(err) != fault.Data || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestDistributionsAreRead(t *testing.T) {
	got, err := synth.ParseIntDist("turns", "1=0.7,2..4=0.3")
	if want := (synth.IntDist{{Lo: 1, Hi: 1, Weight: .7}, {Lo: 2, Hi: 4, Weight: .3}}); err != nil || !cmp.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	for _, text := range []string{"", "x", "1,2", "1..x", "1=x", "99999999999"} {
		if _, err := synth.ParseIntDist("turns", text); err == nil || fault.Of(err) != fault.Usage {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestBadModelOptionsAreNamed(t *testing.T) {
	p := profileOf(t, applications(9))
	two := 2.0
	one := synth.LengthSpec{{Lo: 5, Hi: 6, Share: 1}}
	for _, c := range []struct {
		p    *profile.Profile
		o    synth.ModelOptions
		says []string
	}{
		{p, synth.ModelOptions{Arrivals: "bursty", Burstiness: 1, Scale: -1, RequestRate: math.NaN(), Duration: -1, PrefixShare: &two, BlockSize: -1},
			[]string{`"bursty"`, "burstiness", "scale", "request rate", "duration", "prefix share", "block size"}},
		{p, synth.ModelOptions{Arrivals: synth.Gamma}, []string{"burstiness must be a finite number > 0"}},
		{p, synth.ModelOptions{Scale: 2, RequestRate: 3}, []string{"contradict"}},
		{p, synth.ModelOptions{RateSeries: synth.RateSeries{{Rate: 1}, {At: 1, Rate: 1}}, RequestRate: 3}, []string{"contradicts"}},
		{nil, synth.ModelOptions{Input: one, Output: one, RateSeries: synth.RateSeries{{Rate: 1}}}, []string{"needs a duration"}},
		{p, synth.ModelOptions{RateEnd: 3}, []string{"at the begin"}},
		{p, synth.ModelOptions{ClassMix: map[string]float64{"agents": 1}}, []string{`class "agents"`}},
		{p, synth.ModelOptions{ClassMix: map[string]float64{"agent": 0}}, []string{"no share above 0"}},
		{p, synth.ModelOptions{Input: synth.LengthSpec{{Lo: 100_000, Hi: 200_000, Share: 1}}}, []string{"input lengths 100000..200000"}},
		{p, synth.ModelOptions{Turns: synth.IntDist{{Lo: 1, Hi: 5, Weight: 1}}}, []string{"think times"}},
		{p, synth.ModelOptions{Turns: synth.IntDist{{Lo: 0, Hi: 5, Weight: 1}}}, []string{"turns 0..5"}},
		{p, synth.ModelOptions{ThinkTime: &synth.DurationDist{Median: -1, Sigma: 99}}, []string{"think time", "sigma"}},
		{p, synth.ModelOptions{Prefixes: 3}, []string{"number of prefixes"}},
		{p, synth.ModelOptions{Bursts: []synth.Burst{{At: 2 * time.Hour, For: 1, X: 2}}}, []string{"after the end"}},
		{p, synth.ModelOptions{Bursts: []synth.Burst{{X: 2}}}, []string{"a burst must begin"}},
		{p, synth.ModelOptions{From: 2 * time.Hour}, []string{"a begin at 2h"}},
		{p, synth.ModelOptions{RequestRate: 1e8}, []string{"more than"}},
		{nil, synth.ModelOptions{}, []string{"input lengths are missing", "output lengths are missing", "request rate", "duration"}},
		{nil, synth.ModelOptions{Input: synth.LengthSpec{{Lo: 5, Hi: math.MaxInt32, Share: 1}}, Output: one, RequestRate: 1, Duration: time.Second, Arrivals: synth.ArrivalsProfile},
			[]string{"upper end", "need a profile"}},
		{nil, synth.ModelOptions{Input: one, Output: one, RequestRate: 1, Duration: time.Second, Scale: 2}, []string{"contradict"}},
		{nil, synth.ModelOptions{Input: one, Output: one, RequestRate: 1, Duration: time.Second, Turns: synth.IntDist{{Lo: 2, Hi: 5, Weight: 1}}}, []string{"think times"}},
		{&profile.Profile{}, synth.ModelOptions{}, []string{"no request"}},
	} {
		_, err := synth.FromProfile(context.Background(), c.p, c.o)
		if fault.Of(err) != fault.Usage {
			t.Errorf("%+v: %v", c.o, err)
			continue
		}
		for _, says := range c.says {
			if !strings.Contains(err.Error(), says) {
				t.Errorf("%+v: %q does not say %q", c.o, err, says)
			}
		}
	}
}

// TestDegenerateProfiles: what is too little to fit gives traffic or a named fault, never a panic.
func TestDegenerateProfiles(t *testing.T) {
	failed := schemas.StatusServerError
	for name, rows := range map[string][]schemas.TraceRow{
		"none":        nil,
		"one":         {{InputTokens: 5, OutputTokens: ptr(int32(6))}},
		"one instant": {{InputTokens: 5, OutputTokens: ptr(int32(6))}, {InputTokens: 5, OutputTokens: ptr(int32(6))}},
		"two":         {{InputTokens: 5, OutputTokens: ptr(int32(6))}, {InputTokens: 5, OutputTokens: ptr(int32(6)), ScheduledUs: 5_000_000}},
		"all failed":  {{InputTokens: 5, Status: &failed}, {InputTokens: 5, Status: &failed, ScheduledUs: 5_000_000}},
		"late":        {{InputTokens: 5, OutputTokens: ptr(int32(6)), ScheduledUs: 4_000_000_000}, {InputTokens: 7, OutputTokens: ptr(int32(6)), ScheduledUs: 4_005_000_000}},
		"no answers":  {{InputTokens: 5, OutputTokens: ptr(int32(0))}, {InputTokens: 5, OutputTokens: ptr(int32(0)), ScheduledUs: 5_000_000}},
	} {
		p := profileOf(t, &trace.Trace{Rows: rows})
		for _, o := range []synth.ModelOptions{{}, {RequestRate: 50}, {Arrivals: synth.Poisson, RequestRate: 5}, {Scale: 100, Duration: time.Minute}} {
			res, err := synth.FromProfile(context.Background(), p, o)
			if err != nil {
				if fault.Of(err) != fault.Usage {
					t.Errorf("%s: %v", name, err)
				}
				continue
			}
			for _, f := range res.Trace.Check() {
				t.Errorf("%s: %v", name, f)
			}
		}
	}
}

func FuzzModelSpecs(f *testing.F) {
	for _, s := range []string{"512", "short=0.6,mid=0.3", "at=1s,for=1s,x=2", "1=0.7,2..4=0.3", "0,1\n60,2\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		lengths, lengthErr := synth.ParseLengths(s)
		if lengthErr == nil && lengths == nil {
			t.Error("no lengths and no fault")
		}
		if b, err := synth.ParseBurst(s); err == nil && !(b.X > 1 && b.For > 0) {
			t.Errorf("burst %+v", b)
		}
		dist, distErr := synth.ParseIntDist("turns", s)
		series, seriesErr := synth.ReadRateSeries(strings.NewReader(s), "f", true)
		o := synth.ModelOptions{Input: lengths, Output: lengths, Turns: dist, RateSeries: series}
		if err := o.Validate(); lengthErr == nil && distErr != nil && seriesErr == nil && err != nil {
			t.Errorf("what was read is refused: %v", err)
		}
	})
}

// TestModelGolden pins the bytes of a small trace of each kind.
func TestModelGolden(t *testing.T) {
	p := profileOf(t, talks(4))
	share := .5
	var b bytes.Buffer
	for _, c := range []struct {
		name string
		p    *profile.Profile
		o    synth.ModelOptions
	}{
		{"sessions of a profile", p, synth.ModelOptions{Requests: 12}},
		{"poisson at 5/s", p, synth.ModelOptions{Arrivals: synth.Poisson, RequestRate: 5, Duration: 2 * time.Second}},
		{"gamma micro-benchmark", nil, synth.ModelOptions{Arrivals: synth.Gamma, Burstiness: .5, RequestRate: 5, Requests: 8, Input: synth.LengthSpec{{Lo: 100, Hi: 300, Share: 1}},
			Output: synth.LengthSpec{{Lo: 10, Hi: 11, Share: 3}, {Lo: 20, Hi: 21, Share: 1}}, PrefixShare: &share, BlockSize: 64}},
	} {
		c.o.Seed = 1
		b.WriteString(c.name + "\n")
		if err := fromProfile(t, c.p, c.o).Write(&b, trace.FormatMooncake); err != nil {
			t.Fatal(err)
		}
	}
	golden(t, "model.golden", b.Bytes())
}
