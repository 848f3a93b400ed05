package main

import (
	"bufio"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"time"

	"tailgate/internal/rng"
)

// load is what every tool is asked to send.
type load struct {
	Rate         float64 `json:"requests_per_s"` // Poisson arrivals
	Requests     int     `json:"requests"`
	InputTokens  int     `json:"input_tokens"`
	OutputTokens int     `json:"output_tokens"`
	Seed         uint64  `json:"seed"`
}

func (l load) validate() error {
	if !(l.Rate > 0) || l.Requests < 2 || l.InputTokens < 1 || l.OutputTokens < 2 {
		return errors.New("rate and input must be positive, requests and output at least 2")
	}
	return nil
}

// due are the instants in seconds at which requests are due, from 0 on, in whole µs as the trace files hold them.
func (l load) due() []float64 {
	r := rng.New(l.Seed, "arrival")
	out := make([]float64, l.Requests)
	at := 0.0
	for i := range out {
		out[i] = math.Round(at*1e6) / 1e6
		at += r.ExpFloat64() / l.Rate
	}
	return out
}

// traces are the files in which the tools read the load.
type traces struct{ mooncake, azure string }

// write puts the trace into dir in both formats. Every prompt has a block of its own.
func (l load) write(dir string) (traces, error) {
	t := traces{filepath.Join(dir, "trace.jsonl"), filepath.Join(dir, "trace.csv")}
	due := l.due()
	err := writeLines(t.mooncake, func(w *bufio.Writer) {
		for i, at := range due {
			fmt.Fprintf(w, `{"timestamp": %.3f, "input_length": %d, "output_length": %d, "hash_ids": [%d]}`+"\n", at*1e3, l.InputTokens, l.OutputTokens, i)
		}
	})
	if err != nil {
		return t, err
	}
	day := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	return t, writeLines(t.azure, func(w *bufio.Writer) {
		fmt.Fprintln(w, "TIMESTAMP,ContextTokens,GeneratedTokens")
		for _, at := range due {
			stamp := day.Add(time.Duration(math.Round(at*1e6)) * time.Microsecond)
			fmt.Fprintf(w, "%s0,%d,%d\n", stamp.Format("2006-01-02 15:04:05.000000"), l.InputTokens, l.OutputTokens)
		}
	})
}

func writeLines(path string, write func(*bufio.Writer)) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	write(w)
	return errors.Join(w.Flush(), f.Close())
}
