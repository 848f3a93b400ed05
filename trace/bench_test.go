package trace_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"tailgate/internal/rng"
	"tailgate/schemas"
	"tailgate/trace"
)

// mooncakeText is n lines in the shape of the public trace: 24 ids a row in the mean.
func mooncakeText(n int) []byte {
	r := rng.New(1, "bench")
	var b bytes.Buffer
	next := 1
	for i := range n {
		ids := 1 + r.IntN(47)
		fmt.Fprintf(&b, `{"timestamp": %d, "input_length": %d, "output_length": %d, "hash_ids": [0`, i*294, ids*512-r.IntN(512), 1+r.IntN(700))
		for range ids - 1 {
			fmt.Fprintf(&b, ", %d", next)
			next++
		}
		b.WriteString("]}\n")
	}
	return b.Bytes()
}

func BenchmarkRead(b *testing.B) {
	text := mooncakeText(5000)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := trace.Read(b.Context(), bytes.NewReader(text), "b", trace.Options{KeepQuantum: true}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkScan reads the same rows one by one.
func BenchmarkScan(b *testing.B) {
	text := mooncakeText(5000)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		s, err := trace.ScanReader(b.Context(), bytes.NewReader(text), "b", trace.Options{KeepQuantum: true})
		if err != nil {
			b.Fatal(err)
		}
		if err := s.Each(b.Context(), func(*schemas.TraceRow) error { return nil }); err != nil {
			b.Fatal(err)
		}
		s.Close()
	}
}

// BenchmarkEncodingJSON is the reader to beat: the same lines into a struct.
func BenchmarkEncodingJSON(b *testing.B) {
	text := mooncakeText(5000)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
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
	}
}

func BenchmarkWrite(b *testing.B) {
	tr, err := trace.Read(b.Context(), bytes.NewReader(mooncakeText(5000)), "b", trace.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		var out bytes.Buffer
		if err := tr.Write(&out, trace.FormatMooncake); err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(out.Len()))
	}
}
