package analyze_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tailgate/analyze"
	"tailgate/internal/fault"
	"tailgate/internal/parquetio"
	"tailgate/schemas"
)

const truthRun = "20261130T100000Z-0123456789ab"

func ptr[T any](v T) *T { return &v }

// truthCase writes a run of n requests and what a server saw of it. The server's clock is 7 s ahead and the way to it
// takes 40 µs. The client stamps the first token 300 µs late and the last one 500 µs late, and every tenth send goes
// out 2 ms after its stamp.
func truthCase(t *testing.T, n int, clock string) (run, truth string) {
	t.Helper()
	zero := time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC)
	var results []schemas.Result
	told := []schemas.Truth{{RequestID: "someone-else", Op: schemas.OpChat, ReceivedAt: zero, Status: schemas.ResultOK}}
	for i := range n {
		scheduled := int64(i) * 10_000
		sent := scheduled + 100
		onWire := sent
		if i%10 == 5 {
			onWire += 2000
		}
		r := schemas.Result{RunID: truthRun, Row: int64(i), Phase: schemas.PhaseMeasure, ScheduledUs: scheduled, SentUs: &sent, LagUs: ptr(int64(100)),
			FirstTokenUs: ptr(onWire + 40 + 50_000 + 300), LastTokenUs: ptr(onWire + 40 + 70_000 + 500), ClosedUs: ptr(onWire + 71_000), Streamed: true, Events: 3,
			InputLength: 10, OutputLength: ptr(int32(3)), OutputTokens: ptr(int32(3)), ITLUs: []int32{9_900, 10_300}, ITLIsToken: true, ITLN: 2, Status: schemas.ResultOK, Target: "x"}
		row := schemas.Truth{RequestID: fmt.Sprintf("%s-%d", truthRun, i), Op: schemas.OpCompletion, Streamed: true, KernelStamp: i != 0,
			ReceivedAt: zero.Add(7*time.Second + time.Duration(onWire+40)*time.Microsecond), TokenUs: []int32{50_000, 60_200, 70_000},
			LateMaxUs: ptr(int64(i)), Status: schemas.ResultOK, OutputTokens: 3}
		switch i {
		case 1: // the client cannot tell
			row.Status = schemas.ResultCancelled
		case 2:
			row.OutputTokens = 4
		case 3:
			r.SentUs, r.Status = nil, schemas.ResultNotSent
		}
		results = append(results, r)
		if i != 4 {
			told = append(told, row)
		}
	}
	run, truth = t.TempDir(), filepath.Join(t.TempDir(), "truth.parquet")
	footer := func(table string) map[string]string { return schemas.Footer{Schema: table}.Map() }
	if err := parquetio.WriteFile(filepath.Join(run, "results.parquet"), footer(schemas.TableResults), results); err != nil {
		t.Fatal(err)
	}
	m := &schemas.Manifest{Kind: "run", RunID: truthRun, StartedAt: zero, Clock: clock}
	if err := m.Write(run); err != nil {
		t.Fatal(err)
	}
	if err := parquetio.WriteFile(truth, footer(schemas.TableTruth), told); err != nil {
		t.Fatal(err)
	}
	return run, truth
}

func TestTruthFindsTheClientsErrors(t *testing.T) {
	run, path := truthCase(t, 200, "real")
	got, err := analyze.CompareTruth(t.Context(), []string{run}, path)
	if err != nil {
		t.Fatal(err)
	}
	// Row 3 was not sent, row 4 is not in the truth; the truth has row 3 and one of somebody else.
	if got.Requests != 199 || got.Joined != 198 || got.Strange != 2 || got.KernelStamps != 197 || got.StatusDiffers != 1 || got.TokensDiffer != 1 {
		t.Errorf("%+v", got)
	}
	for _, tc := range []struct {
		name      string
		got, want analyze.Figure
	}{
		{"clock offset", got.ClockOffset, 7000.04},
		{"lag of the client", got.Lag.Client.P50, .1},
		{"lag p50", got.Lag.Truth.P50, .1}, {"lag p99", got.Lag.Truth.P99, 2.1},
		{"lag error", got.Lag.Error.Min, -2}, {"lag error p50", got.Lag.Error.P50, 0},
		{"ttft error p50", got.TTFT.Error.P50, .34}, {"ttft error max", got.TTFT.Error.Max, 2.34},
		{"ttft", got.TTFT.Truth.P50, 50},
		{"itl error min", got.ITL.Error.Min, .1}, {"itl error max", got.ITL.Error.Max, .1},
		{"itl", got.ITL.Truth.Max, 10.2},
		{"e2e error p50", got.E2E.Error.P50, .54},
		{"late", got.SimLate.Max, .199},
	} {
		if d := float64(tc.got - tc.want); d > 1e-9 || d < -1e-9 {
			t.Errorf("%s = %v ms, want %v", tc.name, tc.got, tc.want)
		}
	}
	if got.ITL.Error.N != 396 || got.E2E.Error.N != 197 || got.Lag.Error.N != 198 {
		t.Errorf("n: itl %d, e2e %d, lag %d", got.ITL.Error.N, got.E2E.Error.N, got.Lag.Error.N)
	}
	report := analyze.Report{Truth: got}
	var text bytes.Buffer
	if err := report.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"198 of 199 requests joined, 197 with the kernel's stamp", "ttft  198", "0.340", "differ in the status of 1 requests"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, &text)
		}
	}
}

func TestTruthRefusesWhatItCannotJudge(t *testing.T) {
	run, path := truthCase(t, 8, "real")
	virtual, _ := truthCase(t, 8, "virtual")
	_, other := truthCase(t, 8, "real")
	if err := parquetio.WriteFile(other, schemas.Footer{Schema: schemas.TableTruth}.Map(), []schemas.Truth{{RequestID: "x"}}); err != nil {
		t.Fatal(err)
	}
	unfinished := t.TempDir()
	if err := os.Link(filepath.Join(run, "results.parquet"), filepath.Join(unfinished, "results.parquet")); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name, run, truth, want string
		kind                   fault.Kind
	}{
		{"virtual time", virtual, path, "virtual time", fault.Usage},
		{"unfinished", unfinished, path, "manifest", fault.Usage},
		{"no truth", run, filepath.Join(run, "results.parquet"), `holds the table "results"`, fault.Data},
		{"another run's", run, other, "none of its 1 rows", fault.Data},
	} {
		if _, err := analyze.CompareTruth(t.Context(), []string{tc.run}, tc.truth); err == nil || fault.Of(err) != tc.kind || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
}
