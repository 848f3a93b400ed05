package profile_test

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"tailgate/profile"
	"tailgate/schemas"
	"tailgate/trace"
)

func TestCompare(t *testing.T) {
	out := int32(10)
	tenants := []string{"a", "b"}
	build := func(n int, gap int64, in int32, tenant func(i int) int) *trace.Trace {
		tr := &trace.Trace{Meta: trace.Meta{Name: "t", BlockSize: 16}}
		for i := range n {
			tr.Rows = append(tr.Rows, schemas.TraceRow{Row: int64(i), ScheduledUs: int64(i) * gap, InputTokens: in, OutputTokens: &out,
				HashIDs: []int64{1, int64(2 + i%2)}, Tenant: &tenants[tenant(i)]})
		}
		return tr
	}
	a := build(1001, 1_000_000, 32, func(i int) int { return i % 2 })
	b := build(2001, 500_000, 20, func(int) int { return 0 })
	c := profile.Compare(a, b)
	if *c.RateOf != 2 || *c.Input.KS != 1 || *c.Output.KS != 0 || *c.Input.Mean.A != 32 || *c.Input.P99.B != 20 {
		t.Errorf("rate %v, KS %v %v, %+v", *c.RateOf, *c.Input.KS, *c.Output.KS, c.Input)
	}
	if len(c.Tenants) != 2 || math.Abs(*c.Tenants[0].A-501.0/1001) > 1e-9 || *c.Tenants[1].B != 0 {
		t.Errorf("%+v", c.Tenants)
	}
	if h := c.Hits[0]; h.Capacity != 0 || math.Abs(*h.A-(1-3.0/2002)) > 1e-9 {
		t.Errorf("%+v", h)
	}
	for _, s := range c.IDC {
		if s.ScaleUs == 10_000_000 && (s.A == nil || *s.A != 0) {
			t.Errorf("constant arrivals: IDC %v", s.A)
		}
	}
	var text bytes.Buffer
	c.WriteText(&text)
	for _, want := range []string{"request_rate /s", "B/A 2", "tenant a", "block hit, all kept"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is missing in\n%s", want, text.String())
		}
	}
	if _, err := json.Marshal(profile.Compare(a, &trace.Trace{})); err != nil {
		t.Errorf("against an empty trace: %v", err)
	}
}
