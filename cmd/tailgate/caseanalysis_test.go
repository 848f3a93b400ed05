package main

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tailgate/analyze"
	"tailgate/internal/pipenet"
	"tailgate/replay"
	"tailgate/replay/openai"
	"tailgate/replay/transporttest"
	"tailgate/schemas"
)

// The public cases from the first byte to the report: the recorded streams are served over HTTP in virtual time,
// replayed, and analysed, so that every figure of the report has one right value.

// analysed replays rows against a handler and analyses what was recorded.
func analysed(t *testing.T, rows []schemas.TraceRow, o replay.Options, gate string, h http.HandlerFunc) *analyze.Report {
	t.Helper()
	dir := t.TempDir()
	rec, err := replay.NewRecorder(dir, "r_case", schemas.Footer{})
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		l := pipenet.Listen()
		srv := &http.Server{Handler: h}
		var served sync.WaitGroup
		served.Go(func() { _ = srv.Serve(l) })
		c, err := openai.New(openai.Options{Targets: []string{"http://target"}, API: openai.APIChat, DialContext: l.DialContext,
			Prompts: &replay.Prompts{BlockSize: 16}})
		if err != nil {
			t.Fatal(err)
		}
		o.GoTimers = true
		if _, err := replay.RunReal(t.Context(), &replay.Plan{RunID: "r_case", Rows: rows}, o, c, rec); err != nil {
			t.Error(err)
		}
		c.Close()
		srv.Close()
		served.Wait()
	})
	if _, err := rec.Finish(); err != nil {
		t.Fatal(err)
	}
	d, err := analyze.Load(t.Context(), []string{filepath.Join(dir, replay.ResultsName)})
	if err != nil {
		t.Fatal(err)
	}
	var g *analyze.Gate
	if gate != "" {
		if g, err = analyze.ParseGate("gate.yaml", []byte(gate), nil); err != nil {
			t.Fatal(err)
		}
	}
	r, err := analyze.Analyze(t.Context(), d, analyze.Options{Gate: g})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// played replays the recorded streams of a case, one request a second.
func played(t *testing.T, name, gate string) *analyze.Report {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", "replay", "openai", "testdata", "cases", name, "transcript-*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts of %s (%v)", name, err)
	}
	slices.Sort(files)
	out := int32(512)
	var rows []schemas.TraceRow
	for i := range files {
		rows = append(rows, schemas.TraceRow{Row: int64(i), ScheduledUs: int64(i) * 1e6, InputTokens: 16, OutputTokens: &out, HashIDs: []int64{int64(i)}})
	}
	next := 0
	return analysed(t, rows, replay.Options{}, gate, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		next++
		serveTranscript(t, w, files[next-1])
	})
}

func serveTranscript(t *testing.T, w http.ResponseWriter, path string) {
	data, err := os.ReadFile(path)
	if err != nil {
		t.Error(err)
	}
	w.Header().Set("Content-Type", "text/event-stream")
	start := time.Now()
	for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
		var p struct {
			AtMs     float64 `json:"at_ms"`
			Raw, Hex string
			End      string
		}
		if err := json.Unmarshal(lines.Bytes(), &p); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Duration(p.AtMs*1e6) - time.Since(start))
		packet := []byte(p.Raw)
		if p.Hex != "" {
			packet, _ = hex.DecodeString(p.Hex)
		}
		_, _ = w.Write(packet)
		w.(http.Flusher).Flush()
		if p.End != "" {
			panic(http.ErrAbortHandler)
		}
	}
}

// wantMetric is what a report must say of one metric of the whole run, in ms.
type wantMetric struct {
	name                string
	n, undefined        int
	min, p50, p95, mean float64
}

func checkMetrics(t *testing.T, r *analyze.Report, want []wantMetric) {
	t.Helper()
	for _, w := range want {
		i := slices.IndexFunc(r.Buckets[0].Metrics, func(m analyze.Metric) bool { return m.Name == w.name })
		m := r.Buckets[0].Metrics[i]
		got := wantMetric{w.name, m.N, m.Undefined, float64(m.Min), float64(m.P50), float64(m.P95), math.Round(float64(m.Mean)*1000) / 1000}
		if got != w {
			t.Errorf("\n got %+v\nwant %+v", got, w)
		}
	}
}

