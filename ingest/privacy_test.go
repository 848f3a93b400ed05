package ingest_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tailgate/anonymize/audit"
	"tailgate/ingest"
	"tailgate/internal/canary"
	"tailgate/prompt"
)

// planted reads a fixture with canaries in every string and key.
func planted(t testing.TB, p *canary.Planter, name string) [][]byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasSuffix(name, ".binpb") {
		return [][]byte{p.Binary(data)}
	}
	values, err := p.JSON(data)
	if err != nil {
		t.Fatal(err)
	}
	return values
}

// messages makes records of values.
func messages(values [][]byte) []ingest.Record {
	recs := make([]ingest.Record, len(values))
	for i, v := range values {
		recs[i] = message(int64(i), v)
	}
	return recs
}

// hasCanary audits everything below dir and reports each canary that is there.
func hasCanary(t *testing.T, dir string, p *canary.Planter) {
	t.Helper()
	report, err := audit.Path(t.Context(), dir, audit.Options{Canaries: p.Bytes()})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range report.Findings {
		if f.What == audit.WhatCanary {
			t.Errorf("canary %s leaked: %+v", p.Texts[f.Canary-1], f)
		}
	}
	if len(report.Unreadable) > 0 || report.Files == 0 {
		t.Errorf("%d files, unreadable: %v", report.Files, report.Unreadable)
	}
}

// TestNoTextIsWritten plants canaries in every string and key of the fixtures, in broken records, in the topic
// and in paths, and looks for them in all bytes that were written or said.
func TestNoTextIsWritten(t *testing.T) {
	for _, f := range fixtures {
		t.Run(f.file, func(t *testing.T) {
			var p canary.Planter
			values := planted(t, &p, f.file)
			for _, broken := range []string{`{"%s":`, `{"startTime":"%s"}`, `{"startTime":1,"status":"%s"}`, `%s`, `{"resourceSpans":"%s"}`} {
				values = append(values, fmt.Appendf(nil, broken, p.New()))
			}
			src := newMemory(messages(values))
			src.topic = p.New()
			src.parts[0].Topic = src.topic

			out := t.TempDir()
			o := options(filepath.Join(out, "lake"))
			o.Format, o.MaxBad = f.format, 1
			var said bytes.Buffer
			o.Logger = slog.New(slog.NewTextHandler(&said, &slog.HandlerOptions{Level: slog.LevelDebug}))
			report := run(t, src, o)
			if report.Total.Rows < 3 || report.Total.DeadMessages != 5 {
				t.Fatalf("the fixtures were not read: %+v", report.Total)
			}
			for _, day := range must(ingest.Days(o.Lake)) {
				p, err := ingest.Publish(t.Context(), ingest.PublishOptions{Lake: o.Lake, Day: day, K: 1, MinRequests: 1, Logger: o.Logger})
				if err != nil {
					t.Fatal(err)
				}
				p.WriteText(&said)
				json.NewEncoder(&said).Encode(p)
			}
			report.WriteText(&said)
			json.NewEncoder(&said).Encode(report)
			in, err := ingest.Inspect(t.Context(), src, ingest.InspectOptions{Format: f.format, Classes: ingest.DefaultClasses()})
			if err != nil {
				t.Fatal(err)
			}
			in.WriteText(&said)
			json.NewEncoder(&said).Encode(in)
			if d, err := ingest.DetectFormat(t.Context(), src, 0); err != nil {
				fmt.Fprintln(&said, d, err)
			}
			write(t, filepath.Join(out, "said"), said.Bytes())
			hasCanary(t, out, &p)
		})
	}
}

// TestFailuresSayNothing cuts and breaks the records of every fixture byte by byte (a sample of them, unless all is
// to be proved): whatever a decoder makes of that, it tells nothing of the text.
func TestFailuresSayNothing(t *testing.T) {
	step := 37
	if os.Getenv("TAILGATE_PROVE") == "full" {
		step = 1
	}
	for _, f := range fixtures {
		t.Run(f.file, func(t *testing.T) {
			var p canary.Planter
			var values [][]byte
			for _, v := range planted(t, &p, f.file) {
				for at := 0; at < len(v); at += step {
					broken := bytes.Clone(v)
					broken[at] = "\x00\"}]\\\xff"[at/step%6]
					values = append(values, bytes.Clone(v[:at]), broken)
				}
			}
			out := t.TempDir()
			var said bytes.Buffer
			o := options(filepath.Join(out, "lake"))
			o.Format, o.MaxBad = f.format, 1
			o.Logger = slog.New(slog.NewTextHandler(&said, &slog.HandlerOptions{Level: slog.LevelDebug}))
			report := run(t, newMemory(messages(values)), o)
			if report.Total.DeadMessages == 0 || report.Total.Dead[ingest.DeadFault] > 0 {
				t.Errorf("%+v", report.Total)
			}
			report.WriteText(&said)
			letters, err := ingest.DeadLetters(o.Lake)
			fmt.Fprintln(&said, letters, err)
			write(t, filepath.Join(out, "said"), said.Bytes())
			hasCanary(t, out, &p)
		})
	}
}

// panicky is an anonymizer that breaks on some prompts, and quotes them.
type panicky struct{ fakeAnon }

func (a panicky) Blocks(ids []int64, p *prompt.Prompt) ([]int64, int, error) {
	for _, m := range p.Messages {
		for _, part := range m.Parts {
			if bytes.Contains(part.Text, []byte("hash")) {
				panic(fmt.Sprintf("cannot hash %s", part.Text))
			}
		}
	}
	return a.fakeAnon.Blocks(ids, p)
}

const envPanic = "TAILGATE_TEST_PANIC"

// TestPanicsSayNothing plants panics that quote the text, in a decoder and in the anonymizer of a child process.
// The records are dead letters, the others are rows, and neither the child's output nor what it wrote has the text.
func TestPanicsSayNothing(t *testing.T) {
	var p canary.Planter
	var recs []ingest.Record
	for i, what := range []string{"fine", "decode", "fine", "hash", "fine"} {
		recs = append(recs, message(int64(i), litellm(i, fields{"messages": what + " " + p.New()})))
	}
	if lake := os.Getenv(envPanic); lake != "" {
		o := options(lake)
		o.MaxBad, o.Anonymizer = 1, panicky{fakeAnon{"k1"}}
		o.Logger = slog.New(slog.NewTextHandler(os.Stderr, nil))
		ingest.SetBeforeDecode(&o, func(value []byte) {
			if bytes.Contains(value, []byte("decode")) {
				panic(fmt.Errorf("cannot decode %s", value))
			}
		})
		report := run(t, newMemory(recs), o)
		if report.Total.Rows != 3 || report.Total.Dead[ingest.DeadFault] != 2 || report.Total.DeadMessages != 2 {
			t.Errorf("%+v", report.Total)
		}
		return
	}
	out := t.TempDir()
	said, err := child(t, envPanic+"="+filepath.Join(out, "lake")).CombinedOutput()
	if err != nil {
		t.Errorf("%v", err)
	}
	if !bytes.Contains(said, []byte("decoder_fault")) || !bytes.Contains(said, []byte("privacy_test.go:")) {
		t.Errorf("the log does not tell where: %s", said)
	}
	write(t, filepath.Join(out, "said"), said)
	hasCanary(t, out, &p)
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
