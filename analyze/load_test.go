package analyze_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"tailgate/analyze"
	"tailgate/internal/fault"
	"tailgate/internal/parquetio"
	"tailgate/schemas"
)

func TestAliasesAndUnits(t *testing.T) {
	for name, line := range map[string]string{
		"us":      `{"scheduled_us":1000,"sent_us":3000,"first_token_us":103000,"last_token_us":203000,"output_tokens":11,"status":"ok"}`,
		"ms":      `{"scheduled_ms":1,"sent_ms":3,"first_token_ms":103,"last_token_ms":203,"output_tokens":11,"status":"ok","prompt":"x"}`,
		"aliases": `{"scheduled":1,"sent":3.0,"first":103,"last":2.03e2,"output_tokens":11,"status":200,"stream":true}`,
		"mixed":   `{"scheduled_us":1000,"sent":3,"first_us":103000,"last_ms":203,"output_tokens":11,"status":"http_200","streamed":true}`,
	} {
		b := report(t, load(t, jsonl(t, line)), "").Buckets[0]
		same(t, name+" ttft", metric(t, b, "ttft_ms").P50, 102)
		same(t, name+" ttft_sent", metric(t, b, "ttft_sent_ms").P50, 100)
		same(t, name+" e2e", metric(t, b, "e2e_ms").P50, 202)
		same(t, name+" lag", metric(t, b, "lag_ms").P50, 2)
		same(t, name+" tpot", metric(t, b, "tpot_ms").P50, 10)
	}
}

func TestGapsQueueAndWarmupOfJSONL(t *testing.T) {
	r := report(t, load(t, jsonl(t,
		`{"sent":0,"first":1,"first_output":2,"last":9,"status":"ok","itl_ms":[1,3,2],"itl_is_token":true,"server_queue_ms":4,"phase":"measure"}`,
		`{"sent":0,"first":1,"last":9,"status":"ok","itl_us":[5000],"phase":"warmup"}`)), "")
	b := r.Buckets[0]
	same(t, "itl max", metric(t, b, "itl_ms").Max, 3)
	same(t, "itl p50", metric(t, b, "itl_ms").P50, 2)
	same(t, "queue", metric(t, b, "queue_ms").P50, 4)
	same(t, "ttfo", metric(t, b, "ttfo_ms").P50, 2)
	if r.Scheduled != 1 || r.WarmupRows != 1 || r.Valid != nil {
		t.Errorf("scheduled %d, warm-up %d, valid %v", r.Scheduled, r.WarmupRows, r.Valid)
	}
}

func TestCompressedJSONL(t *testing.T) {
	text := []byte(`{"sent":0,"first":7,"last":9,"status":"ok"}` + "\n\n")
	var gz, zst bytes.Buffer
	g := gzip.NewWriter(&gz)
	g.Write(text)
	g.Close()
	z, _ := zstd.NewWriter(&zst)
	z.Write(text)
	z.Close()
	for name, data := range map[string][]byte{"a.jsonl": text, "a.jsonl.gz": gz.Bytes(), "a.jsonl.zst": zst.Bytes(), "noname": zst.Bytes()} {
		path := filepath.Join(t.TempDir(), name)
		os.WriteFile(path, data, 0o644)
		same(t, name, metric(t, report(t, load(t, path), "").Buckets[0], "ttft_ms").P50, 7)
		if name == "a.jsonl" {
			continue
		}
		os.WriteFile(path, data[:len(data)-5], 0o644)
		if _, err := analyze.Load(context.Background(), []string{path}); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s cut short: %v", name, err)
		}
	}
}

func TestBrokenLinesAreNamed(t *testing.T) {
	const good = `{"sent":0,"first":7,"last":9,"status":"ok"}`
	for line, want := range map[string]string{
		`{"sent":`:                          "not a JSON object",
		`[1]`:                               "not a JSON object",
		`null`:                              "not a JSON object",
		`{"status":"ok"}`:                   "neither scheduled nor sent",
		`{"sent":1}`:                        "status is missing",
		`{"sent":1,"status":""}`:            "status is empty",
		`{"sent":1,"status":true}`:          "status must be a string",
		`{"sent":"soon","status":"ok"}`:     "sent must be a number",
		`{"sent":1e300,"status":"ok"}`:      "sent is out of range",
		`{"sent":5,"first":3,"status":200}`: "first lies before sent",
		`{"sent":1,"first":3,"last":2,"status":"ok"}`:     "last lies before first",
		`{"sent":1,"output_tokens":-3,"status":"ok"}`:     "output_tokens must be >= 0",
		`{"sent":1,"output_tokens":1.5,"status":"ok"}`:    "output_tokens must be a whole number",
		`{"sent":1,"itl_us":[-1],"status":"ok"}`:          "itl_us holds a gap out of range",
		`{"sent":1,"stream":"yes","status":"ok"}`:         "streamed must be true or false",
		`{"sent":1,"class":7,"status":"ok"}`:              "class must be a string",
		`{"sent":1,"input_tokens":"many","status":"ok"} `: "input_tokens must be a whole number",
	} {
		_, err := analyze.Load(context.Background(), []string{jsonl(t, good, line)})
		if err == nil || fault.Of(err) != fault.Data || !strings.Contains(err.Error(), "results.jsonl:2: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: more than one line", line)
		}
	}
}

