package analyze_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tailgate/analyze"
	"tailgate/internal/fault"
	"tailgate/internal/parquetio"
	"tailgate/internal/testshared"
	"tailgate/schemas"
)

// logged is the day of production: a simulated run of the same requests as a replay's, as a gateway would have logged it.
func logged(t testing.TB, rows []schemas.Result, began time.Time, edit func(i int, r *schemas.Request)) string {
	t.Helper()
	out := make([]schemas.Request, 0, len(rows))
	for i, r := range rows {
		in := r.InputLength
		q := schemas.Request{RequestKey: int64(i), ArrivedAt: began.Add(time.Duration(r.ScheduledUs) * time.Microsecond), Op: schemas.OpChat,
			Status: schemas.StatusOK, ReachedEngine: true, Class: r.Class, InputTokens: &in, OutputTokens: r.OutputTokens}
		if r.FirstTokenUs != nil {
			ttft, duration := *r.FirstTokenUs-*r.SentUs, *r.LastTokenUs-*r.SentUs
			q.TTFTUs, q.DurationUs = &ttft, &duration
		}
		if edit != nil {
			edit(i, &q)
		}
		out = append(out, q)
	}
	path := filepath.Join(t.TempDir(), "requests.parquet")
	if err := parquetio.WriteFile(path, schemas.Footer{Schema: schemas.TableRequests}.Map(), out); err != nil {
		t.Fatal(err)
	}
	return path
}

var productionBegan = time.Date(2026, 11, 28, 10, 0, 0, 0, time.UTC)

// replayed is the folder of a run at 1.0x of what was logged.
func replayed(t testing.TB, rows []schemas.Result, edit func(*schemas.Manifest)) *analyze.Data {
	t.Helper()
	return load(t, folder(t, rows, func(m *schemas.Manifest) {
		m.Settings = map[string]any{"scale": "1x", "mode": "session"}
		m.Run.TraceStartedAt = &productionBegan
		if edit != nil {
			edit(m)
		}
	}))
}

