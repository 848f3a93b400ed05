package analyze_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"tailgate/analyze"
	"tailgate/internal/parquetio"
	"tailgate/internal/rng"
	"tailgate/schemas"
)

// manyResults writes n result rows of ten tenants: sessions of four turns in the mean, answers of nine tokens with their
// gaps, one request in a hundred failed.
func manyResults(tb testing.TB, path string, n int) {
	tb.Helper()
	f, err := os.Create(path)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	w := parquetio.NewWriter[schemas.Result](f, schemas.Footer{Schema: schemas.TableResults}.Map(), 0)
	r := rng.New(1, "many results")
	batch := make([]schemas.Result, 4096)
	gaps := make([]int32, 0, 16*len(batch))
	for at := 0; at < n; at += len(batch) {
		batch, gaps = batch[:min(len(batch), n-at)], gaps[:0]
		for i := range batch {
			gaps = manyRow(&batch[i], r.IntN, r.ExpFloat64, at+i, gaps)
		}
		if err := w.Write(batch); err != nil {
			tb.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
}

// manyRow fills a row in; its gaps are appended to gaps.
func manyRow(row *schemas.Result, below func(int) int, exp func() float64, i int, gaps []int32) []int32 {
	session := rng.Hash(uint64(i), 1) % uint64(i/4+1)
	*row = schemas.Result{
		RunID: "r", Row: int64(i), Session: ptr("s_" + strconv.FormatUint(session, 36)), Tenant: ptr("tenant " + strconv.FormatUint(rng.Hash(session, 2)%10, 10)),
		Class: ptr([]string{"agent", "batch", "interactive"}[session%3]), Model: ptr("pelican-8b"), Phase: schemas.PhaseMeasure,
		ScheduledUs: int64(i) * 360, Streamed: true, InputLength: int32(1 + below(8000)), Status: schemas.ResultOK, Target: "http://a", ITLIsToken: true,
	}
	sent := row.ScheduledUs + int64(100*exp())
	row.SentUs, row.LagUs, row.OutputLength, row.InputTokens = &sent, ptr(sent-row.ScheduledUs), ptr(int32(1+below(17))), ptr(row.InputLength)
	if i%100 == 99 {
		row.Status, row.ITLIsToken, row.ClosedUs = schemas.ResultTimeout, false, ptr(sent+60_000_000)
		return gaps
	}
	queue := int64(20_000 * exp())
	first := sent + queue + 30*int64(row.InputLength) + int64(5000*exp())
	last, from := first, len(gaps)
	for range *row.OutputLength - 1 {
		gap := int64(8000 + 4000*exp())
		for step := int64(1); ; step *= 2 { // the floor of a 3-digit bucket
			if gap < 2048*step {
				gap -= gap % step
				break
			}
		}
		gaps, last = append(gaps, int32(gap)), last+gap
	}
	row.FirstByteUs, row.FirstTokenUs, row.FirstOutputUs, row.LastTokenUs = ptr(first), ptr(first), ptr(first), &last
	row.ClosedUs, row.ServerQueueUs, row.OutputTokens, row.CachedTokens = ptr(last+100), &queue, row.OutputLength, ptr(int32(0))
	row.Events, row.FirstEventTokens, row.HTTPStatus = *row.OutputLength, ptr(int32(1)), ptr(int32(200))
	row.ITLUs, row.ITLN = gaps[from:len(gaps):len(gaps)], int32(len(gaps)-from)
	return gaps
}

// duckScript gives DuckDB's quantiles of the same metrics by tenant, and of the whole run, as one JSON object; the last
// line is the time that they took.
const duckScript = `
import duckdb, json, sys, time
duckdb.execute("SET threads=2; SET enable_progress_bar=false")
t = "read_parquet('" + sys.argv[1] + "')"
metrics = {"ttft_ms": "first_token_us - scheduled_us", "ttfo_ms": "first_output_us - scheduled_us",
    "tpot_ms": "CASE WHEN output_tokens > greatest(first_event_tokens, 1) THEN (last_token_us - first_token_us) / (output_tokens - first_event_tokens) END",
    "e2e_ms": "last_token_us - scheduled_us", "ttft_sent_ms": "first_token_us - sent_us", "e2e_sent_ms": "last_token_us - sent_us",
    "lag_ms": "sent_us - scheduled_us", "queue_ms": "server_queue_us", "output_tokens": "output_tokens"}
ps = "[.5, .9, .95, .99, .999]"
plain = ", ".join("quantile_disc(%s, %s) AS %s" % (x, ps, name) for name, x in metrics.items())
gaps = "quantile_disc(g, %s) AS itl_ms FROM (SELECT tenant, unnest(itl_us) AS g FROM %s WHERE status = 'ok')" % (ps, t)
out, began = {}, time.time()
for by in sys.argv[2].split(","):
    key, group = ("tenant", "GROUP BY 1") if by == "tenant" else ("''", "")
    for q in ["SELECT %s AS k, %s FROM %s WHERE status = 'ok' %s" % (key, plain, t, group), "SELECT %s AS k, %s %s" % (key, gaps, group)]:
        r = duckdb.sql(q)
        for row in r.fetchall():
            out.setdefault(row[0], {}).update(zip(r.columns[1:], row[1:]))
took = time.time() - began
print(json.dumps(out))
print(took)
`

// duckQuantiles runs DuckDB and returns its quantiles in µs or tokens by tenant, "" is the whole run, and its time
// without the start of Python.
func duckQuantiles(tb testing.TB, python, path, by string) (values map[string]map[string][]float64, took time.Duration, p *os.ProcessState) {
	tb.Helper()
	cmd := exec.Command(python, "-c", duckScript, path, by)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		tb.Fatalf("%v: %s", err, &errs)
	}
	text, last, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	if err := json.Unmarshal([]byte(text), &values); err != nil {
		tb.Fatal(err)
	}
	seconds, err := strconv.ParseFloat(last, 64)
	if err != nil {
		tb.Fatal(err)
	}
	return values, time.Duration(seconds * float64(time.Second)), cmd.ProcessState
}

// duckPython is a Python with duckdb, "" where there is none.
func duckPython() string {
	python := os.Getenv("TAILGATE_PYTHON")
	if python == "" || exec.Command(python, "-c", "import duckdb").Run() != nil {
		return ""
	}
	return python
}

// jsonBuckets is what sameValues needs of a report's JSON.
type jsonBuckets struct {
	Buckets []struct {
		By      map[string]string
		Metrics map[string]map[string]json.RawMessage
	}
}

// sameValues holds the percentiles of a report, as JSON, to those of others, and counts them.
func sameValues(tb testing.TB, report []byte, theirs map[string]map[string][]float64) (compared int) {
	tb.Helper()
	var r jsonBuckets
	if err := json.Unmarshal(report, &r); err != nil {
		tb.Fatal(err)
	}
	for _, b := range r.Buckets {
		for name, want := range theirs[b.By["tenant"]] {
			scale := 1000.0
			if name == "output_tokens" {
				scale = 1
			}
			for i, p := range []string{"p50", "p90", "p95", "p99", "p999"} {
				got, err := strconv.ParseFloat(string(b.Metrics[name][p]), 64)
				if compared++; err != nil || got != want[i]/scale {
					tb.Errorf("bucket %q, %s %s: %s, not %v", b.By["tenant"], name, p, b.Metrics[name][p], want[i]/scale)
				}
			}
		}
	}
	if compared == 0 {
		tb.Error("nothing was compared")
	}
	return compared
}

func jsonOf(tb testing.TB, r *analyze.Report) []byte {
	tb.Helper()
	var out bytes.Buffer
	if err := r.WriteJSON(&out); err != nil {
		tb.Fatal(err)
	}
	return out.Bytes()
}

var byTenant = analyze.By{Parts: []analyze.Part{{Key: "tenant"}}}

// TestProveAnalyze analyzes 10 million result rows in ten buckets, in a process of its own, and prints time and peak
// memory, beside DuckDB's for the same quantiles where a Python with duckdb is at hand (TAILGATE_PYTHON). Both have two
// threads.
func TestProveAnalyze(t *testing.T) {
	if os.Getenv("TAILGATE_PROVE") != "full" {
		t.Skip("takes minutes: TAILGATE_PROVE=full")
	}
	n := 10_000_000
	if few, err := strconv.Atoi(os.Getenv("TAILGATE_PROVE_ROWS")); err == nil {
		n = few
	}
	dir := os.Getenv("TAILGATE_PROVE_KEEP")
	if dir == "" {
		dir = t.TempDir()
	}
	path := filepath.Join(dir, "results.parquet")
	if _, err := os.Stat(path); err != nil {
		manyResults(t, path, n)
	}
	report := filepath.Join(t.TempDir(), "report.json")
	cmd := exec.Command(os.Args[0], "-test.run", "^TestProveAnalyzeChild$", "-test.v")
	cmd.Env = append(os.Environ(), "TAILGATE_PROVE_RESULTS="+path, "TAILGATE_PROVE_REPORT="+report, "GOMAXPROCS=2")
	began := time.Now()
	out, err := cmd.CombinedOutput()
	ours := time.Since(began)
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	rss := peakOf(cmd.ProcessState)
	t.Logf("analyze: %d rows in %v (%v of processors), peak %d MiB\n%s", n, ours.Round(time.Millisecond), cpuOf(cmd.ProcessState), rss>>20, out)
	if rss > 1_500_000_000 {
		t.Errorf("analyze took %d MB, more than 1.5 GB", rss/1_000_000)
	}
	python := duckPython()
	if python == "" {
		t.Log("no Python with duckdb in TAILGATE_PYTHON: nothing to compare with")
		return
	}
	_, tenTook, ten := duckQuantiles(t, python, path, "tenant")
	values, allTook, all := duckQuantiles(t, python, path, "tenant,all")
	t.Logf("DuckDB: %v by tenant (%v of processors), %v with the whole run (%v), peak %d MiB; analyze, which has both, takes %.2f and %.2f times as long",
		tenTook.Round(time.Millisecond), cpuOf(ten), allTook.Round(time.Millisecond), cpuOf(all), peakOf(all)>>20, ours.Seconds()/tenTook.Seconds(),
		ours.Seconds()/allTook.Seconds())
	if ours > 3*allTook { // the same quantiles: a report has the whole run and the ten buckets
		t.Error("analyze takes more than three times as long as DuckDB")
	}
	data, err := os.ReadFile(report)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d percentiles are those of DuckDB", sameValues(t, data, values))
}

func cpuOf(p *os.ProcessState) time.Duration {
	return (p.UserTime() + p.SystemTime()).Round(time.Millisecond)
}

// peakOf is the peak memory of a process in bytes.
func peakOf(p *os.ProcessState) int64 { return p.SysUsage().(*syscall.Rusage).Maxrss << 10 }

func TestProveAnalyzeChild(t *testing.T) {
	path := os.Getenv("TAILGATE_PROVE_RESULTS")
	if path == "" {
		t.Skip("runs as a child of TestProveAnalyze")
	}
	debug.SetMemoryLimit(1536 << 20) // as the command does
	debug.SetGCPercent(15)
	began := time.Now()
	d, err := analyze.Load(t.Context(), []string{path})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("loaded in %v", time.Since(began).Round(time.Millisecond))
	began = time.Now()
	r, err := analyze.Analyze(context.Background(), d, analyze.Options{By: []analyze.By{byTenant}})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("analyzed in %v", time.Since(began).Round(time.Millisecond))
	if err := os.WriteFile(os.Getenv("TAILGATE_PROVE_REPORT"), jsonOf(t, r), 0o600); err != nil {
		t.Fatal(err)
	}
}
