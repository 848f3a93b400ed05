package analyze_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"tailgate/analyze"
	"tailgate/internal/fault"
	"tailgate/internal/parquetio"
	"tailgate/schemas"
)

// day writes n requests of each class: latencies of 1 … n ms times the class's factor, one in ten of them failed in
// class batch, and one probe, one that never reached the engine and one that its client left, all slow.
func day(t *testing.T, n int, classes map[string]int64) string {
	t.Helper()
	var rows []schemas.Request
	add := func(class string, ms int64, status string, probe, reached bool) {
		ttft, duration := ms*1000, ms*10_000
		rows = append(rows, schemas.Request{Class: &class, Status: status, IsProbe: probe, ReachedEngine: reached, TTFTUs: &ttft, DurationUs: &duration})
	}
	for class, factor := range classes {
		for i := range n {
			status := schemas.StatusOK
			if class == "batch" && i%10 == 0 {
				status = schemas.StatusServerError
			}
			add(class, int64(i+1)*factor, status, false, true)
		}
		add(class, 1e6, schemas.StatusOK, true, true)
		add(class, 1e6, schemas.StatusClientError, false, false)
		add(class, 1e6, schemas.StatusCancelled, false, true)
	}
	path := filepath.Join(t.TempDir(), "requests.parquet")
	if err := parquetio.WriteFile(path, schemas.Footer{Schema: schemas.TableRequests}.Map(), rows); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestProposeGate(t *testing.T) {
	text, err := analyze.ProposeGate(context.Background(), day(t, 1000, map[string]int64{"interactive": 1, "batch": 10}), analyze.ProposeOptions{Day: "2026-11-28", Slack: .2, MinN: 500})
	if err != nil {
		t.Fatal(err)
	}
	g, err := analyze.ParseGate("proposed", text, nil)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	got := map[string]string{}
	for _, r := range g.Rules {
		got[r.By.String()+" "+r.Name] = r.Limit.Text
	}
	for name, want := range map[string]string{
		"all requests success_rate":  ">= 0.94",    // 100 of 2,000 fail, 1.2 times as many may
		"class interactive ttft_p95": "<= 1200ms",  // 950 ms and a fifth, two digits
		"class interactive ttft_p99": "<= 1200ms",  // 990 ms
		"class interactive e2e_p95":  "<= 12000ms", // ten times ttft
		"class batch ttft_p95":       "<= 12000ms",
		"all requests queue_growth":  "no_sustained_growth",
	} {
		if got[name] != want {
			t.Errorf("%s: %q, want %q", name, got[name], want)
		}
	}
	if _, ok := got["class batch success_rate"]; ok || !strings.HasPrefix(string(text), "# PROPOSED") {
		t.Errorf("%s", text)
	}
	if _, err := analyze.ProposeGate(context.Background(), day(t, 20, map[string]int64{"batch": 1}), analyze.ProposeOptions{Day: "d"}); err == nil || fault.Of(err) != fault.Data {
		t.Errorf("too few requests: %v", err)
	}
}
