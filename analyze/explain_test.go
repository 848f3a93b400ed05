package analyze_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tailgate/analyze"
	"tailgate/internal/fault"
	"tailgate/internal/parquetio"
	"tailgate/schemas"
)

// explained runs a simulated run and explains it under limits.
func explained(t *testing.T, p simulatedRun, limits string) *analyze.Explanation {
	t.Helper()
	return explain(t, loadExplained(t, p.run(t)), limits, analyze.ExplainOptions{Resamples: 200})
}

// first is the cause that comes first in the first bucket; "" when none is named.
func first(e *analyze.Explanation) analyze.Cause {
	if b := e.Buckets[0]; len(b.Causes) > 0 && b.Causes[0].Named {
		return b.Causes[0]
	}
	return analyze.Cause{}
}

const looseLimits = "capacity_gate: {ttft_p99: 6s, e2e_p99: 90s}\n"

// One target that refuses a part of its requests is told from failures everywhere.
func TestExplainFailingTarget(t *testing.T) {
	p := threeReplicas(.4, 1)
	p.minutes = 6
	p.results = func(r *rand.Rand, rows []schemas.Result) {
		code := int32(500)
		for i := range rows {
			if rows[i].Target == "replica-2" && r.Float64() < .1 {
				rows[i].Status, rows[i].HTTPStatus, rows[i].FirstTokenUs, rows[i].LastTokenUs = schemas.ResultHTTPError, &code, nil, nil
			}
		}
	}
	e := explained(t, p, looseLimits)
	if c := first(e); c.Cause != analyze.CauseFailingTarget || c.Target != "replica-2" || c.Share < .9 {
		t.Errorf("%+v", c)
	}
	if s := e.Buckets[0].Sentences[0]; !strings.Contains(s, "failed on replica-2, which alone fails") {
		t.Error(s)
	}
}

// Behind a gateway the telemetry of the replicas stands for its only target.
func TestExplainBehindAGateway(t *testing.T) {
	p := oneReplica(.6, 2)
	p.spec = strings.Replace(p.spec, "16777216", kvFor(&p), 1)
	p.results = func(_ *rand.Rand, rows []schemas.Result) {
		for i := range rows {
			rows[i].Target = "http://gateway"
		}
	}
	e := explained(t, p, "capacity_gate: {ttft_p99: 2s}\n")
	if c := first(e); c.Cause != analyze.CauseKVFull {
		t.Errorf("%+v", e.Buckets[0])
	}
}

