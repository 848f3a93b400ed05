package ingest

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"tailgate/internal/objstore"
	"tailgate/schemas"
)

const (
	proveDay   = "2026-11-28"
	proveParts = 4
)

// proveLake writes n rows of one day, with 8 ids each in the mean of which the first ones are shared, as the
// segments of four partitions.
func proveLake(t testing.TB, lake string, n int) {
	t.Helper()
	midnight, _ := time.Parse(time.DateOnly, proveDay)
	store := objstore.NewDir(lake)
	footer := schemas.Footer{Schema: schemas.TableSegment, Epoch: "e1", Tokenizer: "chars4", BlockSize: "16"}
	for p := range proveParts {
		id := logID{topic: "k_aaaaaaaaaaaaa", partition: int32(p)}
		rnd := rand.New(rand.NewPCG(7, uint64(p)))
		rows, per := n/proveParts, 250_000
		for first := 0; first < rows; first += per {
			seg, err := newSegment(store, id, footer, int64(first), &budget{}, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			for i := first; i < min(first+per, rows); i++ {
				at := midnight.Add(time.Duration(float64(i)/float64(rows)*86_000e9) + time.Duration(rnd.Int64N(60e9)))
				if err := seg.addRow(proveRow(rnd, id, i, n, at)); err != nil {
					t.Fatal(err)
				}
				seg.facts.Messages++
				seg.facts.Next = int64(i + 1)
			}
			if err := seg.close(); err != nil {
				t.Fatal(err)
			}
			if err := store.Publish(context.Background(), seg.file, segmentKey(id, int64(first))); err != nil {
				t.Fatal(err)
			}
			seg.discard()
		}
	}
}

func proveRow(rnd *rand.Rand, id logID, i, n int, at time.Time) schemas.Request {
	tenant := rnd.IntN(200)
	session := fmt.Sprintf("s_%013d", rnd.IntN(n/4+1))
	blocks := 1 + rnd.IntN(15)
	row := schemas.Request{
		RequestKey: rnd.Int64(), RequestID: new(fmt.Sprintf("r_%013d", rnd.Int64N(1e13))), ArrivedAt: at.Truncate(time.Microsecond),
		TimeResolutionUs: 1, TQuality: schemas.TimeStart, Gateway: "litellm", Op: schemas.OpChat, Status: schemas.StatusOK,
		HTTPStatus: new(int32(200)), ReachedEngine: true, SampledFraction: 1, Stream: new(rnd.IntN(2) == 0), Model: "pelican-8b",
		Class: new(schemas.ClassInteractive), Tenant: new(fmt.Sprintf("t_%013d", tenant)), Session: &session,
		InputTokens: new(int32(16*blocks - 3)), InputTokensSource: schemas.TokensProvider,
		OutputTokens: new(int32(rnd.IntN(2000))), OutputTokensSource: schemas.TokensProvider,
		CachedTokensSource: schemas.TokensAbsent, ReasoningTokensSource: schemas.TokensAbsent, Reconciled: schemas.ReconciledEqual,
		TTFTUs: new(rnd.Int64N(1e6)), DurationUs: new(rnd.Int64N(3e7)), PromptState: schemas.PromptFull, TailTokens: 13,
		Topic: id.topic, Partition: id.partition, Offset: int64(i),
	}
	shared := rnd.IntN(blocks + 1)
	for b := range blocks {
		switch {
		case b < min(shared, 4): // a system prompt of the tenant
			row.HashIDs = append(row.HashIDs, int64(tenant*100+b+1))
		default:
			row.HashIDs = append(row.HashIDs, rnd.Int64())
		}
	}
	return row
}

// TestProvePublish publishes 10 million rows in a process of its own and prints time and peak memory, beside
// DuckDB's COPY … ORDER BY of the same rows where a Python with duckdb is at hand (TAILGATE_PYTHON). Both have two
// threads. TAILGATE_PROVE_MEMORY is --memory in MiB.
func TestProvePublish(t *testing.T) {
	if os.Getenv("TAILGATE_PROVE") != "full" {
		t.Skip("takes minutes: TAILGATE_PROVE=full")
	}
	n := proveRows()
	lake := t.TempDir()
	proveLake(t, lake, n)
	ours := timed(t, exec.Command(os.Args[0], "-test.run", "^TestProvePublishChild$", "-test.v"), "TAILGATE_PROVE_LAKE="+lake, "GOMAXPROCS=2")
	t.Logf("publish: %d rows in %v", n, ours)
	if ours.rss > 2<<30 {
		t.Errorf("publish took %d MiB, more than 2 GiB", ours.rss>>20)
	}
	python := os.Getenv("TAILGATE_PYTHON")
	if python == "" || exec.Command(python, "-c", "import duckdb").Run() != nil {
		t.Log("no Python with duckdb in TAILGATE_PYTHON: nothing to compare with")
		return
	}
	script := fmt.Sprintf("import duckdb; duckdb.execute(\"SET threads=2; SET memory_limit='2GB'; SET temp_directory='%s'; "+
		"COPY (SELECT * FROM read_parquet('%s/_segments/*/*/*/*.parquet') ORDER BY arrived_at, request_key) TO '%s' (FORMAT parquet, COMPRESSION zstd)\")",
		t.TempDir(), lake, filepath.Join(t.TempDir(), "sorted.parquet"))
	theirs := timed(t, exec.Command(python, "-c", script))
	t.Logf("DuckDB COPY … ORDER BY: %v; publish takes %.2f times as long and %.2f times the processor", theirs,
		ours.took.Seconds()/theirs.took.Seconds(), ours.cpu.Seconds()/theirs.cpu.Seconds())
	if ours.took > 2*theirs.took {
		t.Errorf("publish takes more than twice as long as DuckDB")
	}
}

// spent is what a process took.
type spent struct {
	took, cpu time.Duration
	rss       int64 // peak, bytes
}

func (u spent) String() string {
	return fmt.Sprintf("%v (%v of processors), peak %d MiB", u.took.Round(time.Millisecond), u.cpu.Round(time.Millisecond), u.rss>>20)
}

// timed runs a command and returns what it took.
func timed(t *testing.T, cmd *exec.Cmd, env ...string) spent {
	t.Helper()
	cmd.Env = append(os.Environ(), env...)
	began := time.Now()
	out, err := cmd.CombinedOutput()
	took := time.Since(began)
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "publish_prove_test.go") || strings.Contains(line, "step=") {
			t.Log(strings.TrimSpace(line))
		}
	}
	s := cmd.ProcessState
	return spent{took: took, cpu: s.UserTime() + s.SystemTime(), rss: s.SysUsage().(*syscall.Rusage).Maxrss << 10}
}

func TestProvePublishChild(t *testing.T) {
	lake := os.Getenv("TAILGATE_PROVE_LAKE")
	if lake == "" {
		t.Skip("runs as a child of TestProvePublish")
	}
	o := PublishOptions{Lake: lake, Day: proveDay, Logger: stepLog(t)}
	if n, err := strconv.Atoi(os.Getenv("TAILGATE_PROVE_MEMORY")); err == nil {
		o.Memory = n << 20
	}
	if objstore.IsS3(lake) {
		var err error
		if o.Bucket, err = objstore.OpenS3(t.Context(), lake, objstore.S3Options{Endpoint: os.Getenv("TAILGATE_S3_ENDPOINT")}); err != nil {
			t.Fatal(err)
		}
	}
	r, err := Publish(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s", data)
}

// stepLog shows how long each step takes.
func stepLog(t *testing.T) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// proveRows is 10 million, or TAILGATE_PROVE_ROWS.
func proveRows() int {
	if n, err := strconv.Atoi(os.Getenv("TAILGATE_PROVE_ROWS")); err == nil {
		return n
	}
	return 10_000_000
}
