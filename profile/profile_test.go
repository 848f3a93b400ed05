package profile_test

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tailgate/internal/fault"
	"tailgate/profile"
	"tailgate/schemas"
	"tailgate/trace"
)

func ptr[T any](v T) *T { return &v }

// request is a row of a hand-written trace.
func request(us int64, in, out int32) schemas.TraceRow {
	return schemas.TraceRow{ScheduledUs: us, InputTokens: in, OutputTokens: &out}
}

func traceOf(rows ...schemas.TraceRow) *trace.Trace {
	t := &trace.Trace{Rows: rows}
	for i := range t.Rows {
		t.Rows[i].Row, t.Rows[i].SourceRow = int64(i), int64(i)
		if t.Rows[i].Session == nil {
			t.Rows[i].Session = ptr("s" + string(rune('a'+i%26)) + string(rune('a'+i/26%26)) + string(rune('a'+i/676)))
		}
	}
	return t
}

func compute(t testing.TB, tr *trace.Trace, o profile.Options) *profile.Profile {
	t.Helper()
	p, err := profile.Compute(context.Background(), tr, o)
	if err != nil {
		t.Fatal(err)
	}
	noNaN(t, p)
	return p
}

// noNaN fails when any table holds a NaN or an infinity.
func noNaN(t testing.TB, p *profile.Profile) {
	t.Helper()
	if _, err := json.Marshal(p); err != nil {
		t.Errorf("a table holds what JSON cannot: %v", err)
	}
}

func near(t testing.TB, name string, got *float64, want, tolerance float64) {
	t.Helper()
	if got == nil {
		t.Errorf("%s is null, want %v", name, want)
	} else if math.Abs(*got-want) > tolerance {
		t.Errorf("%s = %v, want %v ± %v", name, *got, want, tolerance)
	}
}

func TestDegenerateTraces(t *testing.T) {
	failed := func(us int64) schemas.TraceRow {
		return schemas.TraceRow{ScheduledUs: us, InputTokens: 10, Status: ptr(schemas.StatusServerError)}
	}
	cases := []struct {
		name     string
		trace    *trace.Trace
		requests int64
		gaps     int // rows of the gap table
		lengths  int
		says     string
	}{
		{"empty", traceOf(), 0, 0, 0, "nothing to profile"},
		{"one row", traceOf(request(0, 5, 6)), 1, 0, 2, "none: one request"},
		{"two rows", traceOf(request(0, 5, 6), request(1_000_000, 5, 6)), 2, 1, 2, "gaps       n 1"},
		{"equal stamps", traceOf(request(7, 5, 6), request(7, 5, 6), request(7, 5, 6)), 3, 1, 2, "one instant"},
		{"only failures", traceOf(failed(0), failed(2_000_000), failed(3_000_000)), 3, 1, 0, "every request failed"},
		{"equal gaps", traceOf(request(0, 1, 1), request(1_000_000, 1, 1), request(2_000_000, 1, 1)), 3, 1, 2, "too few gaps"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p := compute(t, c.trace, profile.Options{PerGroup: true})
			if p.Meta[0].Requests != c.requests {
				t.Errorf("%d requests, want %d", p.Meta[0].Requests, c.requests)
			}
			gaps, lengths := 0, 0
			for _, g := range p.IAT {
				if g.Tenant == profile.All {
					gaps++
				}
			}
			for _, l := range p.Lengths {
				if l.Tenant == profile.All {
					lengths++
				}
			}
			if gaps != c.gaps || lengths != c.lengths {
				t.Errorf("%d gap rows and %d length rows, want %d and %d", gaps, lengths, c.gaps, c.lengths)
			}
			var b bytes.Buffer
			p.WriteText(&b)
			if !strings.Contains(b.String(), c.says) || strings.Contains(b.String(), "NaN") {
				t.Errorf("text does not say %q:\n%s", c.says, &b)
			}
		})
	}
}

func TestUnsortedTraceIsRefused(t *testing.T) {
	_, err := profile.Compute(context.Background(), traceOf(request(5, 1, 1), request(4, 1, 1)), profile.Options{})
	if fault.Of(err) != fault.Data || !strings.Contains(err.Error(), "row 1 arrives before row 0") {
		t.Errorf("error %v", err)
	}
}

