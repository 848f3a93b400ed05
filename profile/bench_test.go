package profile_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"tailgate/internal/parquetio"
	"tailgate/internal/rng"
	"tailgate/profile"
	"tailgate/schemas"
	"tailgate/trace"
)

// mooncakeLines are n lines of 16 blocks each, half of them going on from an earlier one.
func mooncakeLines(n int) []byte {
	r := rng.New(1, "bench")
	var b bytes.Buffer
	var earlier [2000][]int
	next, at := 1, 0.0
	for i := range n {
		at += r.ExpFloat64() * 30
		ids := []int{0}
		if c := earlier[r.IntN(len(earlier))]; c != nil && r.IntN(2) == 0 {
			ids = append(ids[:0], c[:1+r.IntN(len(c))]...)
		}
		for len(ids) < 16 {
			ids = append(ids, next)
			next++
		}
		earlier[i%len(earlier)] = ids
		fmt.Fprintf(&b, `{"timestamp": %d, "input_length": 8192, "output_length": %d, "hash_ids": [0`, int(at), 1+r.IntN(700))
		for _, id := range ids[1:] {
			fmt.Fprintf(&b, ", %d", id)
		}
		b.WriteString("]}\n")
	}
	return b.Bytes()
}

// BenchmarkProfileTrace reads and profiles Mooncake lines, all tables, against decoding the same lines into structs by
// encoding/json in the same run: in turn, and the best round of each, since the machine may be busy.
func BenchmarkProfileTrace(b *testing.B) {
	text := mooncakeLines(20_000)
	b.ReportAllocs()
	best := [2]time.Duration{time.Hour, time.Hour}
	for b.Loop() {
		start := time.Now()
		tr, err := trace.Read(b.Context(), bytes.NewReader(text), "b", trace.Options{KeepQuantum: true})
		if err == nil {
			_, err = profile.Compute(b.Context(), tr, profile.Options{PerGroup: true})
		}
		if err != nil {
			b.Fatal(err)
		}
		middle := time.Now()
		in := bufio.NewScanner(bytes.NewReader(text))
		for in.Scan() {
			var row struct {
				Timestamp float64 `json:"timestamp"`
				Input     int32   `json:"input_length"`
				Output    int32   `json:"output_length"`
				HashIDs   []int64 `json:"hash_ids"`
			}
			if err := json.Unmarshal(in.Bytes(), &row); err != nil {
				b.Fatal(err)
			}
		}
		best[0], best[1] = min(best[0], middle.Sub(start)), min(best[1], time.Since(middle))
	}
	b.ReportMetric(float64(len(text))/best[0].Seconds()/1e6, "MB/s")
	b.ReportMetric(best[1].Seconds()/best[0].Seconds(), "x_vs_encoding_json")
}

// BenchmarkProfileLake reads and profiles a day of a lake, the total and 12 groups, against decoding its rows into
// structs in the same run.
func BenchmarkProfileLake(b *testing.B) {
	root := writeLake(b, lakeRows(1, 20_000, 1))
	path := filepath.Join(root, "day="+lakeDay, "part.parquet")
	b.ReportAllocs()
	best := [2]time.Duration{time.Hour, time.Hour}
	for b.Loop() {
		start := time.Now()
		part, err := profile.ReadLake(b.Context(), root, profile.LakeOptions{Day: lakeDay, BlockSize: 16})
		if err == nil {
			_, err = part.Profile(b.Context(), profile.Options{PerGroup: true})
		}
		if err != nil {
			b.Fatal(err)
		}
		middle := time.Now()
		if _, _, err := parquetio.ReadFile[schemas.Request](path); err != nil {
			b.Fatal(err)
		}
		best[0], best[1] = min(best[0], middle.Sub(start)), min(best[1], time.Since(middle))
	}
	b.ReportMetric(best[1].Seconds()/best[0].Seconds(), "x_vs_decoding_rows")
}