func TestUnknownStatusIsAFailureOfItsOwnName(t *testing.T) {
	r := report(t, load(t, jsonl(t, `{"sent":0,"status":"exploded"}`, `{"sent":0,"status":503}`, `{"sent":0,"status":"http_429"}`)), "")
	if r.OK != 0 || r.Errors["exploded"] != 1 || r.Errors["http_error"] != 1 || r.Errors["rate_limited"] != 1 {
		t.Errorf("ok %d, errors %v", r.OK, r.Errors)
	}
	same(t, "requests/s without a completion", r.Throughput.RequestsPerS, nan)
}

func TestFolderAndItsFileAgree(t *testing.T) {
	rows := queueRun{seed: 3, minutes: 4, rate: 5, serveMs: 400, slots: 4, failEvery: 50}.rows()
	dir := folder(t, rows, nil)
	whole, bare := report(t, load(t, dir), ""), report(t, load(t, filepath.Join(dir, "results.parquet")), "")
	if whole.Valid == nil || !*whole.Valid || bare.Valid != nil || len(bare.Unchecked) == 0 || len(whole.Unchecked) != 0 {
		t.Errorf("valid %v and %v, unchecked %q and %q", whole.Valid, bare.Valid, whole.Unchecked, bare.Unchecked)
	}
	if a, b := metric(t, whole.Buckets[0], "ttft_ms"), metric(t, bare.Buckets[0], "ttft_ms"); a.P99 != b.P99 || a.N != b.N || whole.WarmupRows == 0 {
		t.Errorf("%+v and %+v", a, b)
	}
	ok := 0
	for _, r := range rows {
		if r.Phase == schemas.PhaseMeasure && r.Status == schemas.ResultOK {
			ok++
		}
	}
	if whole.OK != ok || whole.WarmupRows+whole.Scheduled != len(rows) || len(whole.Runs) != 1 || *whole.Runs[0].RunID != "r_test" || *whole.Runs[0].Clock != "virtual" {
		t.Errorf("ok %d of %d, runs %+v", whole.OK, ok, whole.Runs)
	}
}

