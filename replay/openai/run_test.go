package openai_test

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tailgate/internal/parquetio"
	"tailgate/internal/pipenet"
	"tailgate/internal/rng"
	"tailgate/replay"
	"tailgate/replay/openai"
	"tailgate/replay/transporttest"
	"tailgate/schemas"
)

// runOver replays a plan in virtual time against a handler and returns the summary and the rows.
func runOver(t *testing.T, p *replay.Plan, o replay.Options, h http.HandlerFunc) (s *replay.Summary, rows []schemas.Result) {
	t.Helper()
	dir := t.TempDir()
	rec, err := replay.NewRecorder(dir, p.RunID, schemas.Footer{})
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		l := pipenet.Listen()
		srv := &http.Server{Handler: h}
		var served sync.WaitGroup
		served.Go(func() { _ = srv.Serve(l) })
		tr := client(t, openai.Options{
			Targets: []string{"http://target"}, API: openai.APIChat, DialContext: l.DialContext,
			Prompts: &replay.Prompts{BlockSize: 16},
		})
		o.GoTimers = true
		if s, err = replay.RunReal(t.Context(), p, o, tr, rec); err != nil {
			t.Error(err)
		}
		tr.Close()
		srv.Close()
		served.Wait()
	})
	if _, err := rec.Finish(); err != nil {
		t.Fatal(err)
	}
	rows, _, err = parquetio.ReadFile[schemas.Result](filepath.Join(dir, replay.ResultsName))
	if err != nil {
		t.Fatal(err)
	}
	return s, rows
}

func TestTwoThousandPoissonRequestsLeaveOnTime(t *testing.T) {
	const n, rate = 2000, 500.0
	p := &replay.Plan{RunID: "poisson"}
	r, at := rng.New(1, "arrival"), 0.0
	for i := range n {
		at += r.ExpFloat64() / rate
		out := int32(2)
		p.Rows = append(p.Rows, schemas.TraceRow{Row: int64(i), ScheduledUs: int64(math.Round(at * 1e6)), InputTokens: 8, OutputTokens: &out})
	}
	s, rows := runOver(t, p, replay.Options{}, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		transporttest.Events(w, 2, 100*time.Millisecond, 120*time.Millisecond)
	})
	if s.Sent != n || s.Counts["ok"] != n {
		t.Fatalf("sent %d, %v", s.Sent, s.Counts)
	}
	for i := range rows {
		row := &rows[i]
		if *row.LagUs != 0 || *row.FirstTokenUs-row.ScheduledUs != 100_000 || *row.LastTokenUs-row.ScheduledUs != 120_000 {
			t.Fatalf("row %d: lag %d, ttft %d, e2e %d µs", i, *row.LagUs, *row.FirstTokenUs-row.ScheduledUs, *row.LastTokenUs-row.ScheduledUs)
		}
	}
}

// script is one recorded answer.
type script []struct {
	AtMs float64 `json:"at_ms"`
	Raw  string  `json:"raw"`
	Hex  string  `json:"hex"`
	End  string  `json:"end"`
}

func (s script) serve(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/event-stream")
	start := time.Now()
	for _, p := range s {
		time.Sleep(time.Duration(p.AtMs*1e6) - time.Since(start))
		data := []byte(p.Raw)
		if p.Hex != "" {
			data, _ = hex.DecodeString(p.Hex)
		}
		w.Write(data)
		w.(http.Flusher).Flush()
		if p.End != "" {
			panic(http.ErrAbortHandler)
		}
	}
}

// readCase reads the transcripts of a public case, in order, and makes a plan of one row for each, 1 s apart.
func readCase(t *testing.T, name string) ([]script, *replay.Plan) {
	t.Helper()
	dir := filepath.Join("testdata", "cases", name)
	files, err := filepath.Glob(filepath.Join(dir, "transcript-*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts in %s (%v)", dir, err)
	}
	slices.Sort(files)
	var scripts []script
	p := &replay.Plan{RunID: name}
	for i, file := range files {
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		var s script
		for lines := bufio.NewScanner(f); lines.Scan(); {
			var one script
			if err := json.Unmarshal([]byte("["+lines.Text()+"]"), &one); err != nil {
				t.Fatal(err)
			}
			s = append(s, one...)
		}
		f.Close()
		scripts = append(scripts, s)
		out := int32(512)
		p.Rows = append(p.Rows, schemas.TraceRow{Row: int64(i), ScheduledUs: int64(i) * 1e6, InputTokens: 16, OutputTokens: &out, HashIDs: []int64{int64(i)}})
	}
	return scripts, p
}

// figures are what a report would say of one row, in ms; -1 = undefined.
type figures struct {
	status                string
	ttft, ttfo, e2e, tpot float64
	tokens                int32
	itlN                  int32
	itlIsToken            bool
	itlMax                int32 // µs, -1 = none
}

func figuresOf(r *schemas.Result) figures {
	since := func(at *int64) float64 {
		if at == nil {
			return -1
		}
		return float64(*at-r.ScheduledUs) / 1000
	}
	f := figures{r.Status, since(r.FirstTokenUs), since(r.FirstOutputUs), since(r.LastTokenUs), -1, -1, r.ITLN, r.ITLIsToken, -1}
	if r.OutputTokens != nil {
		f.tokens = *r.OutputTokens
		k := int32(1)
		if r.FirstEventTokens != nil {
			k = *r.FirstEventTokens
		}
		if f.tokens >= 2 && f.tokens > k {
			f.tpot = (f.e2e - f.ttft) / float64(f.tokens-k)
		}
	}
	if r.ITLMaxUs != nil {
		f.itlMax = *r.ITLMaxUs
	}
	return f
}

