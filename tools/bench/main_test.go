package main

import (
	"fmt"
	"io"
	"strings"
	"testing"
)

const output = `goos: linux
pkg: tailgate/trace
BenchmarkRead-2            100   1000 ns/op   400.00 MB/s   5 B/op
BenchmarkScan-2            100    500 ns/op   800.00 MB/s
BenchmarkEncodingJSON-2    100  10000 ns/op    %s MB/s
pkg: tailgate/replay/openai
BenchmarkScanChunk-2    1000000    90.5 ns/op
BenchmarkDecodeChunk-2  1000000   900 ns/op
pkg: tailgate/ingest
BenchmarkLiteLLMScan/size=4KB-2   1000  100 ns/op  800.00 MB/s
BenchmarkLiteLLMExact/size=4KB-2  1000  900 ns/op  100.00 MB/s
BenchmarkPublish-2       3  400 ns/op
BenchmarkSortStructs-2   3  900 ns/op
BenchmarkRecordsToIDs/turns=14/cold-2  3  900 ns/op  70.00 MB/s  71.00 MB/cpu-s
BenchmarkRecordsToIDs/turns=14/memo-2  3  300 ns/op  210.00 MB/s  211.00 MB/cpu-s  3.00 x_vs_cold
pkg: tailgate/anonymize
BenchmarkBlocks/block=16-2    100  100 ns/op  100.00 MB/s
BenchmarkBlocks/block=512-2   100  100 ns/op  300.00 MB/s
BenchmarkChain/reused-2       100  100 ns/op  240.00 MB/s
BenchmarkChain/fresh-2        100  500 ns/op   48.00 MB/s
BenchmarkTemplate/text/copy-2    100  100 ns/op  9000.00 MB/s
BenchmarkTemplate/text/chatml-2  100  100 ns/op  1500.00 MB/s  6.7 x_vs_copy
BenchmarkTemplate/tools/chatml-2        100  100 ns/op  600.00 MB/s
BenchmarkTemplate/tools/jinja_chatml-2  100  100 ns/op   60.00 MB/s
pkg: tailgate/anonymize/audit
BenchmarkScan/audit-2      10  100 ns/op  300.00 MB/s
BenchmarkScan/contains-2   10  100 ns/op    3.00 MB/s
`

func TestReport(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		faults     int
	}{
		{"all there, LiteLLM too slow", strings.Replace(output, "%s", "40.00", 1) + metrics("3.9"), 1},
		{"below its floor", strings.Replace(output, "%s", "390.00", 1) + metrics("4.0"), 1},
		{"missing", "pkg: tailgate/trace\n", len(rows) + len(metricRows)},
	} {
		results, ratios, err := parse(strings.NewReader(tt.text))
		if err != nil {
			t.Fatal(err)
		}
		if got := append(report(io.Discard, results), ratios.report(io.Discard, metricRows, false)...); len(got) != tt.faults {
			t.Errorf("%s: %d faults, want %d: %v", tt.name, len(got), tt.faults, got)
		}
	}
	if _, _, err := parse(strings.NewReader("--- FAIL: BenchmarkRead\n")); err == nil {
		t.Error("a failed benchmark passed")
	}
}

// A repeated benchmark counts as it came last; what is to be repeated are packages, each once.
func TestARepeatedBenchmarkCountsAsItCameLast(t *testing.T) {
	slow := strings.Replace(output, "%s", "390.00", 1) + metrics("4.0")
	for _, tt := range []struct{ name, text, again string }{
		{"slow", slow, "./trace\n"},
		{"slow, then fast", slow + strings.Replace(output, "%s", "40.00", 1), ""},
		{"slow, two of a package", slow + "pkg: tailgate/trace\nBenchmarkScan-2  100  9000 ns/op  40.00 MB/s\n", "./trace\n"},
		{"too slow a metric as well", slow + metrics("3.9"), "./ingest\n./trace\n"},
	} {
		results, ratios, err := parse(strings.NewReader(tt.text))
		if err != nil {
			t.Fatal(err)
		}
		if got := packages(append(report(io.Discard, results), ratios.report(io.Discard, metricRows, false)...)); got != tt.again {
			t.Errorf("%s: again %q, want %q", tt.name, got, tt.again)
		}
	}
}

// metrics is the output of all benchmarks of metricRows, each so many times as fast as its baseline, or as its
// floor asks where that is far more.
func metrics(times string) string {
	text := ""
	for _, r := range metricRows {
		pkg, name, _ := strings.Cut(r.bench, ".")
		figure := times
		if r.floor > 100 {
			figure = fmt.Sprint(r.floor)
		}
		text += "pkg: tailgate/" + pkg + "\n" + name + "-2   100   1414.04 MB/s   " + figure + " x_vs_" + r.named + "\n"
	}
	return text
}
