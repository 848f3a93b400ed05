package ingest_test

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tailgate/anonymize/audit"
	"tailgate/ingest"
	"tailgate/internal/fault"
	"tailgate/prompt"
	"tailgate/schemas"
)

// leaker is an anonymizer that keeps text where it must not.
type leaker struct {
	fakeAnon
	kind string       // whose tokens are the text itself
	log  *slog.Logger // where prompts go; nil = nowhere
	file string       // where prompts are spilled; "" = nowhere
}

func (l leaker) Token(kind string, value []byte) string {
	if kind == l.kind {
		return string(value)
	}
	return l.fakeAnon.Token(kind, value)
}

func (l leaker) Blocks(ids []int64, p *prompt.Prompt) ([]int64, int, error) {
	for _, m := range p.Messages {
		for _, part := range m.Parts {
			if l.log != nil {
				l.log.Warn("hashing", "prompt", string(part.Text))
			}
			if l.file != "" {
				if err := os.WriteFile(l.file, part.Text, 0o600); err != nil {
					return nil, 0, err
				}
			}
		}
	}
	return l.fakeAnon.Blocks(ids, p)
}

// TestALeakingBuildFails is the control of the audit: builds that keep text on purpose, each in one place, must
// fail it; the same build without the leak must pass.
func TestALeakingBuildFails(t *testing.T) {
	const text = "Gannet-nine over the northern pier"
	none := func(*ingest.Options, string, *slog.Logger) {}
	leak := func(l leaker) func(*ingest.Options, string, *slog.Logger) {
		return func(o *ingest.Options, _ string, _ *slog.Logger) { l.fakeAnon = fakeAnon{"k1"}; o.Anonymizer = l }
	}
	for _, tc := range []struct {
		name  string
		leak  func(o *ingest.Options, out string, log *slog.Logger)
		place string // "" = none
	}{
		{"no leak", none, ""},
		{"label of a tenant: dictionary", leak(leaker{kind: "tenant"}), audit.PlaceDictionary},
		{"label of a tenant: minima and maxima", leak(leaker{kind: "tenant"}), audit.PlaceStatistics},
		{"session", leak(leaker{kind: "session"}), audit.PlaceDictionary},
		{"request id: page", leak(leaker{kind: "request"}), audit.PlacePage},
		{"dead letter", leak(leaker{kind: "record"}), audit.PlacePage},
		{"model that is listed", func(o *ingest.Options, _ string, _ *slog.Logger) { o.Models = []string{text} }, audit.PlaceDictionary},
		{"footer", func(o *ingest.Options, _ string, _ *slog.Logger) { o.Footer.Tool = text }, audit.PlaceFooter},
		{"log", func(o *ingest.Options, _ string, log *slog.Logger) {
			o.Anonymizer = leaker{fakeAnon{"k1"}, "", log, ""}
		}, audit.PlaceBytes},
		{"temporary file", func(o *ingest.Options, out string, _ *slog.Logger) {
			o.Anonymizer = leaker{fakeAnon{"k1"}, "", nil, filepath.Join(out, "spill-1")}
		}, audit.PlaceBytes},
		{"name of a file", func(o *ingest.Options, out string, _ *slog.Logger) {
			o.Anonymizer = leaker{fakeAnon{"k1"}, "", nil, filepath.Join(out, text)}
		}, audit.PlaceName},
	} {
		t.Run(tc.name, func(t *testing.T) {
			out := t.TempDir()
			o := options(filepath.Join(out, "lake"))
			var log bytes.Buffer
			o.Logger, o.MaxBad = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})), 1
			tc.leak(&o, out, o.Logger)
			var recs []ingest.Record
			for i := range 8 {
				recs = append(recs, message(int64(i), litellm(i, fields{
					"litellm_call_id": text, "session_id": text, "trace_id": text, "model_group": text,
					"metadata": fields{"user_api_key_team_id": text}, "messages": text + " and more words than a block of sixteen tokens holds",
				})))
			}
			recs = append(recs, message(int64(len(recs)), []byte(`{"`+text+`":`)))
			run(t, newMemory(recs), o)
			if _, err := ingest.Publish(t.Context(), ingest.PublishOptions{Lake: o.Lake, Day: baseDay, K: 1, MinRequests: 1, Logger: o.Logger}); err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(out, "ingest.log"), log.Bytes())
			report, err := audit.Path(t.Context(), out, audit.Options{Canaries: [][]byte{[]byte(text)}})
			if err != nil {
				t.Fatal(err)
			}
			found := false
			for _, f := range report.Findings {
				found = found || f.What == audit.WhatCanary && f.Place == tc.place
			}
			if tc.place == "" {
				for _, f := range report.Findings { // the fake anonymizer has letters and epochs of its own
					if f.What == audit.WhatCanary {
						t.Errorf("%+v", f)
					}
				}
				return
			}
			if !found || fault.Of(report.Err()) != fault.Key {
				t.Errorf("the leak was not found in %s: %+v", tc.place, report.Findings)
			}
		})
	}
}

// TestEnumsAreInTheDictionary: the allow-list of the schemas knows every format and reason, and nothing else.
func TestEnumsAreInTheDictionary(t *testing.T) {
	letters := schemas.StringColumns(schemas.TableDeadLetters)
	if diff := cmp.Diff(ingest.Formats(), letters["gateway"].Enum); diff != "" {
		t.Errorf("formats (-ingest +schemas):\n%s", diff)
	}
	if diff := cmp.Diff(ingest.DeadReasons(), letters["reason"].Enum); diff != "" {
		t.Errorf("reasons (-ingest +schemas):\n%s", diff)
	}
}