func backtest(t testing.TB, d *analyze.Data, day string, o analyze.BacktestOptions) *analyze.Backtested {
	t.Helper()
	o.Day = "2026-11-28"
	b, err := analyze.Backtest(context.Background(), d, day, o)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// A replay on the system that production had is calibrated; on a system whose service takes 1.3 times as long it is not, and
// the factor is found within its interval.
func TestBacktestErrorRates(t *testing.T) {
	testshared.NotUnderRace(t, "many runs of one thread")
	runs := 10
	if os.Getenv("TAILGATE_PROVE") == "full" {
		runs = 100
	}
	calibrated, wrong, found, covered := 0, 0, 0, 0
	for seed := range uint64(runs) {
		// Three runs of one trace: production, a replay of it, a replay on a slower system. Light load, so that the slower
		// system's e2e is that much slower as a whole.
		rows := backtestArms(seed, 30, 1, 1, 1.3)
		day := logged(t, rows[0], productionBegan, nil)
		o := analyze.BacktestOptions{Resamples: 300, Seed: seed}
		same := backtest(t, replayed(t, rows[1], nil), day, o)
		switch same.Verdict {
		case analyze.Calibrated:
			calibrated++
		case analyze.NotCalibrated:
			wrong++
		}
		slow := backtest(t, replayed(t, rows[2], nil), day, o)
		if slow.Verdict == analyze.NotCalibrated {
			found++
		}
		for _, f := range slow.Factors {
			if f.Metric == "e2e_ms" && f.Lower <= 1.3 && f.Upper >= 1.3 {
				covered++
			}
		}
	}
	t.Logf("same system: calibrated in %d of %d, not in %d; 1.3 times slower: not calibrated in %d, the interval holds the factor in %d", calibrated, runs, wrong, found, covered)
	if wrong > runs/10 || calibrated < runs*8/10 || found < runs*9/10 || covered < runs*8/10 {
		t.Errorf("calibrated %d, wrong %d, found %d, covered %d of %d", calibrated, wrong, found, covered, runs)
	}
}

// backtestArms are runs of one trace on many slots, with a noise of their own in each.
func backtestArms(seed uint64, minutes float64, speed ...float64) [][]schemas.Result {
	out := arms(seed, minutes, speed...)
	for k := range out {
		for i := range out[k] {
			// Without a queue: the service alone.
			r := &out[k][i]
			serve := *r.LastTokenUs - *r.FirstTokenUs
			first := r.ScheduledUs + 50_000 + serve/10
			last := first + serve
			r.FirstTokenUs, r.LastTokenUs, r.ClosedUs = &first, &last, &last
		}
	}
	return out
}

func TestBacktestRefuses(t *testing.T) {
	rows := backtestArms(1, 5, 1)[0]
	day := logged(t, rows, productionBegan, nil)
	setting := func(name, value string) func(*schemas.Manifest) {
		return func(m *schemas.Manifest) { m.Settings[name] = value }
	}
	half := logged(t, rows[:len(rows)/2], productionBegan, nil)
	for _, c := range []struct {
		name string
		edit func(*schemas.Manifest)
		path string
		o    analyze.BacktestOptions
		want string
	}{
		{"scale", setting("scale", "1.5x"), day, analyze.BacktestOptions{}, "--scale 1.5x, not at 1.0x"},
		{"rate", setting("request-rate", "30/s"), day, analyze.BacktestOptions{}, "--request-rate 30/s"},
		{"closed loop", setting("concurrency", "8"), day, analyze.BacktestOptions{}, "--concurrency 8"},
		{"model", setting("mode", "model"), day, analyze.BacktestOptions{}, "drawn from a model"},
		{"other day", nil, day, analyze.BacktestOptions{Day: "2026-11-27"}, "not within 2026-11-27"},
		{"no start", func(m *schemas.Manifest) { m.Run.TraceStartedAt = nil }, day, analyze.BacktestOptions{}, "--start"},
		{"other requests", nil, half, analyze.BacktestOptions{}, "no replay of them at 1.0x"},
		{"no day", nil, day, analyze.BacktestOptions{Day: "yesterday"}, "must look like"},
		{"tolerance", nil, day, analyze.BacktestOptions{Tolerance: 2}, "tolerance must lie"},
		{"edges", nil, day, analyze.BacktestOptions{Edges: []int64{5, 5}}, "must ascend"},
	} {
		if c.o.Day == "" {
			c.o.Day = "2026-11-28"
		}
		_, err := analyze.Backtest(context.Background(), replayed(t, rows, c.edit), c.path, c.o)
		if err == nil || fault.Of(err) != fault.Usage || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	all := func(m *schemas.Manifest) {
		m.Settings["scale"], m.Settings["concurrency"], m.Run.TraceStartedAt = "2", "4", nil
	}
	_, err := analyze.Backtest(context.Background(), replayed(t, rows, all), day, analyze.BacktestOptions{Day: "2026-11-28"})
	for _, want := range []string{"--scale 2", "--concurrency 4", "--start"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("all faults at once: %v lacks %s", err, want)
		}
	}
	bare, err := analyze.Load(context.Background(), []string{jsonl(t, row(`{"sent":0,"first":1,"last":2,"output_tokens":2,"status":"ok"}`))})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := analyze.Backtest(context.Background(), bare, day, analyze.BacktestOptions{Day: "2026-11-28"}); fault.Of(err) != fault.Usage {
		t.Errorf("a bare file: %v", err)
	}
	if _, err := analyze.Backtest(context.Background(), replayed(t, rows, nil), jsonl(t, "x"), analyze.BacktestOptions{Day: "2026-11-28"}); fault.Of(err) != fault.Data {
		t.Errorf("no Parquet: %v", err)
	}
	other := filepath.Join(t.TempDir(), "other.parquet")
	if err := parquetio.WriteFile(other, schemas.Footer{Schema: schemas.TableResults}.Map(), rows); err != nil {
		t.Fatal(err)
	}
	if _, err := analyze.Backtest(context.Background(), replayed(t, rows, nil), other, analyze.BacktestOptions{Day: "2026-11-28"}); fault.Of(err) != fault.Data {
		t.Errorf("another table: %v", err)
	}
}

// What production does not tell cannot be told; probes, other operations, later attempts and requests outside the window do
// not count; failures that differ forbid a verdict.
func TestBacktestCells(t *testing.T) {
	rows := backtestArms(3, 40, 1, 1)
	silent := func(_ int, r *schemas.Request) {
		if *r.Class == "batch" {
			r.TTFTUs, r.DurationUs = nil, nil
		}
	}
	b := backtest(t, replayed(t, rows[1], nil), logged(t, rows[0], productionBegan, silent), analyze.BacktestOptions{Resamples: 300})
	seen := 0
	for _, c := range b.Cells {
		for _, r := range c.Ratios {
			if strings.Contains(c.By.String(), "class batch") && r.Percentile == .99 {
				seen++
				if r.Verdict != analyze.CannotTell || r.Reason != "production tells none" || r.ProdN != 0 || r.ReplayN == 0 {
					t.Errorf("%s: %+v", c.By, r)
				}
			}
		}
	}
	if seen == 0 || !strings.Contains(strings.Join(b.Unchecked, "\n"), "ttft of class batch: production tells none") {
		t.Errorf("%d cells; unchecked %v", seen, b.Unchecked)
	}

	noise := func(began time.Time, extra ...func(*schemas.Request)) string {
		all := append([]schemas.Result{}, rows[0]...)
		for range extra {
			all = append(all, rows[0][7])
		}
		return logged(t, all, began, func(i int, r *schemas.Request) {
			if k := i - len(rows[0]); k >= 0 {
				slow := int64(1e9)
				r.TTFTUs, r.DurationUs = &slow, &slow
				extra[k](r)
			}
		})
	}
	day := noise(productionBegan, func(r *schemas.Request) { r.IsProbe = true }, func(r *schemas.Request) { r.Op = "embedding" },
		func(r *schemas.Request) { r.ReachedEngine, r.Attempt = false, 1 }, func(r *schemas.Request) { r.ArrivedAt = r.ArrivedAt.Add(-time.Hour) })
	if b := backtest(t, replayed(t, rows[1], nil), day, analyze.BacktestOptions{Resamples: 300}); b.Cells[0].Production != len(rows[0]) || b.Cells[0].Replay != len(rows[1])-warmRows(rows[1]) && b.Cells[0].Replay != len(rows[1]) {
		t.Errorf("%d of production, %d of the replay, want %d", b.Cells[0].Production, b.Cells[0].Replay, len(rows[0]))
	}

	failing := backtestArms(3, 40, 1, 1)[1]
	for i := range failing {
		if i%20 == 0 {
			failing[i].Status, failing[i].FirstTokenUs, failing[i].LastTokenUs = schemas.ResultTimeout, nil, nil
		}
	}
	b = backtest(t, replayed(t, failing, nil), logged(t, rows[0], productionBegan, nil), analyze.BacktestOptions{Resamples: 300})
	if b.Verdict != analyze.CannotTell || !strings.Contains(strings.Join(b.Reasons, "\n"), "not alike") {
		t.Errorf("failures that differ: %s, %v", b.Verdict, b.Reasons)
	}

	b = backtest(t, replayed(t, rows[1], func(m *schemas.Manifest) { m.Run.Invalid = []string{"own CPU"} }), logged(t, rows[0], productionBegan, nil), analyze.BacktestOptions{Resamples: 300})
	if b.Valid || len(b.Invalid) != 1 {
		t.Errorf("an invalid run: %v %v", b.Valid, b.Invalid)
	}
}

func warmRows(rows []schemas.Result) int {
	n := 0
	for _, r := range rows {
		if r.Phase == schemas.PhaseWarmup {
			n++
		}
	}
	return n
}

func TestBacktestRenders(t *testing.T) {
	rows := backtestArms(5, 40, 1, 1.4)
	b := backtest(t, replayed(t, rows[1], nil), logged(t, rows[0], productionBegan, nil), analyze.BacktestOptions{Resamples: 300})
	if b.Verdict != analyze.NotCalibrated || b.Worst == nil {
		t.Fatalf("%s %+v", b.Verdict, b.Worst)
	}
	var text, markdown, data bytes.Buffer
	for _, err := range []error{b.WriteText(&text), b.WriteMarkdown(&markdown), b.WriteJSON(&data)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"backtest: not calibrated, by a factor of ", "p99 e2e", "2026-11-28T10:"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("text lacks %q:\n%s", want, text.String())
		}
	}
	if !strings.Contains(markdown.String(), "| all requests | p99 e2e |") {
		t.Errorf("markdown:\n%s", markdown.String())
	}
	var back struct {
		Verdict string
		Worst   struct{ Ratio float64 }
		Cells   []struct {
			Ratios []struct{ Percentile float64 }
		}
	}
	if err := json.Unmarshal(data.Bytes(), &back); err != nil || back.Verdict != analyze.NotCalibrated || back.Worst.Ratio < 1.2 || len(back.Cells) != len(b.Cells) {
		t.Errorf("%v: %s", err, fmt.Sprint(back))
	}
}
