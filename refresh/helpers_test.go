package refresh

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"tailgate/anonymize"
	"tailgate/anonymize/audit"
	"tailgate/ingest"
	"tailgate/internal/atomicfile"
	"tailgate/internal/parquetio"
	"tailgate/profile"
	"tailgate/schemas"
	"tailgate/trace"
)

// logOf is a log in memory: one topic of one partition.
type logOf [][]byte

func (l logOf) Partitions(context.Context) ([]ingest.Partition, error) {
	return []ingest.Partition{{Topic: "tides", End: int64(len(l))}}, nil
}

func (l logOf) Fetch(_ context.Context, _ ingest.Partition, from int64) (ingest.Batch, error) {
	b := ingest.Batch{Next: int64(len(l)), High: int64(len(l))}
	for i := from; i < int64(len(l)); i++ {
		v := append([]byte(nil), l[i]...)
		b.Records = append(b.Records, ingest.Record{Offset: i, Value: v, Size: int64(len(v))})
	}
	return b, nil
}

func (logOf) Commit(context.Context, string, ingest.Partition, int64) error { return nil }

const (
	night0 = "2026-11-20" // first day of the tests
	gone   = "team-forget-me"
)

// night is the midnight of a day of the tests.
func nightAt(day int) time.Time {
	at, _ := time.Parse(time.DateOnly, night0)
	return at.AddDate(0, 0, day)
}

func dayName(day int) string { return nightAt(day).Format(time.DateOnly) }

// requestsOf are n requests of a day: sessions of four turns of five teams, one of which is to be forgotten.
func requestsOf(day, n int, sessions bool) logOf {
	teams := []string{"team-harbour", gone, "team-quay", "team-buoy", "team-lamp"}
	var out logOf
	for i := range n {
		at := nightAt(day).Add(8*time.Hour + time.Duration(i)*7*time.Second)
		rec := map[string]any{
			"litellm_call_id": fmt.Sprintf("call-%d-%d", day, i), "call_type": "acompletion", "stream": true, "status": "success",
			"prompt_tokens": 64 + i%3, "completion_tokens": 10 + i%5, "startTime": float64(at.Unix()), "endTime": float64(at.Unix() + 2),
			"completionStartTime": float64(at.Unix() + 1), "model": "hosted_vllm/pelican-8b", "model_group": "pelican-8b",
			"messages": []any{map[string]any{"role": "user", "content": fmt.Sprintf("The log of pier %d says that the gulls were loud, and more.", i%7)}},
			"response": map[string]any{"choices": []any{map[string]any{"message": map[string]any{"content": "Seven."}}}},
			"metadata": map[string]any{"user_api_key_team_id": teams[i/4%5]},
		}
		if sessions {
			rec["trace_id"] = fmt.Sprintf("trace-%d-%d", day, i/4)
		}
		data, err := json.Marshal(rec)
		if err != nil {
			panic(err)
		}
		out = append(out, data)
	}
	return out
}