func TestOptionsNameEveryFault(t *testing.T) {
	err := profile.Options{Source: "kafka", ProfileID: "*"}.Validate()
	if fault.Of(err) != fault.Usage || !strings.Contains(err.Error(), `"kafka"`) || !strings.Contains(err.Error(), "profile id") {
		t.Errorf("error %v", err)
	}
	if err := (profile.Options{}).Validate(); err != nil {
		t.Errorf("zero options: %v", err)
	}
}

func TestFailedRequestsAreArrivalsAndNotLengths(t *testing.T) {
	rows := []schemas.TraceRow{
		request(0, 472, 18), request(40e6, 1087, 230), request(113e6, 417, 276), request(195e6, 1360, 0),
		request(240e6, 185, 215), request(305e6, 900, 0), request(396e6, 600, 61),
	}
	for _, i := range []int{3, 5} {
		rows[i].Status, rows[i].OutputTokens = ptr(schemas.StatusServerError), nil
	}
	p := compute(t, traceOf(rows...), profile.Options{})
	if m := p.Meta[0]; m.Requests != 7 || m.Failed != 2 {
		t.Errorf("%d requests, %d failed", m.Requests, m.Failed)
	}
	near(t, "mean gap", p.IAT[0].MeanS, 66, 1e-9)
	var n, sum int64
	for _, l := range p.Lengths {
		if l.Dim == profile.DimOutput {
			n += l.N
			sum += l.N * int64(l.LoTok)
		}
	}
	if n != 5 || sum != 800 {
		t.Errorf("output: %d lengths, sum %d, want 5 and 800", n, sum)
	}
	var b bytes.Buffer
	p.WriteText(&b)
	for _, want := range []string{"2 failed (28.57 %)", "n 5  mean 552.2", "n 5  mean 160  p50 215"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("text lacks %q:\n%s", want, &b)
		}
	}
}

func TestNothingBelowTheResolution(t *testing.T) {
	var rows []schemas.TraceRow
	for i := range int64(1200) {
		rows = append(rows, request(i/10*3_000_000, 10, 10)) // 10 requests each 3 s
	}
	tr := traceOf(rows...)
	tr.Meta.QuantumUs = 3_000_000
	p := compute(t, tr, profile.Options{})
	g := p.IAT[0]
	if g.CVRaw != nil || g.CVOp60 != nil || g.MinS != nil || g.P50S != nil || len(g.ACF) != 0 || len(p.IATFit) != 0 {
		t.Errorf("a law of the gaps is claimed on a clock of 3 s: %+v, %d fits", g, len(p.IATFit))
	}
	near(t, "p99 gap", g.P99S, 3, 0)
	for _, d := range p.Dispersion {
		if below := d.ScaleUs < 3_000_000; below != (d.IDC == nil) && d.ScaleUs <= 30_000_000 {
			t.Errorf("scale %d µs: idc %v", d.ScaleUs, d.IDC)
		}
	}
	tr.Meta.Spread = true // then the stamps stand
	if p := compute(t, tr, profile.Options{}); p.IAT[0].CVRaw == nil || !p.Meta[0].Dequantised || p.Meta[0].TimeResolutionUs != 3_000_000 {
		t.Errorf("spread trace: %+v", p.Meta[0])
	}
	tr.Meta.QuantumUs, tr.Meta.Unit = 0, "s"
	tr.Meta.Spread = false
	if p := compute(t, tr, profile.Options{}); p.Meta[0].TimeResolutionUs != 1_000_000 {
		t.Errorf("whole seconds: resolution %d", p.Meta[0].TimeResolutionUs)
	}
	tr.Rows[len(rows)-1].ScheduledUs += 1_000 // the unit is the second, the stamps are finer
	if p := compute(t, tr, profile.Options{}); p.Meta[0].TimeResolutionUs != 1_000 {
		t.Errorf("seconds with a fraction: resolution %d", p.Meta[0].TimeResolutionUs)
	}
}

