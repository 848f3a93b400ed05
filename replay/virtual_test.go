package replay_test

import (
	"context"
	"crypto/sha256"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tailgate/internal/fault"
	"tailgate/internal/rng"
	"tailgate/replay"
	"tailgate/schemas"
)

// runVirtual runs a plan and returns its rows.
func runVirtual(t *testing.T, p *replay.Plan, o replay.Options, e replay.Engine) (*replay.Summary, []schemas.Result) {
	t.Helper()
	rec, results := recorder(t)
	s, err := replay.RunVirtual(t.Context(), p, o, e, rec)
	if err != nil {
		t.Fatal(err)
	}
	return s, results()
}

func TestVirtualResultRow(t *testing.T) {
	p := plan(0, 100)
	p.Warmup = 100 * ms
	session, class := "s_1", "batch"
	p.Rows[1].Session, p.Rows[1].Class, p.Rows[1].Turn = &session, &class, 2
	s, rows := runVirtual(t, p, replay.Options{}, &engine{ttft: 50 * ms, itl: 20 * ms})

	us := func(v int64) *int64 { return &v }
	n := func(v int32) *int32 { return &v }
	want := schemas.Result{
		RunID: "run", Row: 1, Session: &session, Class: &class, Turn: 2, Phase: schemas.PhaseMeasure,
		ScheduledUs: 100_000, SentUs: us(100_000), LagUs: us(0),
		FirstTokenUs: us(150_000), FirstOutputUs: us(150_000), LastTokenUs: us(190_000), ClosedUs: us(190_000),
		Streamed: true, FirstEventTokens: n(1), Events: 3, InputLength: 10, OutputLength: n(3),
		InputTokens: n(10), OutputTokens: n(3), CachedTokens: n(0),
		ServerQueueUs: us(1), ServerPrefillUs: us(2),
		ITLUs: []int32{20_000, 20_000}, ITLIsToken: true, ITLN: 2, ITLP50Us: n(20_000), ITLP99Us: n(20_000), ITLMaxUs: n(20_000),
		Status: schemas.ResultOK, HTTPStatus: n(200), Target: "replica-1",
	}
	if diff := cmp.Diff(want, rows[1]); diff != "" {
		t.Error(diff)
	}
	if rows[0].Phase != schemas.PhaseWarmup {
		t.Errorf("phase of row 0: %s", rows[0].Phase)
	}
	wantSummary := &replay.Summary{
		RunFacts: schemas.RunFacts{Scheduled: 2, Sent: 2, DurationUs: 100_000, WarmupUs: 100_000, Invalid: []string{}, OutputMode: "natural"},
		Counts:   map[string]int64{"ok": 2}, ErrorKinds: map[string]int64{},
		Targets: map[string]int64{"replica-0": 1, "replica-1": 1}, OutputTokens: 6, Elapsed: 190 * ms,
	}
	if diff := cmp.Diff(wantSummary, s); diff != "" {
		t.Error(diff)
	}
}

