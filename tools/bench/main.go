// Command bench reads the output of `go test -bench` on stdin and prints the ratios that docs/benchmarks.md
// keeps: each measured figure against a named baseline of the same run. Of a benchmark that comes twice the later counts.
// It exits with 1 when a benchmark is missing or a ratio is below its floor; -again FILE writes their packages there,
// which is what a disturbed run is to repeat.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// row is one line of the table: how many times faster a benchmark is than its baseline.
type row struct {
	what            string
	bench, baseline string // package path and benchmark, without the module and the -cpu suffix
	named           string // what the baseline is
	floor           float64
}

var rows = []row{
	{"reading Mooncake JSONL", "trace.BenchmarkRead", "trace.BenchmarkEncodingJSON", "encoding/json into a struct", 2},
	{"reading Mooncake JSONL row by row, by way of the disk", "trace.BenchmarkScan", "trace.BenchmarkEncodingJSON", "encoding/json into a struct", 2},
	{"reading one stream chunk", "replay/openai.BenchmarkScanChunk", "replay/openai.BenchmarkDecodeChunk", "encoding/json", 2},
	{"decoding LiteLLM records", "ingest.BenchmarkLiteLLMScan/size=4KB", "ingest.BenchmarkLiteLLMExact/size=4KB", "encoding/json", 4},
	{"publishing a day of 100,000 rows", "ingest.BenchmarkPublish", "ingest.BenchmarkSortStructs", "the rows as structs, read, sorted and written", 1},
	{"hashing in 512-token blocks", "anonymize.BenchmarkBlocks/block=512", "anonymize.BenchmarkBlocks/block=16", "16-token blocks", 1.5},
	{"chaining blocks of 16 tokens", "anonymize.BenchmarkChain/reused", "anonymize.BenchmarkChain/fresh", "a new HMAC for each block", 2},
	{"records to block ids, 86 % repeated", "ingest.BenchmarkRecordsToIDs/turns=14/memo", "ingest.BenchmarkRecordsToIDs/turns=14/cold", "the same without a memo", 2},
	{"rendering ChatML", "anonymize.BenchmarkTemplate/text/chatml", "anonymize.BenchmarkTemplate/text/copy", "copying the texts", 0.04},
	{"rendering ChatML with tools", "anonymize.BenchmarkTemplate/tools/chatml", "anonymize.BenchmarkTemplate/tools/jinja_chatml", "the same template in Jinja", 4},
	{"auditing for 100 canaries", "anonymize/audit.BenchmarkScan/audit", "anonymize/audit.BenchmarkScan/contains", "bytes.Contains for each spelling", 20},
}

var (
	packageLine = regexp.MustCompile(`^pkg: tailgate/(\S+)`)
	resultLine  = regexp.MustCompile(`^(Benchmark\S+?)(?:-\d+)?\s+\d+\s+([\d.]+) ns/op(.*)`)
	speed       = regexp.MustCompile(`([\d.]+) MB/s`)
)

// result is one benchmark's time per operation, or its speed where it tells one.
type result struct{ ns, mbPerS float64 }

func main() {
	again := flag.String("again", "", "write the packages of what is missing or below its floor to `FILE`")
	flag.Parse()
	rows = withBroker(rows)
	results, ratios, err := parse(io.TeeReader(os.Stdin, os.Stdout))
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	faults := slices.Concat(report(os.Stdout, results), ratios.report(os.Stdout, metricRows, false), ratios.report(os.Stdout, peerRows, true))
	if len(faults) == 0 {
		return
	}
	fmt.Fprintf(os.Stderr, "bench: %d rows missing or below their floor\n", len(faults))
	if *again != "" {
		if err := os.WriteFile(*again, []byte(packages(faults)), 0o644); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
		}
	}
	os.Exit(1)
}

// packages lists where benchmarks are, each folder once, from the root of the module.
func packages(benches []string) string {
	var list []string
	for _, b := range benches {
		pkg, _, _ := strings.Cut(b, ".")
		list = append(list, "./"+pkg+"\n")
	}
	slices.Sort(list)
	return strings.Join(slices.Compact(list), "")
}

func parse(in io.Reader) (map[string]result, ratios, error) {
	results, measured, pkg := map[string]result{}, ratios{map[string]bool{}, map[string]float64{}}, ""
	s := bufio.NewScanner(in)
	for s.Scan() {
		line := s.Text()
		if m := packageLine.FindStringSubmatch(line); m != nil {
			pkg = m[1]
		}
		if strings.HasPrefix(line, "--- FAIL") || strings.HasPrefix(line, "FAIL") {
			return nil, ratios{}, fmt.Errorf("a benchmark failed: %s", line)
		}
		measured.take(pkg, line)
		m := resultLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		var r result
		r.ns, _ = strconv.ParseFloat(m[2], 64)
		if v := speed.FindStringSubmatch(m[3]); v != nil {
			r.mbPerS, _ = strconv.ParseFloat(v[1], 64)
		}
		results[pkg+"."+m[1]] = r
	}
	return results, measured, s.Err()
}

// report prints the table and returns the benchmarks that are missing or below their floor.
func report(w io.Writer, results map[string]result) (faults []string) {
	fmt.Fprintln(w, "\n| what | against | ratio | floor |\n|---|---|---|---|")
	for _, r := range rows {
		ours, ok := results[r.bench]
		base, baseOK := results[r.baseline]
		if !ok || !baseOK {
			fmt.Fprintf(w, "| %s | %s | missing | %g |\n", r.what, r.named, r.floor)
			faults = append(faults, r.bench)
			continue
		}
		ratio := base.ns / ours.ns
		if ours.mbPerS > 0 && base.mbPerS > 0 {
			ratio = ours.mbPerS / base.mbPerS
		}
		mark := ""
		if ratio < r.floor {
			mark = " (below)"
			faults = append(faults, r.bench)
		}
		fmt.Fprintf(w, "| %s | %s | %.1f%s | %g |\n", r.what, r.named, ratio, mark, r.floor)
	}
	return faults
}
