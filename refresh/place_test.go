package refresh_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tailgate/anonymize"
	"tailgate/ingest"
	"tailgate/refresh"
)

// timedLog is a log of two partitions that knows when it took each record, as Kafka does.
type timedLog struct {
	mu    sync.Mutex
	parts [2][]ingest.Record
	err   error // of every fetch; nil = it answers
}

func (l *timedLog) Partitions(context.Context) ([]ingest.Partition, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return nil, l.err
	}
	var out []ingest.Partition
	for i := range l.parts {
		out = append(out, ingest.Partition{Topic: "gulls", ID: int32(i), End: int64(len(l.parts[i]))})
	}
	return out, nil
}

func (l *timedLog) Fetch(_ context.Context, p ingest.Partition, from int64) (ingest.Batch, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.parts[p.ID]
	b := ingest.Batch{Next: int64(len(all)), High: int64(len(all))}
	for _, r := range all[from:] {
		r.Value = slices.Clone(r.Value)
		b.Records = append(b.Records, r)
	}
	return b, nil
}

func (l *timedLog) Commit(context.Context, string, ingest.Partition, int64) error { return nil }

func (l *timedLog) OffsetsAt(_ context.Context, t time.Time) (map[int32]int64, error) {
	out := map[int32]int64{}
	for i := range l.parts {
		for _, r := range l.parts[i] {
			if !r.Time.Before(t) {
				out[int32(i)] = r.Offset
				break
			}
		}
	}
	return out, nil
}

// day0 is the first day of the tests.
var day0 = time.Date(2026, 11, 2, 0, 0, 0, 0, time.UTC)

func midnight(day int) time.Time { return day0.AddDate(0, 0, day) }
func dayName(day int) string     { return midnight(day).Format(time.DateOnly) }