func TestPublicCasesGiveTheirExactFigures(t *testing.T) {
	cases := map[string][]figures{
		"01-role-chunk-is-not-a-token": {
			{"ok", 200, 200, 240, 20, 3, 2, true, 20_000}, {"ok", 300, 300, 320, 20, 2, 1, true, 20_000},
		},
		"02-reasoning-first-token": {
			{"ok", 80, 400, 420, 20, 18, 3, false, 300_000}, {"ok", 120, 200, 200, 20, 5, 2, false, 40_000},
		},
		"03-many-tokens-per-chunk": {
			{"ok", 100, 100, 260, 10, 17, 16, true, 10_000}, {"ok", 100, 100, 260, 10, 21, 16, true, 10_000},
		},
		"05-error-object-inside-200": {
			{"ok", 100, 100, 120, 20, 2, 1, true, 20_000}, {"error_event", -1, -1, -1, -1, -1, 0, false, -1},
			{"ok", 100, 100, 120, 20, 2, 1, true, 20_000}, {"error_event", 100, 100, 100, -1, -1, 0, false, -1},
		},
		"08-sse-framing":           {{"ok", 60, 60, 160, 20, 6, 5, true, 40_000}},
		"09-keepalive-comments":    {{"ok", 150, 150, 170, 20, 2, 1, true, 20_000}},
		"12-tpot-uses-real-length": {{"ok", 100, 100, 300, 20, 11, 10, true, 20_000}},
	}
	for name, want := range cases {
		t.Run(name, func(t *testing.T) {
			scripts, p := readCase(t, name)
			next := 0
			_, rows := runOver(t, p, replay.Options{}, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				next++
				scripts[next-1].serve(w)
			})
			for i := range rows {
				if got := figuresOf(&rows[i]); got != want[i] {
					t.Errorf("row %d:\n got %+v\nwant %+v", i, got, want[i])
				}
			}
		})
	}
}

// A burst of 28 equal stamps leaves at once and is in flight at once; every row is sent exactly once.
func TestEqualStampsAreABurst(t *testing.T) {
	p := &replay.Plan{RunID: "burst"}
	for i := range int64(30) {
		out := int32(4)
		at := int64(2e6)
		switch i {
		case 0:
			at = 0
		case 29:
			at = 4e6
		}
		p.Rows = append(p.Rows, schemas.TraceRow{Row: i, ScheduledUs: at, InputTokens: 600, OutputTokens: &out, HashIDs: []int64{0, 100 + i}})
	}
	var mu sync.Mutex
	inflight, peak := 0, 0
	prompts := map[string]int{}
	_, rows := runOver(t, p, replay.Options{}, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		prompts[string(body)]++
		inflight++
		peak = max(peak, inflight)
		mu.Unlock()
		transporttest.Events(w, 4, 500*time.Millisecond)
		mu.Lock()
		inflight--
		mu.Unlock()
	})
	if peak != 28 || len(prompts) != 30 || len(rows) != 30 {
		t.Errorf("peak %d, %d prompts, %d rows", peak, len(prompts), len(rows))
	}
	for i := range rows {
		if *rows[i].LagUs != 0 {
			t.Errorf("row %d: lag %d", i, *rows[i].LagUs)
		}
	}
}

func TestClosedLoopOverHTTPKeepsItsSlots(t *testing.T) {
	p := &replay.Plan{RunID: "closed"}
	for i := range int64(450) {
		p.Rows = append(p.Rows, schemas.TraceRow{Row: i, InputTokens: 16, HashIDs: []int64{i}})
	}
	var mu sync.Mutex
	inflight, peak := 0, 0
	prompts := map[string]bool{}
	s, rows := runOver(t, p, replay.Options{Concurrency: 45}, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		prompts[string(body)] = true
		inflight++
		peak = max(peak, inflight)
		mu.Unlock()
		transporttest.Events(w, 1, 100*time.Millisecond)
		mu.Lock()
		inflight--
		mu.Unlock()
	})
	if peak != 45 || len(prompts) != 450 || s.Elapsed != time.Second || s.Counts["ok"] != 450 {
		t.Errorf("peak %d, %d prompts, elapsed %v, %v", peak, len(prompts), s.Elapsed, s.Counts)
	}
	if lag := slices.MaxFunc(rows, func(a, b schemas.Result) int { return int(*a.LagUs - *b.LagUs) }); *lag.LagUs != 0 {
		t.Errorf("lag %d", *lag.LagUs)
	}
}

func TestATargetThatDiesInTheMiddle(t *testing.T) {
	p := &replay.Plan{RunID: "dies"}
	for i := range int64(3) {
		p.Rows = append(p.Rows, schemas.TraceRow{Row: i, ScheduledUs: i * 1e6, InputTokens: 16})
	}
	s, rows := runOver(t, p, replay.Options{}, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if strings.Contains(r.UserAgent(), "tailgate/") {
			script{{AtMs: 10, Raw: "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n", End: "eof"}}.serve(w)
		}
	})
	if s.Counts["truncated"] != 3 || s.ErrorKinds[replay.KindNoFinish] != 3 || *rows[2].FirstTokenUs != 2_010_000 {
		t.Errorf("%v, %v", s.Counts, s.ErrorKinds)
	}
}