func TestGroupsAddUpToTheTotal(t *testing.T) {
	var rows []schemas.TraceRow
	for i := range int64(600) {
		r := request(i*250_000, int32(10+i%7*100), int32(i%5))
		if i%3 > 0 {
			r.Tenant = ptr([]string{"", "t_b", "t_a"}[i%3])
		}
		r.Class = ptr([]string{"batch", "agent"}[i%2])
		r.HashIDs = []int64{1, i % 9}
		rows = append(rows, r)
	}
	p := compute(t, traceOf(rows...), profile.Options{PerGroup: true, ProfileID: "x", Epoch: "e1", Source: profile.SourceLake})
	sum, groups := map[bool]int64{}, map[[2]string]bool{}
	for _, r := range p.Rate {
		if r.BinUs == 10_000_000 {
			sum[r.Tenant == profile.All] += r.Requests + 1000*r.TokensIn + 1_000_000*r.SessionsStarted
		}
		groups[[2]string{r.Tenant, r.Class}] = true
	}
	if sum[true] != sum[false] || len(groups) != 7 {
		t.Errorf("total %d, groups %d, %d keys", sum[true], sum[false], len(groups))
	}
	if m := p.Meta[0]; m.ProfileID != "x" || m.Epoch != "e1" || m.Source != profile.SourceLake || p.IAT[3].ProfileID != "x" {
		t.Errorf("meta %+v", m)
	}
	if diff := cmp.Diff(p, compute(t, traceOf(rows...), profile.Options{PerGroup: true, ProfileID: "x", Epoch: "e1", Source: profile.SourceLake})); diff != "" {
		t.Errorf("two runs differ:\n%s", diff)
	}
}

func TestRateBinsFallOnUTCBorders(t *testing.T) {
	tr := traceOf(request(0, 5, 1), request(30e6, 7, 1), request(31e6, 9, 1))
	tr.Meta.StartedAt = time.Date(2026, 9, 1, 10, 14, 45, 0, time.UTC)
	p := compute(t, tr, profile.Options{})
	if got := p.Meta[0].WindowStart; !got.Equal(time.Date(2026, 9, 1, 10, 10, 0, 0, time.UTC)) {
		t.Errorf("window starts %v", got)
	}
	var got [][2]int64
	for _, r := range p.Rate {
		if r.BinUs == 60_000_000 {
			got = append(got, [2]int64{r.BinStartUs, r.Requests})
		}
	}
	if diff := cmp.Diff([][2]int64{{240e6, 1}, {300e6, 2}}, got); diff != "" {
		t.Error(diff)
	}
}

func TestSpikesStayExact(t *testing.T) {
	var rows []schemas.TraceRow
	for i := range int64(3000) {
		in := int32(1000 + i*7%2900)
		if i%10 == 0 {
			in = 7436
		}
		rows = append(rows, request(i, in, math.MaxInt32))
	}
	p := compute(t, traceOf(rows...), profile.Options{})
	atoms := map[int32]int64{}
	var total int64
	for _, l := range p.Lengths {
		if l.HiTok <= l.LoTok && l.LoTok != math.MaxInt32 {
			t.Errorf("bin [%d, %d)", l.LoTok, l.HiTok)
		}
		if l.Dim != profile.DimInput {
			continue
		}
		total += l.N
		if l.IsAtom {
			atoms[l.LoTok] = l.N
		} else if w := float64(l.HiTok-l.LoTok) / float64(l.LoTok); w > 1.0/16 {
			t.Errorf("bin [%d, %d) is %v wide", l.LoTok, l.HiTok, w)
		}
	}
	if atoms[7436] != 300 || total != 3000 || len(atoms) > 32 {
		t.Errorf("cap has %d of 300, total %d, %d atoms", atoms[7436], total, len(atoms))
	}
}

func TestModelNames(t *testing.T) {
	for _, c := range []struct {
		models []string
		want   string
	}{{nil, ""}, {[]string{"m_a", "m_a"}, "m_a"}, {[]string{"m_a", "m_b"}, "*"}} {
		var rows []schemas.TraceRow
		for i := range c.models {
			rows = append(rows, schemas.TraceRow{Model: &c.models[i]})
		}
		if got := compute(t, traceOf(rows...), profile.Options{}).Meta[0].Model; got != c.want {
			t.Errorf("%v: model %q, want %q", c.models, got, c.want)
		}
	}
}

func TestEveryTableIsFilled(t *testing.T) {
	v := reflect.ValueOf(*compute(t, fixture(1), profile.Options{}))
	for i := range v.NumField() { // latencies come from a lake
		if v.Field(i).Len() == 0 && v.Type().Field(i).Name != "Latency" {
			t.Errorf("table %s is empty", v.Type().Field(i).Name)
		}
	}
}
