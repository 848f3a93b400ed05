package synth_test

import (
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"tailgate/internal/rng"
	"tailgate/schemas"
	"tailgate/synth"
	"tailgate/trace"
)

// manyRows is a seeded day of n rows with 8 hash ids in the mean: 20 applications with prompts of their own, sessions
// of two turns in the mean whose prompts grow, partial last blocks. named tells the sessions.
func manyRows(n int64, named bool) *trace.Stream {
	const block, dayUs = 512, 86_400_000_000
	meta := trace.Meta{Name: "many", BlockSize: block, LengthUs: dayUs}
	at := func(i int64) int64 { // two peaks a day
		u := float64(i) / float64(n)
		return int64(dayUs * (u + .5/(4*math.Pi)*math.Sin(4*math.Pi*u)))
	}
	return trace.NewStream(meta, n, 0, at(n-1), func(_ context.Context, visit func(*schemas.TraceRow) error) error {
		type open struct {
			number int64
			ids    []int64
		}
		r := rng.New(3, "many")
		sessions, began, next := make([]open, 256), int64(0), int64(100)
		var ids []int64
		row := schemas.TraceRow{OutputTokens: new(int32)}
		for i := range n {
			s := &sessions[r.IntN(len(sessions))]
			if len(s.ids) == 0 || len(s.ids) > 24 || r.IntN(2) == 0 {
				app := int64(r.IntN(20))
				*s = open{began, append(s.ids[:0], 4*app, 4*app+1)}
				began++
			}
			for range 1 + r.IntN(5) {
				s.ids = append(s.ids, next)
				next++
			}
			ids = append(append(ids[:0], s.ids...), next)
			next++
			row.Row, row.SourceRow, row.ScheduledUs = i, i, at(i)
			row.InputTokens, *row.OutputTokens = int32(len(ids)*block-1-r.IntN(block-1)), int32(1+r.IntN(800))
			row.HashIDs = ids
			if named {
				name := "s_" + strconv.FormatInt(s.number, 10)
				row.Session = &name
			}
			if err := visit(&row); err != nil {
				return err
			}
		}
		return nil
	})
}

// readWrite is the yardstick: read a file row by row and write it.
func readWrite(ctx context.Context, from, to string) error {
	s, err := trace.Scan(ctx, from, trace.Options{KeepQuantum: true})
	if err != nil {
		return err
	}
	defer s.Close()
	return s.WriteFile(ctx, to, "", "test")
}

// rescaleFile is the same with a rescale in between.
func rescaleFile(ctx context.Context, from, to string) error {
	s, err := trace.Scan(ctx, from, trace.Options{KeepQuantum: true})
	if err != nil {
		return err
	}
	defer s.Close()
	res, err := synth.RescaleStream(ctx, s, synth.Options{Scale: 1.5})
	if err != nil {
		return err
	}
	defer res.Close()
	return res.Out.WriteFile(ctx, to, "", "test")
}

// BenchmarkRescaleFile rescales a file row by row, in turn with reading and writing the file.
func BenchmarkRescaleFile(b *testing.B) {
	from, to := filepath.Join(b.TempDir(), "many.jsonl"), filepath.Join(b.TempDir(), "out.jsonl")
	if err := manyRows(200_000, true).WriteFile(b.Context(), from, "", "test"); err != nil {
		b.Fatal(err)
	}
	inTurn(b, func() error { return readWrite(b.Context(), from, to) }, func() error { return rescaleFile(b.Context(), from, to) })
}

