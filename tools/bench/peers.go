package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"regexp"
	"strconv"
)

// peerRow is a benchmark that times itself in step with another, mostly a program of others, and reports how many
// times as fast it is. Where that program is not installed the row says so, and no floor is judged.
type peerRow struct {
	what  string
	bench string // package path and benchmark, as in row
	peer  string // what comes after x_vs_ in the metric's name
	floor float64
}

var peerRows = []peerRow{
	{"o200k, the mix", "internal/bpe.BenchmarkTiktoken/o200k/mix", "tiktoken", 3.5},
	{"o200k, English", "internal/bpe.BenchmarkTiktoken/o200k/en", "tiktoken", 5},
	{"o200k, program text", "internal/bpe.BenchmarkTiktoken/o200k/code", "tiktoken", 5},
	{"o200k, Chinese with markup", "internal/bpe.BenchmarkTiktoken/o200k/zh", "tiktoken", 3},
	{"o200k, long lines of Han", "internal/bpe.BenchmarkTiktoken/o200k/zhlines", "tiktoken", 2},
	{"o200k, Japanese", "internal/bpe.BenchmarkTiktoken/o200k/ja", "tiktoken", 3},
	{"o200k, emoji", "internal/bpe.BenchmarkTiktoken/o200k/emoji", "tiktoken", 2.2},
	{"o200k, broken UTF-8", "internal/bpe.BenchmarkTiktoken/o200k/bad", "tiktoken", 2.2},
	{"o200k, random code points", "internal/bpe.BenchmarkTiktoken/o200k/fuzz", "tiktoken", 1.5},
	{"cl100k, the mix", "internal/bpe.BenchmarkTiktoken/cl100k/mix", "tiktoken", 5},
	{"Llama 3.1, the mix", "internal/bpe.BenchmarkHuggingFace/llama3/mix", "hf_tokenizers", 15},
	{"Qwen 3, the mix", "internal/bpe.BenchmarkHuggingFace/qwen3/mix", "hf_tokenizers", 15},
	{"DeepSeek V3, the mix", "internal/bpe.BenchmarkHuggingFace/deepseek3/mix", "hf_tokenizers", 15},
	{"NFC of the mix", "internal/bpe.BenchmarkNFC/mix", "xtext", 2},
	{"analyzing 200,000 result rows in ten buckets", "analyze.BenchmarkAnalyze", "sorting_structs", 2},
	{"analyzing 200,000 result rows in ten buckets", "analyze.BenchmarkAnalyze", "duckdb", 0.33},
	// A piece of twice the length takes at most 2.3 times as long.
	{"one piece of 1 MB, letters", "internal/bpe.BenchmarkGiant/letters", "half_the_length", 0.87},
	{"one piece of 1 MB, Han", "internal/bpe.BenchmarkGiant/han", "half_the_length", 0.87},
	{"one piece of 1 MB, a rule of =", "internal/bpe.BenchmarkGiant/rule", "half_the_length", 0.87},
}

var peerLine = regexp.MustCompile(`([\d.]+) x_vs_(\S+)`)

// peers collects the lines of benchmarks that it is written.
type peers struct{ output bytes.Buffer }

func (p *peers) Write(b []byte) (int, error) { return p.output.Write(b) }

// report prints the rows, and counts those that are missing or below their floor.
func (p *peers) report(w io.Writer) (faults int) {
	ran, ratios, pkg := map[string]bool{}, map[string]float64{}, ""
	for s := bufio.NewScanner(bytes.NewReader(p.output.Bytes())); s.Scan(); {
		line := s.Text()
		if m := packageLine.FindStringSubmatch(line); m != nil {
			pkg = m[1]
		}
		m := resultLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		name := pkg + "." + m[1]
		ran[name] = true
		for _, r := range peerLine.FindAllStringSubmatch(line, -1) {
			ratios[name+" "+r[2]], _ = strconv.ParseFloat(r[1], 64)
		}
	}
	for _, r := range peerRows {
		ratio, measured := ratios[r.bench+" "+r.peer]
		switch {
		case measured && ratio >= r.floor:
			fmt.Fprintf(w, "| %s | %s | %.2g | %g |\n", r.what, r.peer, ratio, r.floor)
		case measured:
			fmt.Fprintf(w, "| %s | %s | %.2g (below) | %g |\n", r.what, r.peer, ratio, r.floor)
			faults++
		case ran[r.bench]:
			fmt.Fprintf(w, "| %s | %s | skipped: no %s here | %g |\n", r.what, r.peer, r.peer, r.floor)
		default:
			fmt.Fprintf(w, "| %s | %s | missing | %g |\n", r.what, r.peer, r.floor)
			faults++
		}
	}
	return faults
}