// site is a root with keys, and what its tests need.
type site struct {
	t    *testing.T
	root string
	keys *anonymize.Keyring
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{t: t, root: filepath.Join(t.TempDir(), "root")}
	var err error
	if s.keys, err = anonymize.InitKeyDir(filepath.Join(t.TempDir(), "keys"), nightAt(0).Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *site) path(parts ...string) string {
	return filepath.Join(append([]string{s.root}, parts...)...)
}

// ingest brings a log into the lake under the epoch of its first day.
func (s *site) ingest(log logOf, day int) *ingest.Report {
	s.t.Helper()
	epoch, err := s.keys.EpochAt(s.t.Context(), nightAt(day))
	if err != nil {
		s.t.Fatal(err)
	}
	keys, err := s.keys.Load(s.t.Context(), epoch)
	if err != nil {
		s.t.Fatal(err)
	}
	hasher, err := anonymize.NewHasher(keys, anonymize.Options{})
	if err != nil {
		s.t.Fatal(err)
	}
	r, err := ingest.Run(s.t.Context(), log, ingest.Options{Format: "litellm", Lake: s.path(LakeFolder), Anonymizer: hasher, RotateRows: 30, MinFree: -1,
		Footer: schemas.Footer{Tool: "test", Tokenizer: "chars4", Epoch: epoch}})
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

// publish builds a day, and what the nightly job makes of it.
func (s *site) publish(day, k int) {
	s.t.Helper()
	name := dayName(day)
	keys := func(epoch string) (ingest.Keyer, error) {
		keys, err := s.keys.Load(s.t.Context(), epoch)
		if err != nil {
			return nil, err
		}
		return anonymize.NewHasher(keys, anonymize.Options{})
	}
	if _, err := ingest.Publish(s.t.Context(), ingest.PublishOptions{Lake: s.path(LakeFolder), Day: name, K: k, MinRequests: k, Keys: keys, Tool: "test"}); err != nil {
		s.t.Fatal(err)
	}
	traces := s.path(TraceFolder(name))
	s.mkdir(traces)
	st, err := trace.ExportStream(s.t.Context(), s.path(LakeFolder), trace.ExportOptions{Day: name, View: trace.ViewEngine, BlockSize: 16, Seed: 1})
	if err != nil {
		s.t.Fatal(err)
	}
	defer st.Close()
	file := filepath.Join(traces, "all.jsonl.zst")
	if err := st.WriteFile(s.t.Context(), file, "", "test"); err != nil {
		s.t.Fatal(err)
	}
	s.manifest(traces, "trace", []string{"all.jsonl.zst", "all.jsonl.zst.meta.json"}, st.Len())
	part, err := profile.ReadLake(s.t.Context(), s.path(LakeFolder), profile.LakeOptions{Day: name, View: trace.ViewEngine, BlockSize: 16})
	if err != nil {
		s.t.Fatal(err)
	}
	p, err := part.Profile(s.t.Context(), profile.Options{PerGroup: true})
	if err != nil {
		s.t.Fatal(err)
	}
	s.mkdir(s.path(ProfileFolder(name)))
	files, err := p.Write(s.path(ProfileFolder(name)), schemas.Footer{Tool: "test"})
	if err != nil {
		s.t.Fatal(err)
	}
	m := schemas.Manifest{Kind: "profile", Files: files}
	if err := m.Write(s.path(ProfileFolder(name))); err != nil {
		s.t.Fatal(err)
	}
	s.mkdir(s.path(ReportFolder(name)))
	s.write(s.path(ReportFolder(name), driftName), "{}\n")
	s.mkdir(s.path(StateFolder))
	s.write(s.path(journalFile(name)), "{}\n")
}

func (s *site) mkdir(dir string) {
	s.t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) write(path, text string) {
	s.t.Helper()
	if err := atomicfile.WriteFile(path, []byte(text)); err != nil {
		s.t.Fatal(err)
	}
}

// parquet writes a table that matters only by what it holds.
func (s *site) parquet(path, table string, rows any) {
	s.t.Helper()
	var err error
	footer := schemas.Footer{Schema: table}.Map()
	switch rows := rows.(type) {
	case []schemas.Bucket:
		err = parquetio.WriteFile(path, footer, rows)
	case []schemas.ProfileRate:
		err = parquetio.WriteFile(path, footer, rows)
	case []schemas.ProfileMeta:
		err = parquetio.WriteFile(path, footer, rows)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) manifest(dir, kind string, names []string, rows int64) {
	s.t.Helper()
	m := schemas.Manifest{Kind: kind, EndedAt: nightAt(1)}
	for _, name := range names {
		d, err := schemas.DigestFile(dir, filepath.Join(dir, name))
		if err != nil {
			s.t.Fatal(err)
		}
		m.Files = append(m.Files, d)
	}
	m.Files[0].Rows = rows
	if kind == "run" {
		m.Run = &schemas.RunFacts{Scheduled: rows, Sent: rows}
	}
	if err := m.Write(dir); err != nil {
		s.t.Fatal(err)
	}
}

// run makes a folder of results of a trace.
func (s *site) run(dir, traceFile string) {
	s.t.Helper()
	t, err := trace.Load(s.t.Context(), traceFile, trace.Options{})
	if err != nil {
		s.t.Fatal(err)
	}
	var rows []schemas.Result
	for i := range t.Rows {
		r := &t.Rows[i]
		rows = append(rows, schemas.Result{RunID: "sim-0123456789ab", Row: r.Row, Session: r.Session, Tenant: r.Tenant, Turn: r.Turn,
			Phase: schemas.PhaseMeasure, ScheduledUs: r.ScheduledUs, SentUs: new(r.ScheduledUs), Status: schemas.ResultOK, Target: "sim:"})
	}
	s.mkdir(dir)
	if err := parquetio.WriteFile(filepath.Join(dir, "results.parquet"), schemas.Footer{Schema: schemas.TableResults}.Map(), rows); err != nil {
		s.t.Fatal(err)
	}
	s.manifest(dir, "run", []string{"results.parquet"}, int64(len(rows)))
}

// requests are the rows of a published day.
func (s *site) requests(day int) []schemas.Request {
	s.t.Helper()
	rows, _, err := parquetio.ReadFile[schemas.Request](s.path(LakeFolder, "day="+dayName(day), lakeTable))
	if err != nil {
		s.t.Fatal(err)
	}
	return rows
}

// holding lists the files that hold one of some texts.
func holding(t *testing.T, dir string, texts ...string) (files []string) {
	t.Helper()
	var o audit.Options
	for _, text := range texts {
		o.Canaries = append(o.Canaries, []byte(text))
	}
	report, err := audit.Path(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range report.Findings {
		if f.What == audit.WhatCanary && !slices.Contains(files, f.File) {
			files = append(files, f.File)
		}
	}
	if len(report.Unreadable) > 0 {
		t.Errorf("unreadable: %v", report.Unreadable)
	}
	return files
}

// night is a run of the job with the lease of the root.
func (s *site) night(c Config, now time.Time) *Night {
	s.t.Helper()
	root, err := OpenRoot(s.root, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	l, err := acquire(s.t.Context(), root, time.Minute, time.Now, log)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { l.release(context.Background()) })
	return &Night{Config: &c, Root: root, Keys: s.keys, Day: dayName(0), Tool: "test", Now: func() time.Time { return now }, Log: log,
		Status: &Status{}, lease: l, crash: func(string) {}, o: &Options{}}
}

// killPoints is how many points are left out between two that are tried; all with TAILGATE_PROVE.
func killPoints() int {
	if os.Getenv("TAILGATE_PROVE") != "" {
		return 1
	}
	return 13
}
