package capacity_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"tailgate/capacity"
	"tailgate/internal/fault"
	"tailgate/schemas"
)

var update = flag.Bool("update", false, "write the golden files anew")

// today is the last day of the tests' traffic, a Monday.
var today = time.Date(2026, 9, 7, 0, 0, 0, 0, time.UTC)

// traffic is a day whose minutes have a rate each, three quarters of it chat, the rest batch, with lengths and a hit curve.
type traffic struct {
	date   time.Time
	rate   func(minute int) float64 // requests/s
	chat   float64                  // share; 0 = .75
	input  int32                    // tokens of a prompt; 0 = 1,000
	hit    float64                  // of a cache of 1,024 blocks; 0 = .4
	groups bool                     // rows per tenant and class
	from   int                      // minutes
	to     int                      // 0 = 1,440
	step   int                      // only each such minute has requests; 0 = 1
}

func (f traffic) tables() capacity.ProfileTables {
	orElse := func(x, other float64) float64 {
		if x == 0 {
			return other
		}
		return x
	}
	chat, input, to := orElse(f.chat, .75), int32(orElse(float64(f.input), 1000)), int(orElse(float64(f.to), 1440))
	start := f.date.Add(time.Duration(f.from) * time.Minute)
	key := schemas.ProfileKey{ProfileID: "p", WindowStart: start, WindowEnd: f.date.Add(time.Duration(to) * time.Minute), Tenant: "*", Class: "*"}
	p := capacity.ProfileTables{Name: f.date.Format(time.DateOnly), Meta: schemas.ProfileMeta{ProfileKey: key, BlockSize: 16}}
	group := func(tenant, class string, share float64) {
		k := key
		k.Tenant, k.Class = tenant, class
		wide := map[int64]int64{}
		add := func(bin, at, n int64) {
			if n > 0 {
				p.Rate = append(p.Rate, schemas.ProfileRate{ProfileKey: k, BinUs: bin * 1e6, BinStartUs: at * 1e6, Requests: n})
			}
		}
		total := int64(0)
		for m := f.from; m < to; m += max(1, f.step) {
			n := int64(math.Round(60 * f.rate(m) * share))
			at := int64(60 * (m - f.from))
			add(60, at, n)
			for i := range int64(6) { // the first ten seconds have what does not divide
				part := n / 6
				if i == 0 {
					part = n - 5*part
				}
				add(10, at+10*i, part)
			}
			wide[at-at%600] += n
			total += n
		}
		for at, n := range wide {
			add(600, at, n)
		}
		for dim, tokens := range map[string]int32{"input": input, "output": 100} {
			p.Lengths = append(p.Lengths, schemas.ProfileLength{ProfileKey: k, Dim: dim, LoTok: tokens, HiTok: tokens + 1, N: total, IsAtom: true})
		}
	}
	group("*", "*", 1)
	if f.groups {
		group("t1", "chat", chat/2)
		group("t2", "chat", chat/2)
		group("t1", "batch", 1-chat)
	}
	blocks, hit := int64(1024), orElse(f.hit, .4)
	p.Hits = []schemas.ProfileHitCurve{{ProfileKey: key, Policy: "lru", CapacityBlocks: &blocks, BlockHit: &hit}, {ProfileKey: key, Policy: "infinite", BlockHit: &hit}}
	return p
}

func steadyRate(rate float64) func(int) float64 { return func(int) float64 { return rate } }

