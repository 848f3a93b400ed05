package main

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"tailgate/internal/parquetio"
	"tailgate/internal/rng"
	"tailgate/internal/stats"
	"tailgate/internal/testshared"
	"tailgate/schemas"
)

// productionDay is a day of a lake whose requests arrive for half an hour from 10:00, without latencies.
func productionDay() []schemas.Request {
	r := rng.New(7, "production")
	classes := []string{"interactive", "batch"}
	var rows []schemas.Request
	for at := r.ExpFloat64() / 4; at < 1800; at += r.ExpFloat64() / 4 {
		in, out := int32(16+r.IntN(3000)), int32(2+r.IntN(120))
		rows = append(rows, schemas.Request{RequestKey: int64(len(rows) + 1), ArrivedAt: time.Date(2026, 11, 28, 10, 0, 0, int(at*1e6)*1000, time.UTC),
			TimeResolutionUs: 1, Op: schemas.OpChat, Status: schemas.StatusOK, ReachedEngine: true, SampledFraction: 1, Model: "m",
			Class: &classes[r.IntN(2)], InputTokens: &in, OutputTokens: &out, PromptState: schemas.PromptAbsent})
	}
	return rows
}

// A lake with the latencies that a simulated engine gives is calibrated against that engine, and not against a slower one, by
// the factor that lies between the two.
func TestBacktestOfALake(t *testing.T) {
	testshared.NotUnderRace(t, "commands one after the other, and nothing that other tests do not race")
	dir := t.TempDir()
	p := &pipeline{t: t, bin: filepath.Join(dir, "tailgate"), out: filepath.Join(dir, "out")}
	linkSelf(t, p.bin)
	for _, d := range []string{filepath.Join(p.out, "tmp"), filepath.Join(dir, "lake", "day=2026-11-28")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	day := filepath.Join(dir, "lake", "day=2026-11-28", "requests.parquet")
	publish := func(rows []schemas.Request) {
		if err := parquetio.WriteFile(day, schemas.Footer{Schema: schemas.TableRequests}.Map(), rows); err != nil {
			t.Fatal(err)
		}
	}
	results := func(run string) []schemas.Result {
		rows, _, err := parquetio.ReadFile[schemas.Result](filepath.Join(dir, run, "results.parquet"))
		if err != nil {
			t.Fatal(err)
		}
		return rows
	}
	rows := productionDay()
	publish(rows)
	p.run("0", "trace", "export", "lake", "--day", "2026-11-28", "--window", "10h..10h30m", "-o", "hour.jsonl")
	p.run("045", "replay", "hour.jsonl", "--target", "sim:", "--out", "production", "--quiet")
	for i, r := range results("production") {
		ttft, duration := *r.FirstTokenUs-*r.SentUs, *r.LastTokenUs-*r.SentUs
		rows[i].TTFTUs, rows[i].DurationUs = &ttft, &duration
	}
	publish(rows)

	p.run("045", "replay", "hour.jsonl", "--target", "sim:", "--warmup", "2m", "--out", "same", "--quiet")
	p.run("0", "backtest", "same", "--lake", "lake", "--day", "2026-11-28")
	p.run("045", "replay", "hour.jsonl", "--target", "sim:llama-3.1-8b@1xa100-80g", "--out", "slower", "--quiet")
	before := results("slower")
	p.run("3", "backtest", "slower", "--lake", "lake", "--day", "2026-11-28", "--json")
	data, err := os.ReadFile(filepath.Join(dir, "slower", "backtest.json"))
	if err != nil {
		t.Fatal(err)
	}
	var b struct {
		Verdict string
		Factors []struct {
			Metric              string
			Ratio, Lower, Upper float64
		}
	}
	if err := json.Unmarshal(data, &b); err != nil || b.Verdict != "not_calibrated" || len(b.Factors) != 2 {
		t.Fatalf("%v: %s", err, data)
	}
	p99 := func(rows []schemas.Result) float64 {
		var x []float64
		for _, r := range rows {
			x = append(x, float64(*r.LastTokenUs-*r.SentUs))
		}
		slices.Sort(x)
		return x[stats.Rank(len(x), .99)-1]
	}
	want := p99(before) / p99(results("production"))
	for _, f := range b.Factors {
		if f.Metric == "e2e_ms" && (math.Abs(f.Ratio-want) > .001*want || f.Lower > want || f.Upper < want) {
			t.Errorf("e2e: %+v, want %v", f, want)
		}
	}
	p.run("045", "replay", "hour.jsonl", "--window", "5m..20m", "--lead-in", "1m", "--target", "sim:", "--out", "part", "--quiet")
	var part struct{ From, To string }
	if err := json.Unmarshal([]byte(p.run("05", "backtest", "part", "--lake", "lake", "--day", "2026-11-28", "--json")), &part); err != nil ||
		part.From < "2026-11-28T10:05:00" || part.From > "2026-11-28T10:05:05" || part.To < "2026-11-28T10:19:55" || part.To > "2026-11-28T10:20:00" {
		t.Errorf("%v: %+v", err, part)
	}
	p.run("2", "backtest", "slower", "--lake", "lake", "--day", "2026-11-29")
	p.run("045", "replay", "hour.jsonl", "--scale", "1.5x", "--target", "sim:", "--out", "scaled", "--quiet")
	p.run("2", "backtest", "scaled", "--lake", "lake", "--day", "2026-11-28")
	if _, err := os.Stat(filepath.Join(dir, "scaled", "backtest.json")); err == nil {
		t.Error("a refused run has a backtest.json")
	}
}
