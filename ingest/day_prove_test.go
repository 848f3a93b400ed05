package ingest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// dayMemory is what any stage of the day may take, in bytes.
const dayMemory = 4 << 30

// dayScript is what DuckDB does of a day's work: the segments sorted into one file; counts, lengths and gaps, of the total and of
// tenants and classes; a trace with and without each class as JSON lines. No dedupe, turns, suppression or shared blocks; no fits,
// sessions or reuse; no ids of private blocks, and nothing rescaled.
const dayScript = `
import duckdb, sys
lake, out, classes = sys.argv[1], sys.argv[2], sys.argv[3].split(",")
duckdb.execute("SET threads=2; SET memory_limit='3GB'; SET enable_progress_bar=false; SET temp_directory='" + out + "/tmp'")
day = out + "/day.parquet"
duckdb.execute(f"COPY (SELECT * FROM read_parquet('{lake}/_segments/*/*/*/*.parquet') ORDER BY arrived_at, request_key) TO '{day}' (FORMAT parquet, COMPRESSION zstd)")
t = f"read_parquet('{day}')"
for by in ["", "tenant, class, "]:
    group = " GROUP BY ALL" if by else ""
    for dim in ["input_tokens", "output_tokens"]:
        duckdb.sql(f"SELECT count(*), sum(n) FROM (SELECT {by}{dim}, count(*) AS n FROM {t} GROUP BY ALL)").fetchall()
    duckdb.sql(f"SELECT sum(n), sum(i) FROM (SELECT {by}epoch_us(arrived_at) // 1000000 AS s, count(*) AS n, sum(input_tokens) AS i FROM {t} GROUP BY ALL)").fetchall()
    part = f"PARTITION BY {by[:-2]} " if by else ""
    duckdb.sql(f"SELECT {by}stddev_samp(g) / avg(g) FROM (SELECT {by}epoch_us(arrived_at) - lag(epoch_us(arrived_at)) OVER ({part}ORDER BY arrived_at) AS g FROM {t}){group}").fetchall()
for c in classes:
    where = "" if c == "all" else f"WHERE class = '{c}'"
    duckdb.execute(f"COPY (SELECT epoch_us(arrived_at) / 1000 AS timestamp, input_tokens AS input_length, output_tokens AS output_length, hash_ids, session AS session_id, tenant, class, model, stream FROM {t} {where} ORDER BY arrived_at) TO '{out}/{c}.json.zst' (FORMAT json, COMPRESSION zstd)")
`

// daySplit are the traces of the day: all, and each of the five classes.
const daySplit = "all,interactive,agent,batch,long_context,other"

// TestProveDay takes a day of 5 million requests, 8 ids in the mean, from segments to a day of the lake, a profile, six traces
// and one rescaled to 1.5 times, by the commands of the nightly job, each in a process of its own with two threads. It prints time,
// processor time and peak memory of each, and holds their sum against what DuckDB takes for a part of the work in the same run, where a
// Python with duckdb is at hand (TAILGATE_PYTHON). TAILGATE_PROVE_ROWS is another number of requests, TAILGATE_PROVE_KEEP
// a folder that keeps the segments.
func TestProveDay(t *testing.T) {
	if os.Getenv("TAILGATE_PROVE") != "full" {
		t.Skip("takes minutes: TAILGATE_PROVE=full")
	}
	root, n := os.Getenv("TAILGATE_PROVE_KEEP"), 5_000_000
	if v, err := strconv.Atoi(os.Getenv("TAILGATE_PROVE_ROWS")); err == nil {
		n = v
	}
	if root == "" {
		root = t.TempDir()
	}
	lake, out := filepath.Join(root, "lake"), t.TempDir()
	if _, err := os.Stat(lake); err != nil {
		dayLake(t, lake, n)
	}
	bin := filepath.Join(out, "tailgate")
	if said, err := exec.CommandContext(t.Context(), "go", "build", "-o", bin, "../cmd/tailgate").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	var sum spent
	stage := func(name string, cmd *exec.Cmd) spent {
		u := timed(t, cmd, "GOMAXPROCS=2", "TMPDIR="+out)
		t.Logf("%s: %v", name, u)
		if u.rss > dayMemory {
			t.Errorf("%s takes %d MiB, more than %d", name, u.rss>>20, dayMemory>>20)
		}
		return u
	}
	traces := filepath.Join(out, "traces")
	for _, args := range [][]string{
		{"publish", lake, "--day", proveDay},
		{"profile", lake, "--day", proveDay, "--block-size", "16", "-o", filepath.Join(out, "profile")},
		{"trace", "export", lake, "--day", proveDay, "--block-size", "16", "--split", daySplit, "-o", traces},
		{"rescale", filepath.Join(traces, "all.jsonl.zst"), "--scale", "1.5x", "-o", filepath.Join(traces, "all@1.5x.jsonl.zst")},
	} {
		u := stage(strings.Join(args[:1+btoi(args[0] == "trace")], " "), exec.CommandContext(t.Context(), bin, args...))
		sum.took, sum.cpu, sum.rss = sum.took+u.took, sum.cpu+u.cpu, max(sum.rss, u.rss)
	}
	for _, name := range strings.Split(daySplit+",all@1.5x", ",") {
		st, err := os.Stat(filepath.Join(traces, name+".jsonl.zst"))
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %d MB, %.1f bytes for each request of the day", name, st.Size()/1e6, float64(st.Size())/float64(n))
	}
	t.Logf("figures day: %d requests, 6 traces and one rescaled: %v", n, sum)
	python := os.Getenv("TAILGATE_PYTHON")
	if python == "" || exec.CommandContext(t.Context(), python, "-c", "import duckdb").Run() != nil {
		t.Log("no Python with duckdb in TAILGATE_PYTHON: nothing to compare with")
		return
	}
	theirs := stage("DuckDB", exec.CommandContext(t.Context(), python, "-c", dayScript, lake, out, daySplit))
	t.Logf("figures day: %.2f times the processor time of DuckDB's part of it", sum.cpu.Seconds()/theirs.cpu.Seconds())
	if sum.cpu > 3*theirs.cpu {
		t.Error("the day takes more than three times the processor time of DuckDB's part of it")
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// The generator of the day makes what it says: mean of the ids, sessions in order, five classes.
func TestDayTraffic(t *testing.T) {
	const n = 20_000
	midnight, _ := time.Parse(time.DateOnly, proveDay)
	ids, classes, last := 0, map[string]int{}, map[int32]int8{}
	for i, turn := range dayTraffic(n) {
		row := dayRow(i, turn, midnight)
		ids += len(row.HashIDs)
		classes[*row.Class]++
		if before, seen := last[turn.session]; seen && turn.turn != before+1 || !seen && turn.turn != 0 {
			t.Fatalf("session %d: turn %d", turn.session, turn.turn)
		}
		last[turn.session] = turn.turn
		if want := (int(*row.InputTokens) + 15) / 16; want != len(row.HashIDs) || *row.InputTokens%16 != row.TailTokens {
			t.Fatalf("%d tokens, %d ids, tail %d", *row.InputTokens, len(row.HashIDs), row.TailTokens)
		}
	}
	if mean := float64(ids) / n; mean < 7.5 || mean > 8.6 || len(classes) != 5 {
		t.Errorf("%.2f ids in the mean, classes %v", mean, classes)
	}
}