// BenchmarkRescaleMooncake rescales the public conversation trace by 1.5 in memory, the 32 draws and the measuring
// included, in turn with reading and writing it; where it is absent, a made one with as many rows and blocks.
func BenchmarkRescaleMooncake(b *testing.B) {
	from, to := filepath.Join("..", "..", "shared", "data", "mooncake-fast25", "conversation_trace.jsonl"), filepath.Join(b.TempDir(), "out.jsonl")
	if _, err := os.Stat(from); err != nil {
		from = filepath.Join(b.TempDir(), "many.jsonl")
		if err := manyRows(36_000, false).WriteFile(b.Context(), from, "", "test"); err != nil {
			b.Fatal(err)
		}
	}
	t, err := trace.Load(b.Context(), from, trace.Options{Seed: 1})
	if err != nil {
		b.Fatal(err)
	}
	inTurn(b, func() error {
		t, err := trace.Load(b.Context(), from, trace.Options{Seed: 1})
		if err != nil {
			return err
		}
		return t.WriteFile(to, "", "test")
	}, func() error {
		_, err := synth.Rescale(b.Context(), t, synth.Options{Scale: 1.5})
		return err
	})
}

// inTurn runs two things round by round and reports how many times faster the second is, by the best round of each.
func inTurn(b *testing.B, baseline, ours func() error) {
	least := func(best time.Duration, run func() error) time.Duration {
		began := time.Now()
		if err := run(); err != nil {
			b.Fatal(err)
		}
		return min(best, time.Since(began))
	}
	base, best := time.Duration(1<<62), time.Duration(1<<62)
	for range 3 {
		base, best = least(base, baseline), least(best, ours)
	}
	for b.Loop() {
		best = least(best, ours)
	}
	b.ReportMetric(base.Seconds()/best.Seconds(), "x_vs_reading_and_writing")
}

// TestProveRescale rescales 10 million rows in a process of its own and compares time and memory with reading and
// writing the file.
func TestProveRescale(t *testing.T) {
	if os.Getenv("TAILGATE_PROVE") != "full" {
		t.Skip("takes minutes: TAILGATE_PROVE=full")
	}
	rows := int64(10_000_000)
	if n, err := strconv.ParseInt(os.Getenv("TAILGATE_PROVE_ROWS"), 10, 64); err == nil {
		rows = n
	}
	for _, named := range []bool{true, false} {
		t.Run(fmt.Sprintf("named=%v", named), func(t *testing.T) {
			dir := t.TempDir()
			from := filepath.Join(dir, "many.jsonl")
			if err := manyRows(rows, named).WriteFile(t.Context(), from, "", "test"); err != nil {
				t.Fatal(err)
			}
			base := child(t, "copy", from)
			ours := child(t, "rescale", from)
			t.Logf("%d rows: reading and writing %v; rescaling by 1.5 %v: %.2f times the time, %.2f times the CPU", rows, base, ours,
				ours.wall.Seconds()/base.wall.Seconds(), ours.cpu.Seconds()/base.cpu.Seconds())
			if ours.rss > 2_000_000_000 {
				t.Errorf("rescaling took %d MB, more than 2 GB", ours.rss/1_000_000)
			}
			if ours.wall > 3*base.wall {
				t.Errorf("rescaling takes more than three times as long as reading and writing")
			}
		})
	}
}

type usage struct {
	wall, cpu time.Duration
	rss       int64
}

func (u usage) String() string {
	return fmt.Sprintf("%v (%v of CPU, %d MB)", u.wall.Round(time.Millisecond), u.cpu.Round(time.Millisecond), u.rss/1_000_000)
}

func child(t *testing.T, what, from string) usage {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run", "^TestProveRescaleChild$", "-test.v")
	cmd.Env = append(os.Environ(), "TAILGATE_PROVE_RESCALE="+what+" "+from)
	began := time.Now()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	p := cmd.ProcessState
	return usage{time.Since(began), p.UserTime() + p.SystemTime(), p.SysUsage().(*syscall.Rusage).Maxrss << 10}
}

func TestProveRescaleChild(t *testing.T) {
	what, from, ok := strings.Cut(os.Getenv("TAILGATE_PROVE_RESCALE"), " ")
	if !ok {
		t.Skip("runs as a child of TestProveRescale")
	}
	debug.SetMemoryLimit(1536 << 20) // as the command does
	debug.SetGCPercent(40)
	run := map[string]func(context.Context, string, string) error{"copy": readWrite, "rescale": rescaleFile}[what]
	if err := run(t.Context(), from, from+".out.jsonl"); err != nil {
		t.Fatal(err)
	}
}