// segments writes rows as the segments of a run that never finished.
func segments(t *testing.T, rows []schemas.Result) string {
	dir := t.TempDir()
	for k, part := range [][]schemas.Result{rows[:len(rows)/2], rows[len(rows)/2:]} {
		path := filepath.Join(dir, row("results-%05d.parquet", k))
		if err := parquetio.WriteFile(path, schemas.Footer{Schema: schemas.TableResults}.Map(), part); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestKilledRunIsReadAndInvalid(t *testing.T) {
	rows := queueRun{seed: 3, minutes: 4, rate: 5, serveMs: 400, slots: 4}.rows()
	dir := segments(t, rows)
	r := report(t, load(t, dir), "capacity_gate: {ttft_p95: 1s}")
	if r.Scheduled+r.WarmupRows != len(rows) || r.Valid == nil || *r.Valid || r.Verdict() != schemas.VerdictInvalid || !strings.Contains(r.Invalid[0], "unfinished") {
		t.Errorf("scheduled %d, valid %v, verdict %s, %q", r.Scheduled, r.Valid, r.Verdict(), r.Invalid)
	}
	if v := r.Gate.Rules[0]; v.Verdict != schemas.VerdictInvalid || !v.Observed.Known() {
		t.Errorf("rule %+v", v)
	}
	os.WriteFile(filepath.Join(dir, "results-00001.parquet"), []byte("PAR1 torn"), 0o644)
	r = report(t, load(t, dir), "")
	if r.Scheduled+r.WarmupRows != len(rows)/2 || !strings.Contains(strings.Join(r.Invalid, "\n"), "results-00001.parquet is unreadable") {
		t.Errorf("%d rows of %d, %q", r.Scheduled+r.WarmupRows, len(rows)/2, r.Invalid)
	}
}

func TestForeignAndChangedInputs(t *testing.T) {
	ctx := context.Background()
	rows := queueRun{seed: 3, minutes: 2, rate: 2, serveMs: 100, slots: 4}.rows()
	cut := folder(t, rows, nil)
	os.WriteFile(filepath.Join(cut, "results.parquet"), []byte("PAR1"), 0o644)
	foreign := filepath.Join(t.TempDir(), "trace.parquet")
	if err := parquetio.WriteFile(foreign, schemas.Footer{Schema: schemas.TableTrace}.Map(), []schemas.TraceRow{{}}); err != nil {
		t.Fatal(err)
	}
	alien := filepath.Join(t.TempDir(), "alien.parquet")
	if err := parquetio.WriteFile(alien, nil, []struct {
		Status int32 `parquet:"status"`
		At     int64 `parquet:"scheduled_us"`
	}{{}}); err != nil {
		t.Fatal(err)
	}
	negative := filepath.Join(t.TempDir(), "negative.parquet")
	if err := parquetio.WriteFile(negative, nil, []schemas.Result{{Status: schemas.ResultOK, ITLUs: []int32{5, -1}}}); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		path, want string
		kind       fault.Kind
	}{
		"a gap below 0":  {negative, "column itl_us: a gap of -1 µs", fault.Data},
		"nothing":        {"", "no input", fault.Usage},
		"missing":        {"does-not-exist", "does-not-exist", fault.Failure},
		"empty folder":   {t.TempDir(), "holds no results", fault.Data},
		"cut results":    {cut, "its manifest says", fault.Data},
		"another table":  {foreign, "holds the table trace", fault.Data},
		"foreign schema": {alien, "column status: is INT32, not a string", fault.Data},
		"no rows":        {jsonl(t, ""), "no rows", fault.Data},
	} {
		paths := []string{c.path}
		if c.path == "" {
			paths = nil
		}
		if _, err := analyze.Load(ctx, paths); err == nil || !strings.Contains(err.Error(), c.want) || fault.Of(err) != c.kind {
			t.Errorf("%s: %v of kind %v", name, err, fault.Of(err))
		}
	}
	stopped, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := analyze.Load(stopped, []string{folder(t, rows, nil)}); !errors.Is(err, context.Canceled) {
		t.Errorf("after cancelling: %v", err)
	}
}

// Shards of one run share its clock; different runs stand one after the other.
func TestShardsShareAClock(t *testing.T) {
	rows := queueRun{seed: 5, minutes: 6, rate: 5, serveMs: 900, slots: 6}.rows()
	var even, odd []schemas.Result
	for i, r := range rows {
		if i%2 == 0 {
			even = append(even, r)
		} else {
			odd = append(odd, r)
		}
	}
	const g = "capacity_gate: {ttft_p95: 400ms, queue_depth_max: 3}"
	from := func(rows []schemas.Result, day int, clock, id string) string {
		return folder(t, rows, func(m *schemas.Manifest) {
			m.StartedAt, m.Clock, m.RunID = m.StartedAt.AddDate(0, 0, day), clock, id
		})
	}
	one := report(t, load(t, from(rows, 0, "real", "a")), g)
	two := report(t, load(t, from(even, 0, "real", "a"), from(odd, 0, "real", "b")), g)
	for i := range one.Gate.Rules {
		a, b := one.Gate.Rules[i], two.Gate.Rules[i]
		if a.NEff != b.NEff && a.NEff.Known() || a.Observed != b.Observed || a.Reason != b.Reason {
			t.Errorf("whole run %+v\nshards %+v", a, b)
		}
	}
	if one.MeasuredMinutes != two.MeasuredMinutes || one.Throughput.GoodputPerS != two.Throughput.GoodputPerS {
		t.Errorf("minutes %v and %v, goodput %v and %v", one.MeasuredMinutes, two.MeasuredMinutes, one.Throughput.GoodputPerS, two.Throughput.GoodputPerS)
	}
	for name, paths := range map[string][]string{
		"two days":         {from(rows, 0, "real", "a"), from(rows, 1, "real", "b")},
		"two virtual runs": {from(rows, 0, "virtual", "a"), from(rows, 0, "virtual", "b")},
	} {
		both := report(t, load(t, paths...), g)
		same(t, name+": minutes", both.MeasuredMinutes, 2*float64(one.MeasuredMinutes))
		same(t, name+": rate", both.Throughput.RequestsPerS, float64(one.Throughput.RequestsPerS))
		if both.Scheduled != 2*one.Scheduled || both.Gate.Rules[1].Observed != one.Gate.Rules[1].Observed || len(both.Runs) != 2 {
			t.Errorf("%s: %d rows, depth %v, %d runs", name, both.Scheduled, both.Gate.Rules[1].Observed, len(both.Runs))
		}
	}
}

func FuzzReadJSONL(f *testing.F) {
	f.Add([]byte(`{"id":"a","sent":0,"first":1,"last":2,"output_tokens":3,"status":"ok"}` + "\n"))
	f.Add([]byte(`{"scheduled_us":1,"itl_ms":[1,2e3],"itl_is_token":true,"status":429,"bucket":"b"}` + "\n\n{}"))
	f.Add([]byte("\x1f\x8b\x08\x00\x00"))
	f.Add([]byte("\x28\xb5\x2f\xfd\x00"))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(dir, "f.jsonl")
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		d, err := analyze.Load(context.Background(), []string{path})
		if err != nil {
			if fault.Of(err) != fault.Data {
				t.Errorf("kind of %v", err)
			}
			return
		}
		r := report(t, d, "capacity_gate: {ttft_p99: 1s, itl_p99: 1s, e2e_p50: 1s, success_rate: 0.9, queue_growth: no_sustained_growth, queue_depth_max: 3}",
			"bucket", "input_length=0,5")
		var b bytes.Buffer
		if err := errors.Join(r.WriteJSON(&b), r.WriteText(&b), r.WriteHTML(&b), r.WriteJUnit(&b)); err != nil {
			t.Error(err)
		}
		if r.Scheduled+r.WarmupRows != d.Rows() {
			t.Errorf("%d + %d rows of %d", r.Scheduled, r.WarmupRows, d.Rows())
		}
	})
}
