package analyze_test

import (
	"context"
	"errors"
	"io"
	"math"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"tailgate/analyze"
	"tailgate/internal/parquetio"
	"tailgate/internal/stats"
	"tailgate/schemas"
)

// sortStructs is the plain way to the quantiles: rows as structs, a slice of values for each tenant and metric, sorted.
func sortStructs(path string) (map[string]map[string][]float64, error) {
	r, err := parquetio.Open[schemas.Result](path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	all := map[string]map[string][]float64{}
	batch := make([]schemas.Result, 4096)
	for {
		n, err := r.Read(batch)
		for i := range batch[:n] {
			if row := &batch[i]; row.Status == schemas.ResultOK {
				addRow(all, "", row)
				addRow(all, *row.Tenant, row)
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	for _, metrics := range all {
		for name, values := range metrics {
			slices.Sort(values)
			var out []float64
			for _, p := range []float64{.5, .9, .95, .99, .999} {
				q, _ := stats.Quantile(values, p)
				out = append(out, q)
			}
			metrics[name] = out
		}
	}
	return all, nil
}

func addRow(all map[string]map[string][]float64, tenant string, row *schemas.Result) {
	m := all[tenant]
	if m == nil {
		m = map[string][]float64{}
		all[tenant] = m
	}
	add := func(name string, x float64) { m[name] = append(m[name], x) }
	add("ttft_ms", float64(*row.FirstTokenUs-row.ScheduledUs))
	add("ttfo_ms", float64(*row.FirstOutputUs-row.ScheduledUs))
	if k := *row.OutputTokens - *row.FirstEventTokens; k > 0 {
		add("tpot_ms", float64(*row.LastTokenUs-*row.FirstTokenUs)/float64(k))
	}
	add("e2e_ms", float64(*row.LastTokenUs-row.ScheduledUs))
	add("ttft_sent_ms", float64(*row.FirstTokenUs-*row.SentUs))
	add("e2e_sent_ms", float64(*row.LastTokenUs-*row.SentUs))
	add("lag_ms", float64(*row.LagUs))
	add("queue_ms", float64(*row.ServerQueueUs))
	add("output_tokens", float64(*row.OutputTokens))
	for _, g := range row.ITLUs {
		add("itl_ms", float64(g))
	}
}

// BenchmarkAnalyze analyzes result rows in ten buckets, in turn with the plain way and, where a Python with duckdb is at
// hand (TAILGATE_PYTHON), with DuckDB; the best round of each counts. All must give the same quantiles.
func BenchmarkAnalyze(b *testing.B) {
	path := filepath.Join(b.TempDir(), "results.parquet")
	manyResults(b, path, 200_000)
	python := duckPython()
	if python == "" {
		b.Log("no ratio to DuckDB: no Python with duckdb in TAILGATE_PYTHON")
	}
	ours, plain, duck := time.Duration(math.MaxInt64), time.Duration(math.MaxInt64), time.Duration(math.MaxInt64)
	one := func() *analyze.Report {
		began := time.Now()
		d, err := analyze.Load(b.Context(), []string{path})
		if err != nil {
			b.Fatal(err)
		}
		r, err := analyze.Analyze(context.Background(), d, analyze.Options{By: []analyze.By{byTenant}})
		if err != nil {
			b.Fatal(err)
		}
		ours = min(ours, time.Since(began))
		return r
	}
	for range 3 {
		report := jsonOf(b, one())
		began := time.Now()
		values, err := sortStructs(path)
		if err != nil {
			b.Fatal(err)
		}
		plain = min(plain, time.Since(began))
		sameValues(b, report, values)
		if python != "" {
			values, took, _ := duckQuantiles(b, python, path, "tenant,all")
			duck = min(duck, took)
			sameValues(b, report, values)
		}
	}
	for b.Loop() {
		one()
	}
	b.ReportMetric(plain.Seconds()/ours.Seconds(), "x_vs_sorting_structs")
	if python != "" {
		b.ReportMetric(duck.Seconds()/ours.Seconds(), "x_vs_duckdb")
	}
}
