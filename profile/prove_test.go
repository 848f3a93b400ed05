package profile_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"tailgate/internal/parquetio"
	"tailgate/internal/rng"
	"tailgate/profile"
	"tailgate/schemas"
)

// proveRows is 10 million, or TAILGATE_PROVE_ROWS.
func proveRows() int {
	if n, err := strconv.Atoi(os.Getenv("TAILGATE_PROVE_ROWS")); err == nil {
		return n
	}
	return 10_000_000
}

// proveLake writes a day of n requests with 8 shared ids each in the mean: sessions of four turns in the mean that begin
// with a system prompt of their tenant, and go on from the turn before.
func proveLake(tb testing.TB, root string, n int) {
	tb.Helper()
	r := rng.New(1, "prove")
	type turn struct {
		atUs    int64
		session int32
		turn    int8
		turns   int8
	}
	all := make([]turn, 0, n+8)
	for session := int32(0); len(all) < n; session++ {
		turns := 1 + r.IntN(7)
		at := r.Int64N(80_000_000_000)
		for k := range turns {
			all = append(all, turn{at, session, int8(k), int8(turns)})
			at += 1_000_000 + int64(r.ExpFloat64()*60e6)
		}
	}
	slices.SortFunc(all, func(a, b turn) int { return cmp.Or(cmp.Compare(a.atUs, b.atUs), cmp.Compare(a.session, b.session)) })
	midnight, _ := time.Parse(time.DateOnly, lakeDay)
	dir := filepath.Join(root, "day="+lakeDay)
	f, err := os.Create(filepath.Join(dir, "requests.parquet"))
	if err = errors.Join(err, os.MkdirAll(dir, 0o700)); err != nil {
		f, err = os.Create(filepath.Join(dir, "requests.parquet"))
	}
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	w := parquetio.NewWriter[schemas.Request](f, schemas.Footer{Schema: schemas.TableRequests, Tokenizer: "o200k", Epoch: "e7"}.Map(), 0)
	batch := make([]schemas.Request, 0, 4096)
	for i, t := range all[:n] {
		batch = append(batch, proveRow(i, t.session, int32(t.turn), int32(t.turns), midnight.Add(time.Duration(t.atUs)*time.Microsecond)))
		if len(batch) == cap(batch) || i == n-1 {
			if err := w.Write(batch); err != nil {
				tb.Fatal(err)
			}
			batch = batch[:0]
		}
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
}

func proveRow(i int, session, turn, turns int32, at time.Time) schemas.Request {
	s := uint64(session)
	tenant := rng.Hash(s, 1) % 200
	system := 1 + int(tenant%4)
	ids := make([]int64, 0, 24)
	for b := range system {
		ids = append(ids, int64(rng.Hash(tenant, uint64(b), 2)>>1))
	}
	// A turn adds two to four blocks; those of the last one are its own.
	shared := 0
	for k := int32(0); k <= turn && k < turns-1; k++ {
		shared += 2 + int(rng.Hash(s, uint64(k), 3)%2)
	}
	for b := range shared {
		ids = append(ids, int64(rng.Hash(s, uint64(b), 4)>>1))
	}
	private := int32(0)
	if turn == turns-1 {
		private = int32(rng.Hash(s, 5) % 6)
	}
	tail := int32(rng.Hash(uint64(i), 6) % 16)
	input := 16*(int32(len(ids))+private) + tail
	h := rng.Hash(uint64(i), 7)
	return schemas.Request{
		RequestKey: int64(rng.Hash(uint64(i), 8) >> 1), RequestID: ptr(fmt.Sprintf("r_%013d", i)), ArrivedAt: at, TimeResolutionUs: 1, TQuality: schemas.TimeStart,
		Gateway: "litellm", Op: schemas.OpChat, Status: []string{schemas.StatusOK, schemas.StatusServerError}[min(h%97, 1)^1], HTTPStatus: ptr(int32(200)),
		ReachedEngine: true, SampledFraction: 1, Stream: ptr(h%2 == 0), Model: "pelican-8b",
		Class: ptr([]string{schemas.ClassInteractive, schemas.ClassAgent, schemas.ClassBatch}[s%3]), Tenant: ptr(fmt.Sprintf("t_%013d", tenant)),
		Session: ptr(fmt.Sprintf("s_%013d", session)), Turn: &turn, InputTokens: &input, InputTokensSource: schemas.TokensProvider,
		OutputTokens: ptr(int32(h >> 20 % 2000)), OutputTokensSource: schemas.TokensProvider, CachedTokensSource: schemas.TokensAbsent,
		ReasoningTokensSource: schemas.TokensAbsent, Reconciled: schemas.ReconciledEqual, TTFTUs: ptr(int64(h >> 10 % 1_000_000)),
		DurationUs: ptr(int64(h >> 8 % 30_000_000)), HashIDs: ids, PrivateBlocks: private, TailTokens: tail, PromptState: schemas.PromptFull,
		Topic: "k_aaaaaaaaaaaaa", Partition: int32(i % 4), Offset: int64(i / 4),
	}
}

// proveScript is what DuckDB does of the work: lengths, gaps and counts, of the total and by tenant and class. The large
// results are counted and not fetched.
const proveScript = `
import duckdb, sys, time
duckdb.execute("SET threads=2; SET memory_limit='2GB'; SET enable_progress_bar=false")
t = "read_parquet('" + sys.argv[1] + "')"
lag = "SELECT %s stddev_samp(g) / avg(g) FROM (SELECT %s epoch_us(arrived_at) - lag(epoch_us(arrived_at)) OVER (%s ORDER BY arrived_at) AS g FROM " + t + ") %s"
sums = "count(*) AS n, sum(input_tokens) AS i, sum(output_tokens) AS o FROM " + t
for name, queries in [
    ("total", ["SELECT input_tokens, count(*) FROM " + t + " GROUP BY 1", "SELECT output_tokens, count(*) FROM " + t + " WHERE status = 'ok' GROUP BY 1",
        "SELECT sum(n), sum(i), sum(o) FROM (SELECT epoch_us(arrived_at) // 1000000 AS s, " + sums + " GROUP BY 1)", lag % ("", "", "", "")]),
    ("groups", ["SELECT count(*), sum(n) FROM (SELECT tenant, class, input_tokens, count(*) AS n FROM " + t + " GROUP BY ALL)",
        "SELECT count(*), sum(n) FROM (SELECT tenant, class, output_tokens, count(*) AS n FROM " + t + " WHERE status = 'ok' GROUP BY ALL)",
        "SELECT sum(n), sum(i), sum(o) FROM (SELECT tenant, class, epoch_us(arrived_at) // 60000000 AS s, " + sums + " GROUP BY ALL)",
        lag % ("tenant, class,", "tenant, class,", "PARTITION BY tenant, class", "GROUP BY ALL")]),
]:
    began, cpu = time.time(), time.process_time()
    for q in queries:
        duckdb.sql(q).fetchall()
    print(name, time.time() - began, time.process_time() - cpu)
`

// TestProveProfile profiles a day of 10 million requests in a process of its own and prints time and peak memory, beside
// what DuckDB takes for lengths, gaps and counts alone where a Python with duckdb is at hand (TAILGATE_PYTHON).
func TestProveProfile(t *testing.T) {
	if os.Getenv("TAILGATE_PROVE") != "full" {
		t.Skip("takes minutes: TAILGATE_PROVE=full")
	}
	root, n := os.Getenv("TAILGATE_PROVE_KEEP"), proveRows()
	if root == "" {
		root = t.TempDir()
	}
	if _, err := os.Stat(filepath.Join(root, "day="+lakeDay)); err != nil {
		proveLake(t, root, n)
	}
	run := func(groups string) proveTime {
		took, rss, out := proveRun(t, exec.Command(os.Args[0], "-test.run", "^TestProveProfileChild$", "-test.v"), "TAILGATE_PROVE_LAKE="+root, "TAILGATE_PROVE_GROUPS="+groups)
		t.Logf("profile, groups %s: %d requests in %.2f s, %.2f s of CPU, peak %d MiB\n%s", groups, n, took.wall, took.cpu, rss>>20, out)
		if rss > 2<<30 {
			t.Errorf("profile took %d MiB, more than 2 GiB", rss>>20)
		}
		return took
	}
	total, groups := run("no"), run("yes")
	python := os.Getenv("TAILGATE_PYTHON")
	if python == "" || exec.Command(python, "-c", "import duckdb").Run() != nil {
		t.Log("no Python with duckdb in TAILGATE_PYTHON: nothing to compare with")
		return
	}
	_, rss, out := proveRun(t, exec.Command(python, "-c", proveScript, filepath.Join(root, "day="+lakeDay, "requests.parquet")))
	var theirs [2]proveTime
	if _, err := fmt.Sscanf(out, "total %g %g\ngroups %g %g", &theirs[0].wall, &theirs[0].cpu, &theirs[1].wall, &theirs[1].cpu); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	theirs[1].wall, theirs[1].cpu = theirs[0].wall+theirs[1].wall, theirs[0].cpu+theirs[1].cpu // a profile with groups has the total too
	t.Logf("DuckDB, lengths, gaps and counts: total %.2f s, %.2f s of CPU; with groups %.2f s, %.2f s of CPU; peak %d MiB", theirs[0].wall, theirs[0].cpu, theirs[1].wall, theirs[1].cpu, rss>>20)
	for k, ours := range []proveTime{total, groups} {
		name := []string{"the total", "total and groups"}[k]
		t.Logf("profile takes %.2f times as long for %s, %.2f times the CPU", ours.wall/theirs[k].wall, name, ours.cpu/theirs[k].cpu)
		// A profile is that of every group and of the total. The total alone, which --per-group=false makes, is shown beside: its
		// ids, sessions and latencies, which DuckDB's part does not read, weigh more.
		if k == 1 && ours.wall > 3*theirs[k].wall {
			t.Errorf("profile takes more than three times as long as DuckDB for %s", name)
		}
	}
}

// proveTime is what a command takes, in seconds.
type proveTime struct{ wall, cpu float64 }

// proveRun runs a command and returns its time, its peak memory in bytes and what it prints.
func proveRun(t *testing.T, cmd *exec.Cmd, env ...string) (proveTime, int64, string) {
	t.Helper()
	cmd.Env = append(os.Environ(), env...)
	began := time.Now()
	out, err := cmd.CombinedOutput()
	took := time.Since(began)
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	cpu := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return proveTime{took.Seconds(), cpu.Seconds()}, cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss << 10, strings.TrimSpace(string(out))
}

func TestProveProfileChild(t *testing.T) {
	root := os.Getenv("TAILGATE_PROVE_LAKE")
	if root == "" {
		t.Skip("runs as a child of TestProveProfile")
	}
	debug.SetMemoryLimit(1536 << 20) // as the command does
	debug.SetGCPercent(100)
	began := time.Now()
	part, err := profile.ReadLake(context.Background(), root, profile.LakeOptions{Day: lakeDay, BlockSize: 16})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("read in %v", time.Since(began).Round(time.Millisecond))
	p, err := part.Profile(context.Background(), profile.Options{PerGroup: os.Getenv("TAILGATE_PROVE_GROUPS") == "yes"})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d sessions, hit curve from %.3g of the blocks, error %.4f", p.Meta[0].Sessions, *p.HitCurve[1].SampleRate, *p.HitCurve[1].BlockHitError)
}