func TestPublicCasesInTheReport(t *testing.T) {
	for _, c := range []struct {
		name, gate string
		success    float64
		early      float64
		verdict    string
		want       []wantMetric
	}{
		{"01-role-chunk-is-not-a-token", "", 1, 1, "", []wantMetric{{"ttft_ms", 2, 0, 200, 200, 300, 250}, {"tpot_ms", 2, 0, 20, 20, 20, 20}}},
		{"02-reasoning-first-token", "", 1, 1, "", []wantMetric{{"ttft_ms", 2, 0, 80, 80, 120, 100}, {"ttfo_ms", 2, 0, 200, 200, 400, 300},
			{"tpot_ms", 2, 0, 20, 20, 20, 20}, {"output_tokens", 2, 0, 5, 5, 18, 11.5}}},
		{"03-many-tokens-per-chunk", "", 1, 1, "", []wantMetric{{"tpot_ms", 2, 0, 10, 10, 10, 10}, {"itl_ms", 32, 0, 10, 10, 10, 10}}},
		{"05-error-object-inside-200", "capacity_gate: {success_rate: '>= 0.99'}", .5, 1, schemas.VerdictFail,
			[]wantMetric{{"ttft_ms", 2, 0, 100, 100, 100, 100}}},
		{"08-sse-framing", "", 1, 1, "", []wantMetric{{"ttft_ms", 1, 0, 60, 60, 60, 60}, {"e2e_ms", 1, 0, 160, 160, 160, 160}, {"tpot_ms", 1, 0, 20, 20, 20, 20}}},
		{"09-keepalive-comments", "", 1, 1, "", []wantMetric{{"ttft_ms", 1, 0, 150, 150, 150, 150}, {"e2e_ms", 1, 0, 170, 170, 170, 170}, {"tpot_ms", 1, 0, 20, 20, 20, 20}}},
		{"12-tpot-uses-real-length", "", 1, 1, "", []wantMetric{{"tpot_ms", 1, 0, 20, 20, 20, 20}, {"output_tokens", 1, 0, 11, 11, 11, 11}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := played(t, c.name, c.gate)
			checkMetrics(t, r, c.want)
			if float64(r.SuccessRate) != c.success || float64(r.EarlyStopShare) != c.early || r.Verdict() != c.verdict {
				t.Errorf("success rate %v, stopped early %v, verdict %q", r.SuccessRate, r.EarlyStopShare, r.Verdict())
			}
		})
	}
}

// Case 16: a cap of one makes sends late, and the report counts from the schedule.
func TestCoordinatedOmissionInTheReport(t *testing.T) {
	out := int32(1)
	var rows []schemas.TraceRow
	for i := range int64(6) {
		rows = append(rows, schemas.TraceRow{Row: i, ScheduledUs: i * 200_000, InputTokens: 16, OutputTokens: &out, HashIDs: []int64{i}})
	}
	r := analysed(t, rows, replay.Options{MaxInflight: 1}, "capacity_gate: {e2e_p99: 700}\nconfidence: point", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		transporttest.Events(w, 1, 300*time.Millisecond)
	})
	checkMetrics(t, r, []wantMetric{{"e2e_ms", 6, 0, 300, 500, 800, 550}, {"e2e_sent_ms", 6, 0, 300, 300, 300, 300}, {"lag_ms", 6, 0, 0, 200, 500, 250}})
	if got := float64(r.Gate.Rules[0].Observed); got != 800 {
		t.Errorf("the gate sees %v", got)
	}
}

// Case 25 (b): the run ends with its last completion, and not a gap later.
func TestTheRunEndsWithItsLastCompletion(t *testing.T) {
	out := int32(1)
	var rows []schemas.TraceRow
	for i := range int64(2) {
		rows = append(rows, schemas.TraceRow{Row: i, ScheduledUs: i * 2_000_000, InputTokens: 16, OutputTokens: &out, HashIDs: []int64{i}})
	}
	r := analysed(t, rows, replay.Options{}, "", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		transporttest.Events(w, 1, time.Second)
	})
	if w, rate := float64(r.Throughput.WindowS), float64(r.Throughput.RequestsPerS); w != 3 || math.Abs(rate-2./3) > 1e-9 {
		t.Errorf("window %v s, %v requests/s", w, rate)
	}
}

// Case 25 (a): nothing leaves at or after the deadline, and what did not leave counts against success.
func TestNoSendAfterTheDeadlineInTheReport(t *testing.T) {
	out := int32(1)
	var rows []schemas.TraceRow
	for i := range int64(20) {
		rows = append(rows, schemas.TraceRow{Row: i, ScheduledUs: i * 100_000, InputTokens: 16, OutputTokens: &out, HashIDs: []int64{i}})
	}
	r := analysed(t, rows, replay.Options{MaxInflight: 1, Duration: 2 * time.Second}, "", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		transporttest.Events(w, 1, time.Second)
	})
	if r.Scheduled != 20 || r.OK != 2 || r.NotSent != 18 || float64(r.SuccessRate) != .1 {
		t.Errorf("%d scheduled, %d ok, %d not sent, success rate %v", r.Scheduled, r.OK, r.NotSent, r.SuccessRate)
	}
}