// A counter that goes back is a restart: what is slow around it has a cause.
func TestExplainRestart(t *testing.T) {
	p := threeReplicas(.4, 3)
	p.minutes = 6
	p.results = func(_ *rand.Rand, rows []schemas.Result) {
		for i := range rows {
			if at := rows[i].ScheduledUs; rows[i].Target == "replica-0" && at > 118e6 && at < 146e6 {
				delay(&rows[i], 20_000_000)
				rows[i].LagUs = new(int64)
			}
		}
	}
	dir := p.run(t)
	path := filepath.Join(dir, "telemetry.parquet")
	rows, footer, err := parquetio.ReadFile[schemas.TelemetrySample](path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range rows {
		if rows[i].Metric == "preemptions_total" && rows[i].Target == "replica-0" && rows[i].AtUs < 120e6 {
			rows[i].Value += 5
		}
	}
	if err := parquetio.WriteFile(path, footer, rows); err != nil {
		t.Fatal(err)
	}
	e := explain(t, loadExplained(t, dir), looseLimits, analyze.ExplainOptions{Resamples: 200})
	if c := first(e); c.Cause != analyze.CauseOutage || !strings.Contains(c.Text, "replica-0 at 1m5") {
		t.Errorf("%+v", e.Buckets[0])
	}
}

// Servers that tell nothing of their own leave the same cause, and what was inferred is said.
func TestExplainInfers(t *testing.T) {
	p := withFault(threeReplicas, "slow:1:3@%ds,for=%ds")(.6, 4)
	told := explained(t, p, "capacity_gate: {ttft_p99: 4s}\n")
	p.blind = true
	e := explained(t, p, "capacity_gate: {ttft_p99: 4s}\n")
	if c := first(e); c.Cause != analyze.CauseSlowTarget || c.Target != "replica-1" {
		t.Errorf("%+v", c)
	}
	if len(told.Inferred) != 0 || len(e.Inferred) != 1 || !strings.Contains(e.Inferred[0], "server queue and prefill") {
		t.Errorf("told %v, blind %v", told.Inferred, e.Inferred)
	}
	for _, x := range []*analyze.Explanation{told, e} {
		if p := x.Buckets[0].Phases[0]; p.Phase != "server_queue" || p.Share < .6 {
			t.Errorf("phases %+v", x.Buckets[0].Phases)
		}
	}
}

// Without the trace the turns of a session tell what should have been cached.
func TestExplainMissesBySession(t *testing.T) {
	p := oneReplica(.4, 5)
	p.minutes = 8
	r := rand.New(rand.NewPCG(1, 1))
	p.trace = func(_ *rand.Rand, rows []schemas.TraceRow) []schemas.TraceRow {
		for i := range rows {
			// Sessions of two turns; in one of thirty the second turn names other blocks than the first, as after an eviction.
			name := fmt.Sprint("s", i/2)
			lost := int64(0)
			if i%2 == 1 && r.Float64() < 1./30 {
				lost = 1 << 30
			}
			rows[i].Session, rows[i].Turn, rows[i].InputTokens = &name, int32(i%2), 100
			if i%2 == 1 || i/2%4 == 0 {
				rows[i].InputTokens = 512*12 + 50
			}
			if rows[i].InputTokens > 100 {
				rows[i].HashIDs = nil
				for b := range int64(13) {
					rows[i].HashIDs = append(rows[i].HashIDs, int64(i/2)*100+b+lost)
				}
			}
		}
		return rows
	}
	e := explained(t, p, "capacity_gate: {ttft_p99: 2s}\n")
	found := false
	for _, c := range e.Buckets[0].Causes {
		found = found || c.Cause == analyze.CauseCacheMisses
	}
	if len(e.Unchecked) == 0 || !strings.Contains(strings.Join(e.Unchecked, "\n"), "no --trace was given") {
		t.Errorf("unchecked %v", e.Unchecked)
	}
	if e.Buckets[0].Verdict != analyze.ExplainTooFew && !found {
		t.Errorf("no cache misses among %+v", e.Buckets[0].Causes)
	}
}

// Runs that do not share a clock are explained together; buckets of the gate are added to those asked for.
func TestExplainSeveralRuns(t *testing.T) {
	a, b := withFault(oneReplica, "http_503:30%%@%ds,for=%ds")(.4, 6), oneReplica(.4, 7)
	a.minutes, b.minutes = 6, 6
	d, err := analyze.LoadExplained(context.Background(), []string{a.run(t), b.run(t)})
	if err != nil {
		t.Fatal(err)
	}
	gateText := "capacity_gate: {ttft_p99: 6s}\nbuckets:\n  - {by: {input_length: [0, 1024]}, ttft_p99: 6s}\n"
	by, err := analyze.ParseBy("target")
	if err != nil {
		t.Fatal(err)
	}
	e, err := analyze.Explain(context.Background(), d, analyze.Options{Gate: gate(t, gateText), By: []analyze.By{by}}, analyze.ExplainOptions{Resamples: 200})
	if err != nil {
		t.Fatal(err)
	}
	if c := first(e); c.Cause != analyze.CauseErrors || c.Text != "failed: http_error (HTTP 503)" {
		t.Errorf("%+v", e.Buckets[0])
	}
	var names []string
	for _, b := range e.Buckets {
		names = append(names, b.By.String())
	}
	if diff := cmp.Diff([]string{"all requests", "target replica-0", "input_length [0, 1024)"}, names); diff != "" {
		t.Error(diff)
	}
	if e.Buckets[0].Requests != d.Rows() || e.Buckets[0].Failed != e.Buckets[0].Violations {
		t.Errorf("%d of %d rows, %d failed of %d violations", e.Buckets[0].Requests, d.Rows(), e.Buckets[0].Failed, e.Buckets[0].Violations)
	}
}

// The same data gives the same explanation, as JSON without NaN.
func TestExplainIsDeterministic(t *testing.T) {
	p := withFault(threeReplicas, "slow:1:3@%ds,for=%ds")(.6, 8)
	p.minutes = 6
	dir := p.run(t)
	var texts [2][]byte
	for k := range texts {
		d := loadExplained(t, dir)
		r := report(t, d, "")
		r.Explain = explain(t, d, "", analyze.ExplainOptions{Seed: 1, Resamples: 200})
		var out, text bytes.Buffer
		if err := r.WriteJSON(&out); err != nil {
			t.Fatal(err)
		}
		if err := r.WriteText(&text); err != nil {
			t.Fatal(err)
		}
		texts[k] = append(out.Bytes(), text.Bytes()...)
		var back struct {
			Explain struct {
				Buckets []struct {
					Limits []string
					Causes []struct{ Cause string }
				}
			}
		}
		if err := json.Unmarshal(out.Bytes(), &back); err != nil || len(back.Explain.Buckets) != 1 || len(back.Explain.Buckets[0].Limits) != 2 {
			t.Errorf("%v: %+v", err, back)
		}
	}
	if !bytes.Equal(texts[0], texts[1]) {
		t.Error("two explanations of one run differ")
	}
}

func TestExplainLittle(t *testing.T) {
	few := jsonl(t, row(`{"sent":0,"first":1,"last":2,"output_tokens":2,"status":"ok"}`), row(`{"sent":5,"status":"timeout"}`))
	e := explain(t, loadExplained(t, few), "", analyze.ExplainOptions{})
	if b := e.Buckets[0]; b.Verdict != analyze.ExplainTooFew || len(b.Sentences) != 1 {
		t.Errorf("%+v", b)
	}
	e = explain(t, loadExplained(t, few), "capacity_gate: {ttft_p99: 1s}\n", analyze.ExplainOptions{})
	if b := e.Buckets[0]; b.Violations != 1 || b.Failed != 1 || !strings.Contains(b.Sentences[0], "too few violations") {
		t.Errorf("%+v", b)
	}
	var all []string
	for i := range 40 {
		all = append(all, row(`{"scheduled":%d,"sent":%d,"first":%d,"last":%d,"output_tokens":2,"status":"ok"}`, i*100, i*100, i*100+5000, i*100+5001))
	}
	e = explain(t, loadExplained(t, jsonl(t, all...)), "capacity_gate: {ttft_p99: 1s}\n", analyze.ExplainOptions{})
	if b := e.Buckets[0]; b.Violations != 40 || b.Verdict != analyze.ExplainNothing {
		t.Errorf("all violate, none is left to compare with: %+v", b)
	}
	d := loadExplained(t, few)
	o := analyze.ExplainOptions{Confidence: 2, Resamples: -1}
	_, err := analyze.Explain(context.Background(), d, analyze.Options{}, o)
	for _, want := range []string{"confidence", "resamples"} {
		if err == nil || fault.Of(err) != fault.Usage || !strings.Contains(err.Error(), want) {
			t.Errorf("%v lacks %s", err, want)
		}
	}
	for _, bad := range [][2]string{{"lag", "3ms"}, {"queue_growth", "no"}, {"ttft", "fast"}, {"success_rate", "1"}} {
		if _, err := analyze.LatencyRule(bad[0], bad[1]); fault.Of(err) != fault.Usage {
			t.Errorf("%v: %v", bad, err)
		}
	}
}

// Slices of time are buckets here as in the report.
func TestExplainSlicesOfTime(t *testing.T) {
	var lines []string
	for i := range 120 {
		lines = append(lines, row(`{"scheduled":%d,"sent":%d,"first":%d,"last":%d,"output_tokens":2,"status":"ok"}`, i*1000, i*1000, i*1000+50, i*1000+90))
	}
	d := loadExplained(t, jsonl(t, lines...))
	by, err := analyze.ParseBy("time=1m")
	if err != nil {
		t.Fatal(err)
	}
	e, err := analyze.Explain(context.Background(), d, analyze.Options{By: []analyze.By{by}}, analyze.ExplainOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, b := range e.Buckets {
		got = append(got, row("%s %d", b.By, b.Requests))
	}
	if diff := cmp.Diff([]string{"all requests 120", "time [0s, 1m) 60", "time [1m, 2m) 60"}, got); diff != "" {
		t.Error(diff)
	}
}

// A telemetry file that cannot be read is named, and the rest is explained.
func TestExplainWithBrokenTelemetry(t *testing.T) {
	p := withFault(oneReplica, "http_503:30%%@%ds,for=%ds")(.4, 9)
	p.minutes = 6
	dir := p.run(t)
	if err := os.WriteFile(filepath.Join(dir, "telemetry.parquet"), []byte("PAR1 no"), 0o600); err != nil {
		t.Fatal(err)
	}
	e := explain(t, loadExplained(t, dir), looseLimits, analyze.ExplainOptions{Resamples: 200})
	if c := first(e); c.Cause != analyze.CauseErrors || !strings.Contains(strings.Join(e.Unchecked, "\n"), "telemetry.parquet") {
		t.Errorf("%+v %v", c, e.Unchecked)
	}
}
