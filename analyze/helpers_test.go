package analyze_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tailgate/analyze"
	"tailgate/internal/parquetio"
	"tailgate/internal/rng"
	"tailgate/schemas"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares got with testdata/name.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("%s: %s", name, diff)
	}
}

func load(t testing.TB, paths ...string) *analyze.Data {
	t.Helper()
	d, err := analyze.Load(context.Background(), paths)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// jsonl writes lines to a file.
func jsonl(t testing.TB, lines ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "results.jsonl")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func gate(t testing.TB, text string) *analyze.Gate {
	t.Helper()
	if text == "" {
		return nil
	}
	g, err := analyze.ParseGate("gate.yaml", []byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// parseLimit reads the limit of a rule from a gate that has no other.
func parseLimit(rule, text string) (analyze.Limit, error) {
	g, err := analyze.ParseGate("gate.yaml", fmt.Appendf(nil, "capacity_gate:\n  %q: %q\n", rule, text), nil)
	if err != nil {
		return analyze.Limit{}, err
	}
	return g.Rules[0].Limit, nil
}

func report(t testing.TB, d *analyze.Data, gateText string, by ...string) *analyze.Report {
	t.Helper()
	o := analyze.Options{Gate: gate(t, gateText)}
	for _, s := range by {
		b, err := analyze.ParseBy(s)
		if err != nil {
			t.Fatal(err)
		}
		o.By = append(o.By, b)
	}
	r, err := analyze.Analyze(context.Background(), d, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// metric finds a metric of a bucket.
func metric(t testing.TB, b analyze.Bucket, name string) analyze.Metric {
	t.Helper()
	for _, m := range b.Metrics {
		if m.Name == name {
			return m
		}
	}
	t.Fatalf("no metric %s", name)
	return analyze.Metric{}
}

// same compares a figure with a number; NaN stands for unknown.
func same(t testing.TB, what string, got analyze.Figure, want float64) {
	t.Helper()
	g := float64(got)
	if math.IsNaN(want) != math.IsNaN(g) || math.IsInf(want, 1) != math.IsInf(g, 1) ||
		!math.IsNaN(want) && !math.IsInf(want, 0) && math.Abs(g-want) > 1e-3 {
		t.Errorf("%s = %v, want %v", what, g, want)
	}
}

var (
	inf = math.Inf(1)
	nan = math.NaN()
)

// queueRun simulates one server queue: Poisson arrivals at rate per second for the given minutes, exponential service
// with the given mean in ms on slots, first token when service begins plus 50 ms.
type queueRun struct {
	seed          uint64
	minutes       float64
	rate, serveMs float64
	slots         int
	failEvery     int
}

func (q queueRun) rows() []schemas.Result {
	r := rng.New(q.seed, "queue")
	free := make([]float64, q.slots)
	var rows []schemas.Result
	classes := []string{"interactive", "agent", "long_context"}
	for at := r.ExpFloat64() / q.rate; at < q.minutes*60; at += r.ExpFloat64() / q.rate {
		k := 0
		for i := range free {
			if free[i] < free[k] {
				k = i
			}
		}
		start := max(at, free[k])
		serve := r.ExpFloat64() * q.serveMs / 1000
		free[k] = start + serve
		us := func(s float64) *int64 { v := int64(s * 1e6); return &v }
		n := len(rows)
		out, first := int32(2+r.IntN(200)), start+.05
		row := schemas.Result{
			RunID: "r_test", Row: int64(n), Class: &classes[n%3], Phase: schemas.PhaseMeasure, ScheduledUs: *us(at), SentUs: us(at + .0004),
			LagUs: us(.0004), FirstByteUs: us(first), FirstTokenUs: us(first), FirstOutputUs: us(first),
			LastTokenUs: us(max(first, start+serve)), ClosedUs: us(max(first, start+serve) + .001), Streamed: true, Events: out,
			InputLength: int32(r.IntN(9000)), OutputLength: &out, OutputTokens: &out, ServerQueueUs: us(start - at),
			ITLIsToken: true, Status: schemas.ResultOK, Target: "http://a",
		}
		in := row.InputLength
		row.InputTokens = &in
		for range min(8, out-1) {
			row.ITLUs = append(row.ITLUs, int32(5000+r.IntN(20)*1000))
		}
		row.ITLN = int32(len(row.ITLUs))
		if at < 60 {
			row.Phase = schemas.PhaseWarmup
		}
		if q.failEvery > 0 && n%q.failEvery == q.failEvery-1 {
			row.Status, row.FirstTokenUs, row.LastTokenUs, row.OutputTokens, row.ITLUs = schemas.ResultTimeout, nil, nil, nil, nil
		}
		rows = append(rows, row)
	}
	return rows
}

// folder writes a finished run folder; edit may change the manifest.
func folder(t testing.TB, rows []schemas.Result, edit func(*schemas.Manifest)) string {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "results.parquet")
	if err := parquetio.WriteFile(path, schemas.Footer{Schema: schemas.TableResults}.Map(), rows); err != nil {
		t.Fatal(err)
	}
	digest, err := schemas.DigestFile(dir, path)
	if err != nil {
		t.Fatal(err)
	}
	last := rows[len(rows)-1].ScheduledUs
	m := schemas.Manifest{
		Kind: "run", RunID: "r_test", StartedAt: time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC), Clock: "virtual",
		Labels: map[string]string{"model": "m"}, Files: []schemas.FileDigest{digest},
		Run: &schemas.RunFacts{Scheduled: int64(len(rows)), DurationUs: (last/60e6 + 1) * 60e6, WarmupUs: 60e6, Invalid: []string{}},
	}
	if edit != nil {
		edit(&m)
	}
	if err := m.Write(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

func row(format string, args ...any) string { return fmt.Sprintf(format, args...) }

// renderings are all that a report prints.
func renderings(t testing.TB, r *analyze.Report) map[string]string {
	t.Helper()
	out := map[string]string{}
	for what, write := range map[string]func(io.Writer) error{
		"text": r.WriteText, "markdown": r.WriteMarkdown, "json": r.WriteJSON, "junit": r.WriteJUnit, "html": r.WriteHTML,
	} {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		out[what] = b.String()
	}
	return out
}