// one token after 300 ms, at 5 requests a second and one in flight: the public case of coordinated omission.
func TestLatenessOfACappedClientIsInTheRows(t *testing.T) {
	one := int32(1)
	p := every(200, 6)
	for i := range p.Rows {
		p.Rows[i].OutputTokens = &one
	}
	s, rows := runVirtual(t, p, replay.Options{MaxInflight: 1}, &engine{ttft: 300 * ms})
	lag := func(r *schemas.Result) int64 { return *r.LagUs / 1000 }
	fromScheduled := func(r *schemas.Result) int64 { return (*r.LastTokenUs - r.ScheduledUs) / 1000 }
	fromSent := func(r *schemas.Result) int64 { return (*r.LastTokenUs - *r.SentUs) / 1000 }
	for _, c := range []struct {
		name string
		f    func(*schemas.Result) int64
		want []int64
	}{
		{"sends", sentMs, []int64{0, 300, 600, 900, 1200, 1500}},
		{"lag", lag, []int64{0, 100, 200, 300, 400, 500}},
		{"e2e from scheduled", fromScheduled, []int64{300, 400, 500, 600, 700, 800}},
		{"e2e from sent", fromSent, []int64{300, 300, 300, 300, 300, 300}},
	} {
		if got := column(rows, c.f); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	if !s.MaxInflightReached || len(s.Invalid) != 1 {
		t.Errorf("cap reached %v, invalid %q", s.MaxInflightReached, s.Invalid)
	}
}

func TestStopAtTheDeadline(t *testing.T) {
	one := int32(1)
	p := every(100, 20)
	for i := range p.Rows {
		p.Rows[i].OutputTokens = &one
	}
	p.Length = 2 * time.Second
	s, rows := runVirtual(t, p, replay.Options{MaxInflight: 1, Duration: 2 * time.Second}, &engine{ttft: time.Second})
	sent := column(rows, sentMs)
	if !slices.Equal(sent[:3], []int64{0, 1000, -1}) || s.Sent != 2 || s.Scheduled != 20 || s.Counts["not_sent"] != 18 || s.Counts["ok"] != 2 || s.Stopped != "duration" {
		t.Errorf("sent %v, summary %+v", sent, s)
	}
	if rows[2].LagUs != nil || rows[2].Status != schemas.ResultNotSent || rows[19].ScheduledUs != 1_900_000 {
		t.Errorf("unsent row %+v", rows[2])
	}

	two := plan(0, 2000)
	two.Rows[0].OutputTokens, two.Rows[1].OutputTokens = &one, &one
	s, rows = runVirtual(t, two, replay.Options{}, &engine{ttft: time.Second})
	if s.Elapsed != 3*time.Second || !slices.Equal(column(rows, sentMs), []int64{0, 2000}) || s.Stopped != "" {
		t.Errorf("elapsed %v, stopped %q", s.Elapsed, s.Stopped)
	}
}

func TestClosedLoopHasOneLimiter(t *testing.T) {
	p := every(0, 450)
	one := int32(1)
	for i := range p.Rows {
		p.Rows[i].OutputTokens = &one
	}
	s, rows := runVirtual(t, p, replay.Options{Concurrency: 45}, &engine{ttft: 100 * ms})
	if s.Sent != 450 || s.Elapsed != time.Second || s.Unscheduled != 0 {
		t.Errorf("sent %d in %v", s.Sent, s.Elapsed)
	}
	inflight := map[int64]int{}
	for i := range rows {
		if rows[i].Row != int64(i) || *rows[i].LagUs != 0 {
			t.Fatalf("row %d at %d with lag %d", rows[i].Row, i, *rows[i].LagUs)
		}
		inflight[sentMs(&rows[i])]++
	}
	if len(inflight) != 10 {
		t.Errorf("%d waves", len(inflight))
	}
	for at, n := range inflight {
		if n != 45 {
			t.Errorf("%d sends at %d ms", n, at)
		}
	}

	s, rows = runVirtual(t, p, replay.Options{Concurrency: 45, Duration: 250 * ms}, &engine{ttft: 100 * ms})
	if len(rows) != 135 || s.Scheduled != 135 || s.Unscheduled != 315 || s.Counts["ok"] != 135 {
		t.Errorf("%d rows, summary %+v", len(rows), s)
	}
}

func TestFailedTurnsDoNotEndTheirSession(t *testing.T) {
	for _, turns := range []string{replay.TurnsTimestamp, replay.TurnsThink} {
		p := plan(0, 10, 20, 30)
		for i := int64(1); i < 4; i++ {
			parent := i - 1
			p.Rows[i].Parent = &parent
		}
		fail := func(id int64) string {
			if id == 1 {
				return schemas.ResultHTTPError
			}
			return ""
		}
		s, rows := runVirtual(t, p, replay.Options{Turns: turns}, &engine{ttft: 5 * ms, fail: fail})
		if got := column(rows, status); !slices.Equal(got, []string{"ok", "http_error", "ok", "ok"}) {
			t.Errorf("%s: %v", turns, got)
		}
		if s.AfterFailedTurn != 2 || s.ErrorKinds[replay.KindHTTP5xx] != 1 {
			t.Errorf("%s: %d turns after a failed one, kinds %v", turns, s.AfterFailedTurn, s.ErrorKinds)
		}
		if rows[1].OutputTokens != nil || rows[1].LastTokenUs != nil {
			t.Errorf("%s: a failed row has tokens", turns)
		}
	}
}

func TestUnknownLengthsTakeTheClassMedian(t *testing.T) {
	p := plan(0, 1, 2, 3)
	n := []int32{5, 7, 9}
	for i := range n {
		p.Rows[i].OutputTokens = &n[i]
	}
	p.Rows[3].OutputTokens = nil
	s, rows := runVirtual(t, p, replay.Options{}, &engine{ttft: ms, itl: ms})
	if s.UnknownOutput != 1 || *rows[3].OutputLength != 7 || *rows[3].OutputTokens != 7 {
		t.Errorf("unknown %d, asked for %d", s.UnknownOutput, *rows[3].OutputLength)
	}
	if p.Rows[3].OutputTokens != nil {
		t.Error("the plan was changed")
	}
}

func TestNotStreamedHasOnlyAnEnd(t *testing.T) {
	p := plan(0)
	no := false
	p.Rows[0].Stream = &no
	_, rows := runVirtual(t, p, replay.Options{}, &engine{ttft: 10 * ms, itl: 10 * ms})
	r := rows[0]
	if r.Streamed || r.FirstTokenUs != nil || r.FirstOutputUs != nil || r.ITLN != 0 || r.ITLIsToken || *r.LastTokenUs != 30_000 || *r.OutputTokens != 3 {
		t.Errorf("%+v", r)
	}
}

func TestFailFastAndDrainInVirtualTime(t *testing.T) {
	slow := int32(1000)
	p := every(100, 10)
	p.Rows[0].OutputTokens = &slow
	stop := func(r *schemas.Result) bool { return r.Row == 3 }
	s, rows := runVirtual(t, p, replay.Options{FailFast: stop, Drain: time.Second}, &engine{ttft: 50 * ms, itl: 10 * ms})
	want := []string{"timeout", "ok", "ok", "ok", "not_sent", "not_sent", "not_sent", "not_sent", "not_sent", "not_sent"}
	if got := column(rows, status); !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
	if *rows[0].ErrorKind != replay.KindDrain || *rows[0].ClosedUs != 1_370_000 || s.Stopped != "fail_fast" {
		t.Errorf("kind %s, closed %d, stopped %s", *rows[0].ErrorKind, *rows[0].ClosedUs, s.Stopped)
	}
}

func TestVirtualSignalAndAbort(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	rec, results := recorder(t)
	s, err := replay.RunVirtual(ctx, every(1, 3), replay.Options{}, &engine{ttft: ms}, rec)
	if rows := results(); err != nil || s.Stopped != "signal" || len(rows) != 3 || rows[0].Status != schemas.ResultNotSent {
		t.Errorf("%v, %+v", err, s)
	}
	abort := make(chan struct{})
	close(abort)
	s, rows := runVirtual(t, every(1, 3), replay.Options{Abort: abort}, &engine{ttft: ms})
	if s.Stopped != "abort" || len(rows) != 3 {
		t.Errorf("stopped %q, %d rows", s.Stopped, len(rows))
	}
}

func TestAnEngineThatLosesRequestsIsAnError(t *testing.T) {
	rec, results := recorder(t)
	_, err := replay.RunVirtual(t.Context(), every(1, 3), replay.Options{MaxInflight: 2}, &engine{lose: true}, rec)
	if err == nil {
		t.Error("no error")
	}
	if got := column(results(), status); !slices.Equal(got, []string{"truncated", "truncated", "not_sent"}) {
		t.Errorf("%v", got)
	}
}

func TestNothingStartsFromBadInput(t *testing.T) {
	rec, results := recorder(t)
	bad := replay.Options{MaxInflight: 1, Concurrency: 1, Turns: "x", Output: "y", Duration: -1, Count: -1, Drain: -1}
	if _, err := replay.RunVirtual(t.Context(), plan(0), bad, &engine{}, rec); fault.Of(err) != fault.Usage {
		t.Errorf("options: %v", err)
	}
	p := plan(5, 0)
	p.Rows[1].Row = 0
	if _, err := replay.RunVirtual(t.Context(), p, replay.Options{}, &engine{}, rec); fault.Of(err) != fault.Data {
		t.Errorf("plan: %v", err)
	}
	if rows := results(); len(rows) != 0 {
		t.Errorf("%d rows were recorded", len(rows))
	}
}

func TestWarmupOverTheWholeScheduleIsInvalid(t *testing.T) {
	p := plan(0, 10)
	p.Warmup = time.Minute
	s, _ := runVirtual(t, p, replay.Options{}, &engine{ttft: ms})
	if len(s.Invalid) != 1 {
		t.Errorf("invalid %q", s.Invalid)
	}
}

// An hour of traffic gives the same bytes each time.
func TestVirtualRunsAreDeterministic(t *testing.T) {
	const rows, tokens = 1000, 343
	at := make([]int64, rows)
	for i := range at {
		at[i] = int64(rng.Float(1, uint64(i)) * 3.6e6)
	}
	slices.Sort(at)
	p := plan(at...)
	for i := range p.Rows {
		n := int32(rng.Hash(2, uint64(i))%(2*tokens)) + 1
		p.Rows[i].OutputTokens = &n
	}
	var first [sha256.Size]byte
	for run := range 2 {
		dir := t.TempDir()
		rec, err := replay.NewRecorder(dir, "run", schemas.Footer{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := replay.RunVirtual(t.Context(), p, replay.Options{}, &engine{ttft: 80 * ms, itl: 11 * ms}, rec); err != nil {
			t.Fatal(err)
		}
		if _, err := rec.Finish(); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(filepath.Join(dir, replay.ResultsName))
		if err != nil {
			t.Fatal(err)
		}
		if sum := sha256.Sum256(data); run == 0 {
			first = sum
		} else if sum != first {
			t.Error("two runs gave different bytes")
		}
	}
}

// A thousand requests of 343 tokens: what the driver itself costs a request and a token.
func BenchmarkVirtual(b *testing.B) {
	const tokens = 343
	p := every(300, 1000)
	for i := range p.Rows {
		n := int32(tokens)
		p.Rows[i].OutputTokens = &n
	}
	rec, results := recorder(b)
	for b.Loop() {
		if _, err := replay.RunVirtual(b.Context(), p, replay.Options{}, &engine{ttft: 80 * ms, itl: 11 * ms}, rec); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(p.Rows)*tokens), "ns/token")
	results()
}

// A run in virtual time is looked at once a second, at the instants of its own clock.
func TestOnLook(t *testing.T) {
	var at []time.Duration
	runVirtual(t, plan(0, 100, 2500), replay.Options{OnLook: func(d time.Duration) { at = append(at, d) }}, &engine{ttft: 50 * ms, itl: 2 * time.Second})
	if want := []time.Duration{0, time.Second, 2 * time.Second, 3 * time.Second, 4 * time.Second, 5 * time.Second, 6 * time.Second}; !slices.Equal(at, want) {
		t.Error(at)
	}
}