// add appends a request that arrived at one time and was logged at another.
func (l *timedLog) add(id int, arrived, logged time.Time) {
	rec := map[string]any{
		"litellm_call_id": fmt.Sprintf("call-%d", id), "trace_id": fmt.Sprintf("talk-%d", id/4), "call_type": "acompletion", "stream": true,
		"status": "success", "prompt_tokens": 40 + id%7, "completion_tokens": 10 + id%5,
		"startTime": float64(arrived.UnixMilli()) / 1e3, "endTime": float64(arrived.Add(2*time.Second).UnixMilli()) / 1e3,
		"completionStartTime": float64(arrived.Add(time.Second).UnixMilli()) / 1e3, "model": "hosted_vllm/pelican-8b", "model_group": "pelican-8b",
		"messages": []any{map[string]any{"role": "user", "content": fmt.Sprintf("The log of pier %d says that the gulls were loud, and so were the bells and the rain.", id%11)}},
		"response": map[string]any{"choices": []any{map[string]any{"message": map[string]any{"content": "Seven."}}}},
		"metadata": map[string]any{"user_api_key_team_id": []string{"team-quay", "team-buoy", "team-lamp"}[id/4%3]},
	}
	data, err := json.Marshal(rec)
	if err != nil {
		panic(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	p := id / 4 % 2
	l.parts[p] = append(l.parts[p], ingest.Record{Offset: int64(len(l.parts[p])), Value: data, Size: int64(len(data)), Time: logged})
}

// days fills some days with n requests each, over the whole day and beyond midnight, and enough behind the last one
// that it is complete.
func (l *timedLog) days(from, to, n int) {
	id := 1000 * (from + 1)
	for d := from; d < to; d++ {
		for i := range n {
			at := midnight(d).Add(time.Duration(i) * 24 * time.Hour / time.Duration(n))
			l.add(id, at, at.Add(2*time.Second))
			id++
		}
	}
	for i := range 8 { // the next morning
		at := midnight(to).Add(40*time.Minute + time.Duration(i)*time.Second)
		l.add(id, at, at.Add(2*time.Second))
		id++
	}
}

// place is a root with keys and a log.
type place struct {
	t      *testing.T
	root   string
	keys   string
	log    *timedLog
	now    time.Time
	extra  string // of the refresh file
	crash  func(point string)
	silent time.Duration
}

const leastFile = "source: kafka://nowhere/gulls\nkeys: keys\ningest: {format: litellm, min_free: 0}\n"

func newPlace(t *testing.T, log *timedLog) *place {
	t.Helper()
	p := &place{t: t, root: filepath.Join(t.TempDir(), "root"), keys: filepath.Join(t.TempDir(), "keys"), log: log, silent: time.Second}
	if _, err := anonymize.InitKeyDir(p.keys, midnight(-1)); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *place) config() *refresh.Config {
	p.t.Helper()
	c, err := refresh.ParseConfig("refresh.yaml", []byte("root: "+p.root+"\n"+leastFile+p.extra), nil)
	if err != nil {
		p.t.Fatal(err)
	}
	c.Lease = p.silent
	return c
}

// options for a day, by a clock that says some hours after its end.
func (p *place) options(day int) refresh.Options {
	p.t.Helper()
	root, err := refresh.OpenRoot(p.root, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	keys, err := anonymize.OpenKeyDir(p.keys)
	if err != nil {
		p.t.Fatal(err)
	}
	now := p.now
	if now.IsZero() {
		now = midnight(day + 1).Add(2 * time.Hour)
	}
	return refresh.Options{Config: p.config(), Day: dayName(day), Root: root, Keys: keys, Hash: anonymize.Options{Tokenizer: "chars4"},
		Ingest: ingest.Options{Format: "litellm", MinFree: -1}, Publish: ingest.PublishOptions{K: 2, MinRequests: 3},
		Open: func(context.Context) (ingest.Source, error) { return p.log, nil },
		Tool: "test", Now: func() time.Time { return now }, Crash: p.crash}
}

// run refreshes a day.
func (p *place) run(day int) (*refresh.Status, error) {
	p.t.Helper()
	return refresh.Run(p.t.Context(), p.options(day))
}

func (p *place) good(day int, outcome string) *refresh.Status {
	p.t.Helper()
	s, err := p.run(day)
	if err != nil {
		p.t.Fatalf("%s: %v", dayName(day), err)
	}
	if s.Outcome != outcome {
		p.t.Fatalf("%s: %s, want %s: days %+v notes %q", dayName(day), s.Outcome, outcome, s.Days, s.Notes)
	}
	return s
}

// tables are the digests of what is for others to read: days, profiles and traces, without what tells times of runs.
func (p *place) tables() map[string]string {
	p.t.Helper()
	out := map[string]string{}
	for _, folder := range []string{"lake", "profiles", "traces"} {
		err := filepath.WalkDir(filepath.Join(p.root, folder), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			rel, _ := filepath.Rel(p.root, path)
			if strings.Contains(rel, "/_") || filepath.Base(rel) == "manifest.json" {
				return nil
			}
			data, err := os.ReadFile(path)
			sum := sha256.Sum256(data)
			out[filepath.ToSlash(rel)] = hex.EncodeToString(sum[:])
			return err
		})
		if err != nil {
			p.t.Fatal(err)
		}
	}
	return out
}

// copyKeys gives a place the keys of another, so that both give the same ids.
func (p *place) copyKeys(from *place) {
	p.t.Helper()
	entries, err := os.ReadDir(from.keys)
	if err != nil {
		p.t.Fatal(err)
	}
	if err := os.RemoveAll(p.keys); err != nil {
		p.t.Fatal(err)
	}
	if err := os.Mkdir(p.keys, 0o700); err != nil {
		p.t.Fatal(err)
	}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(from.keys, e.Name()))
		if err != nil {
			p.t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(p.keys, e.Name()), data, 0o600); err != nil {
			p.t.Fatal(err)
		}
	}
}