// weeks are so many days of traffic up to today that grow by a share each week, busier by day and quieter at weekends.
func weeks(t *testing.T, days int, rate, weekly float64) []*capacity.Day {
	t.Helper()
	var lists [][]*capacity.Day
	for i := range days {
		date := today.AddDate(0, 0, i-days+1)
		level := rate * math.Pow(1+weekly, float64(i-days+1)/7)
		if date.Weekday() == time.Saturday || date.Weekday() == time.Sunday {
			level /= 2
		}
		level *= 1 + .02*math.Sin(float64(i)*1.7) // no two weeks are alike
		list, err := capacity.NewDays(traffic{date: date, groups: true, step: 30, rate: func(m int) float64 {
			return level * (.6 + .4*math.Sin(2*math.Pi*float64(m-540)/1440))
		}}.tables())
		if err != nil {
			t.Fatal(err)
		}
		lists = append(lists, list)
	}
	out, err := capacity.MergeDays(lists...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func daysOf(t *testing.T, f ...traffic) []*capacity.Day {
	t.Helper()
	var tables []capacity.ProfileTables
	for _, f := range f {
		tables = append(tables, f.tables())
	}
	days, err := capacity.NewDays(tables...)
	if err != nil {
		t.Fatal(err)
	}
	return days
}

// testedEnvelope holds 10/s of the mix and 8/s of chat on four replicas, and 6/s on three, on traffic like that of the tests.
func testedEnvelope() *capacity.Envelope {
	one := func(v, margin float64) capacity.Range {
		return capacity.Range{Value: v, Low: v - margin, High: v + margin}
	}
	return &capacity.Envelope{Definition: schemas.Definition, Name: "eu", Growth: 1.2, Replicas: 4,
		Rows: []capacity.EnvelopeRow{
			{Class: "mix", Pattern: "real", Load: "alone", State: capacity.SearchConfirmed, SafeQPS: 10},
			{Class: "mix", Pattern: "bursty", Load: "alone", State: capacity.SearchConfirmed, SafeQPS: 7},
			{Class: "chat", Pattern: "poisson", Load: "in_mix", State: capacity.SearchConfirmed, SafeQPS: 8},
			{Class: "agent", Pattern: "real", Load: "in_mix", State: capacity.SearchInconclusive},
		},
		NMinus1: &capacity.NMinus1{Rate: 6, Holds: true},
		Tested: &capacity.Band{BlockSize: 16, Shares: map[string]capacity.Range{"chat": one(.75, .19), "batch": one(.25, .0625)},
			Lengths: []capacity.LengthRange{{Class: "mix", Dim: "input", P: .5, Range: one(1000, 250)}, {Class: "chat", Dim: "input", P: .9, Range: one(1000, 250)},
				{Class: "batch", Dim: "input", P: .5, Range: one(10, 1)}},
			Hits: []capacity.HitRange{{CapacityBlocks: 1024, Range: one(.4, .05)}}}}
}

func headroomOf(t *testing.T, days []*capacity.Day, change func(*capacity.HeadroomOptions)) *capacity.Headroom {
	t.Helper()
	o := capacity.HeadroomOptions{Envelope: testedEnvelope(), Days: days}
	if change != nil {
		change(&o)
	}
	h, err := capacity.NewHeadroom(o)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// The text, the CSV, the metrics and the JSON of eight weeks.
func TestHeadroomGoldens(t *testing.T) {
	h := headroomOf(t, weeks(t, 56, 5, .03), nil)
	for name, write := range map[string]func(*bytes.Buffer) error{
		"headroom.txt":  func(b *bytes.Buffer) error { return h.WriteText(b) },
		"headroom.csv":  func(b *bytes.Buffer) error { return h.WriteCSV(b) },
		"headroom.prom": func(b *bytes.Buffer) error { return h.WritePrometheus(b) },
		"headroom.json": func(b *bytes.Buffer) error {
			e := json.NewEncoder(b)
			e.SetIndent("", " ")
			return e.Encode(h)
		},
	} {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join("testdata", name)
		if *update {
			if err := os.MkdirAll("testdata", 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), b.String()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if name == "headroom.prom" {
			parser := expfmt.NewTextParser(model.UTF8Validation)
			families, err := parser.TextToMetricFamilies(bytes.NewReader(b.Bytes()))
			if err != nil || len(families["tailgate_headroom_replicas"].GetMetric()) != 24 {
				t.Errorf("%d families, %v", len(families), err)
			}
		}
	}
	var page bytes.Buffer
	if err := h.WriteHTML(&page); err != nil || strings.Count(page.String(), "<svg") != 3 {
		t.Errorf("%d drawings, %v", strings.Count(page.String(), "<svg"), err)
	}
}

func TestHeadroomStates(t *testing.T) {
	for _, tt := range []struct {
		name         string
		rate         float64
		states       []string
		safe, minus1 bool
	}{
		{"room for all", 4, []string{"ok", "ok", "ok", "no_traffic"}, false, false},
		{"no reserve", 6.5, []string{"over_n_minus_1", "over_n_minus_1", "ok", "no_traffic"}, false, true},
		{"only the pattern that does not decide", 8, []string{"over_n_minus_1", "over_safe", "ok", "no_traffic"}, false, true},
		{"a class over", 12, []string{"over_safe", "over_safe", "over_safe", "no_traffic"}, true, true},
	} {
		h := headroomOf(t, daysOf(t, traffic{date: today, groups: true, rate: steadyRate(tt.rate)}), nil)
		var states []string
		for _, r := range h.Rows {
			states = append(states, r.State)
		}
		if diff := cmp.Diff(tt.states, states); diff != "" || h.OverSafe != tt.safe || h.OverNMinus1 != tt.minus1 {
			t.Errorf("%s: over safe %v, over n-1 %v %s", tt.name, h.OverSafe, h.OverNMinus1, diff)
		}
		p := h.Rows[0].Peaks[1]
		if p.WidthS != 60 || math.Abs(p.Peak-tt.rate) > .01 || math.Abs(*p.Used-tt.rate/10) > .01 || math.Abs(*p.HeadroomRate-(10-tt.rate)) > .01 {
			t.Errorf("%s: %+v", tt.name, p)
		}
	}
}

// Twice the traffic uses twice the share and never fewer replicas; what is used and what is left make one; the order of
// the profiles changes nothing.
func TestHeadroomLaws(t *testing.T) {
	rate := func(k float64) func(int) float64 { return func(m int) float64 { return k * float64(1+m%7) } }
	at := func(k float64) *capacity.Headroom {
		return headroomOf(t, daysOf(t, traffic{date: today, groups: true, rate: rate(k)}), nil)
	}
	one, two := at(1), at(2)
	for i, r := range one.Rows {
		for j, p := range r.Peaks {
			q := two.Rows[i].Peaks[j]
			if math.Abs(q.Peak-2*p.Peak) > .2 || p.Used != nil && math.Abs(*p.Used+*p.Headroom-1) > 1e-12 {
				t.Errorf("%s: %+v and %+v", r.Class, p, q)
			}
			if p.P99 > p.Peak {
				t.Errorf("p99 %v above the peak %v", p.P99, p.Peak)
			}
		}
	}
	for i, n := range one.Hours {
		if two.Hours[i].Replicas < n.Replicas || n.Replicas < int(math.Ceil(n.Peak/n.PerReplica-1e-9)) || n.ReplicasNMinus1 != n.Replicas+1 {
			t.Errorf("%+v and %+v", n, two.Hours[i])
		}
	}
	days := []traffic{{date: today.AddDate(0, 0, -1), groups: true, rate: rate(1)}, {date: today, groups: true, rate: rate(2)}}
	a := headroomOf(t, daysOf(t, days...), nil)
	slices.Reverse(days)
	if diff := cmp.Diff(a, headroomOf(t, daysOf(t, days...), nil)); diff != "" {
		t.Error(diff)
	}
}

// The profiles of a day's parts say what its own profile says.
func TestHeadroomOfADayInParts(t *testing.T) {
	rate := func(m int) float64 { return 1 + float64(m%11)/3 }
	whole := traffic{date: today, groups: true, rate: rate}
	var parts []traffic
	for h := range 24 {
		p := whole
		p.from, p.to = 60*h, 60*h+60
		parts = append(parts, p)
	}
	if diff := cmp.Diff(headroomOf(t, daysOf(t, whole), nil), headroomOf(t, daysOf(t, parts...), nil)); diff != "" {
		t.Error(diff)
	}
	var lists [][]*capacity.Day
	for _, p := range parts {
		lists = append(lists, daysOf(t, p))
	}
	merged, err := capacity.MergeDays(lists...)
	if err != nil {
		t.Fatal(err)
	}
	a, b := headroomOf(t, daysOf(t, whole), nil), headroomOf(t, merged, nil)
	if a.Rows[0].Peaks[1].Peak != b.Rows[0].Peaks[1].Peak || !cmp.Equal(a.Hours, b.Hours) || *b.Stale {
		t.Errorf("%+v and %+v", a.Rows[0], b.Rows[0])
	}
	if _, err := capacity.NewDays(whole.tables(), parts[3].tables()); fault.Of(err) != fault.Usage || !strings.Contains(err.Error(), "both cover") {
		t.Errorf("%v", err)
	}
}

func TestHeadroomTrends(t *testing.T) {
	for _, tt := range []struct {
		name         string
		days         int
		rate, weekly float64
		state, text  string
	}{
		{"too short", 20, 5, .03, schemas.TrendNeedsDays, "about 8 more days"},
		{"growing", 56, 5, .03, schemas.TrendGrows, "Safe QPS is reached in"},
		{"falling", 56, 5, -.03, schemas.TrendFalls, "never"},
		{"steady", 56, 5, 0, schemas.TrendNone, "no trend"},
		{"too late", 56, 11, .03, schemas.TrendBreached, "at Safe QPS already"},
	} {
		h := headroomOf(t, weeks(t, tt.days, tt.rate, tt.weekly), nil)
		got := h.Rows[0].Trend
		if got.State != tt.state || !strings.Contains(got.Text, tt.text) {
			t.Errorf("%s: %s, %s", tt.name, got.State, got.Text)
		}
		if tt.state == schemas.TrendGrows {
			truth := 7 * math.Log(10/5.) / math.Log(1.03)
			if *got.BreachLo > truth || *got.BreachHi < truth || math.Abs(*got.Breach/truth-1) > .15 {
				t.Errorf("%s: %v [%v, %v], the truth is %v", tt.name, *got.Breach, *got.BreachLo, *got.BreachHi, truth)
			}
		}
	}
}

func TestHeadroomStale(t *testing.T) {
	same := traffic{date: today, groups: true, rate: steadyRate(4)}
	change := func(f func(*traffic)) traffic { c := same; f(&c); return c }
	for _, tt := range []struct {
		name    string
		traffic traffic
		figures []string
		again   []string
	}{
		{"as tested", same, nil, []string{}},
		{"another mix", change(func(f *traffic) { f.chat = .5 }), []string{"mix_share", "mix_share"}, []string{"mix/real", "mix/bursty"}},
		{"longer prompts", change(func(f *traffic) { f.input = 1500 }), []string{"input_p50", "input_p90"}, []string{"mix/real", "mix/bursty", "chat/poisson"}},
		{"a colder cache", change(func(f *traffic) { f.hit = .3 }), []string{"hit_ratio_at_1024"}, []string{"mix/real", "mix/bursty"}},
	} {
		h := headroomOf(t, daysOf(t, tt.traffic), nil)
		var figures []string
		for _, m := range h.Moved {
			figures = append(figures, m.Figure)
			if m.Value >= m.Low && m.Value <= m.High {
				t.Errorf("%s: %+v", tt.name, m)
			}
		}
		if diff := cmp.Diff(tt.figures, figures); diff != "" || *h.Stale != (len(tt.figures) > 0) {
			t.Errorf("%s: %s", tt.name, diff)
		}
		if diff := cmp.Diff(tt.again, h.Again); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
	h := headroomOf(t, daysOf(t, same), func(o *capacity.HeadroomOptions) { o.Envelope.Tested = nil })
	if h.Stale != nil || !strings.Contains(strings.Join(h.Notes, "\n"), "band unknown") {
		t.Errorf("%v, %v", h.Stale, h.Notes)
	}
	h = headroomOf(t, daysOf(t, change(func(f *traffic) { f.groups, f.chat = false, .1 })), nil)
	if *h.Stale || !strings.Contains(strings.Join(h.Notes, "\n"), "no rows for classes") {
		t.Errorf("%v, %v", h.Moved, h.Notes)
	}
}

// Traffic without a wall time, an envelope that does not tell its replicas, and an hour of a day: what cannot be told is a note.
func TestHeadroomSaysWhatItCannotTell(t *testing.T) {
	h := headroomOf(t, daysOf(t, traffic{date: time.Unix(0, 0).UTC(), rate: steadyRate(3), to: 60}), nil)
	if h.Day != "" || h.Rows[0].Trend.State != schemas.TrendNeedsDays || len(h.Hours) > 0 || h.Rows[0].Peaks[0].At != "" {
		t.Errorf("%+v", h)
	}
	for _, want := range []string{"covers 1.0 h", "no wall time"} {
		if !strings.Contains(strings.Join(h.Notes, "\n"), want) {
			t.Errorf("%q is not in %v", want, h.Notes)
		}
	}
	h = headroomOf(t, daysOf(t, traffic{date: today, rate: steadyRate(3)}), func(o *capacity.HeadroomOptions) { o.Envelope.Replicas = 0 })
	if len(h.Hours) > 0 || !strings.Contains(strings.Join(h.Notes, "\n"), "how many replicas") {
		t.Errorf("%v", h.Notes)
	}
	_, err := capacity.NewHeadroom(capacity.HeadroomOptions{Decides: time.Hour, Replicas: -1})
	if fault.Of(err) != fault.Usage || strings.Count(err.Error(), "\n") != 3 {
		t.Errorf("%v", err)
	}
}

// What a test was run on is in its envelope, and comes back from its files.
func TestAnEnvelopeKeepsItsBand(t *testing.T) {
	e := testedEnvelope()
	e.Ladder = &capacity.Ladder{}
	e.NMinus1.Search = &capacity.SafeQPS{Answer: capacity.Answer{State: capacity.SearchConfirmed, SafeRate: 6}}
	dir := t.TempDir()
	if err := e.Write(dir); err != nil {
		t.Fatal(err)
	}
	got, err := capacity.ReadEnvelope(dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(asJSON(t, e), asJSON(t, got)); diff != "" || got.Replicas != 4 {
		t.Errorf("%s, %d replicas", diff, got.Replicas)
	}
	b := hour().Band(capacity.Hits{BlockSize: 16, Uses: 100_000, LRU: []capacity.HitPoint{{CapacityBlocks: 1000, BlockHit: .5}, {CapacityBlocks: 3000, BlockHit: .6}}})
	if s := b.Shares["chat"]; s.Value != .5 || s.Low != .375 || s.High != .625 {
		t.Errorf("%+v", s)
	}
	if len(b.Hits) != 1 || b.Hits[0].CapacityBlocks != 1000 {
		t.Errorf("a capacity that the trace is too short for counts: %+v", b.Hits)
	}
}
