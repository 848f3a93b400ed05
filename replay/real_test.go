package replay_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tailgate/replay"
	"tailgate/schemas"
)

// inBubble runs f in virtual time, with a recorder outside of it, and returns the recorded rows.
func inBubble(t *testing.T, f func(t *testing.T, run runFunc)) []schemas.Result {
	t.Helper()
	rec, results := recorder(t)
	synctest.Test(t, func(t *testing.T) {
		f(t, func(ctx context.Context, p *replay.Plan, o replay.Options, tr replay.Transport) *replay.Summary {
			o.GoTimers = true
			s, err := replay.RunReal(ctx, p, o, tr, rec)
			if err != nil {
				t.Fatal(err)
			}
			return s
		})
	})
	return results()
}

type runFunc func(context.Context, *replay.Plan, replay.Options, replay.Transport) *replay.Summary

func TestRealDriverKeepsTheSameScheduleAsTheVirtualOne(t *testing.T) {
	one := int32(1)
	cases := map[string]struct {
		at      []int64
		opts    replay.Options
		service time.Duration
	}{
		"open loop":                {[]int64{0, 5, 5, 5, 100, 5000}, replay.Options{}, time.Second},
		"cap":                      {[]int64{0, 200, 400, 600, 800, 1000}, replay.Options{MaxInflight: 1}, 300 * ms},
		"cap and deadline":         {[]int64{0, 100, 200, 300, 400, 500}, replay.Options{MaxInflight: 1, Duration: 2 * time.Second}, time.Second},
		"closed loop":              {make([]int64, 50), replay.Options{Concurrency: 7}, 100 * ms},
		"closed loop and deadline": {make([]int64, 50), replay.Options{Concurrency: 7, Duration: 300 * ms}, 100 * ms},
		"count":                    {[]int64{0, 1, 2, 3}, replay.Options{Count: 2}, ms},
		"steps":                    {make([]int64, 50), replay.Options{Steps: []replay.Step{{Slots: 2, For: 250 * ms}, {Slots: 5, For: 333 * ms}}}, 100 * ms},
		"think":                    {[]int64{0, 50, 60, 200}, replay.Options{Turns: replay.TurnsThink}, time.Second},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := plan(c.at...)
			for i := range p.Rows {
				p.Rows[i].OutputTokens = &one
				if parent := int64(i - 1); c.opts.Turns == replay.TurnsThink && i > 0 {
					p.Rows[i].Parent = &parent
				}
			}
			want, wantRows := runVirtual(t, p, c.opts, &engine{ttft: c.service})
			rows := inBubble(t, func(t *testing.T, run runFunc) {
				got := run(t.Context(), p, c.opts, &transport{service: constant(c.service)})
				if got.Elapsed != want.Elapsed || got.Sent != want.Sent || got.Stopped != want.Stopped || got.MaxInflightReached != want.MaxInflightReached || got.Unscheduled != want.Unscheduled {
					t.Errorf("got  %+v\nwant %+v", got, want)
				}
			})
			if a, b := column(rows, sentMs), column(wantRows, sentMs); !slices.Equal(a, b) {
				t.Errorf("sent at %v, virtual %v", a, b)
			}
			if a, b := column(rows, status), column(wantRows, status); !slices.Equal(a, b) {
				t.Errorf("status %v, virtual %v", a, b)
			}
		})
	}
}

func TestNoDrift(t *testing.T) {
	rows := inBubble(t, func(t *testing.T, run runFunc) {
		s := run(t.Context(), every(5, 2000), replay.Options{}, &transport{service: constant(20 * ms)})
		if s.Elapsed != 9995*ms+20*ms {
			t.Errorf("elapsed %v", s.Elapsed)
		}
	})
	for i := range rows {
		if *rows[i].LagUs != 0 {
			t.Fatalf("row %d: lag %d µs", i, *rows[i].LagUs)
		}
	}
}

// evenEnd answers even rows after a second and odd ones never.
func evenEnd(c *replay.Call) time.Duration {
	if c.Index%2 == 1 {
		return 1000 * time.Hour
	}
	return time.Second
}

func TestFirstSignalDrainsSecondAborts(t *testing.T) {
	rows := inBubble(t, func(t *testing.T, run runFunc) {
		ctx, cancel := context.WithCancel(t.Context())
		abort := make(chan struct{})
		time.AfterFunc(10_050*ms, cancel)
		time.AfterFunc(20*time.Second, func() { close(abort) })
		s := run(ctx, every(100, 200), replay.Options{Abort: abort}, &transport{service: evenEnd})
		if s.Sent != 101 || s.Stopped != "signal" || s.Elapsed != 20*time.Second {
			t.Errorf("sent %d, stopped %q, elapsed %v", s.Sent, s.Stopped, s.Elapsed)
		}
		if s.Counts["ok"] != 51 || s.Counts["cancelled"] != 50 || s.Counts["not_sent"] != 99 {
			t.Errorf("counts %v", s.Counts)
		}
	})
	if kind := rows[1].ErrorKind; len(rows) != 200 || kind == nil || *kind != replay.KindAborted || *rows[1].ClosedUs != 20_000_000 {
		t.Errorf("%d rows, row 1: %+v", len(rows), rows[1])
	}
}

func TestAbortAlone(t *testing.T) {
	inBubble(t, func(t *testing.T, run runFunc) {
		abort := make(chan struct{})
		time.AfterFunc(1050*ms, func() { close(abort) })
		s := run(t.Context(), every(100, 200), replay.Options{Abort: abort}, &transport{service: evenEnd})
		if s.Sent != 11 || s.Stopped != "abort" || s.Elapsed != 1050*ms {
			t.Errorf("sent %d, stopped %q, elapsed %v", s.Sent, s.Stopped, s.Elapsed)
		}
	})
}

func TestAbortDuringTheDrain(t *testing.T) {
	inBubble(t, func(t *testing.T, run runFunc) {
		abort := make(chan struct{})
		time.AfterFunc(time.Minute, func() { close(abort) })
		s := run(t.Context(), every(100, 4), replay.Options{Abort: abort}, &transport{service: evenEnd})
		if s.Sent != 4 || s.Stopped != "abort" || s.Counts["cancelled"] != 2 || s.Elapsed != time.Minute {
			t.Errorf("%+v", s)
		}
	})
}

func TestCancelledBeforeTheStart(t *testing.T) {
	rows := inBubble(t, func(t *testing.T, run runFunc) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if s := run(ctx, every(100, 200), replay.Options{}, &transport{}); s.Sent != 0 || s.Stopped != "signal" {
			t.Errorf("sent %d, stopped %q", s.Sent, s.Stopped)
		}
	})
	if len(rows) != 200 {
		t.Errorf("%d rows", len(rows))
	}
}

func TestDrainEnds(t *testing.T) {
	for drain, want := range map[time.Duration]time.Duration{0: replay.DefaultDrain, time.Minute: time.Minute} {
		rows := inBubble(t, func(t *testing.T, run runFunc) {
			s := run(t.Context(), every(1000, 3), replay.Options{Drain: drain}, &transport{service: constant(time.Hour)})
			if s.Elapsed != 2*time.Second+want || s.Counts["timeout"] != 3 || s.Stopped != "" {
				t.Errorf("elapsed %v, counts %v", s.Elapsed, s.Counts)
			}
		})
		if *rows[0].ErrorKind != replay.KindDrain {
			t.Errorf("kind %s", *rows[0].ErrorKind)
		}
	}
}

func TestFailFast(t *testing.T) {
	inBubble(t, func(t *testing.T, run runFunc) {
		failed := 0
		status := func(c *replay.Call) (string, string) {
			if c.Index >= 5 {
				return schemas.ResultReset, replay.KindDescriptors
			}
			return schemas.ResultOK, ""
		}
		fail := func(r *schemas.Result) bool {
			if r.Status != schemas.ResultOK {
				failed++
			}
			return failed >= 3
		}
		s := run(t.Context(), every(100, 50), replay.Options{FailFast: fail}, &transport{service: constant(10 * ms), status: status})
		if s.Stopped != "fail_fast" || s.Sent != 8 || s.Counts["not_sent"] != 42 {
			t.Errorf("stopped %q after %d sends, %v", s.Stopped, s.Sent, s.Counts)
		}
		if len(s.Invalid) != 1 {
			t.Errorf("three requests without descriptors: invalid %q", s.Invalid)
		}
	})
}

func TestProgress(t *testing.T) {
	inBubble(t, func(t *testing.T, run runFunc) {
		var seen []replay.Progress
		o := replay.Options{MaxInflight: 5, OnProgress: func(p replay.Progress) { seen = append(seen, p) }}
		run(t.Context(), every(100, 30), o, &transport{service: constant(510 * ms)})
		if len(seen) != 3 {
			t.Fatalf("%d calls", len(seen))
		}
		p := seen[1]
		if p.Elapsed != 2*time.Second || p.Rows != 30 || p.InFlight != 5 || p.OK != p.Sent-5 || p.OutputTokens != p.OK || p.Failed != 0 {
			t.Errorf("%+v", p)
		}
		if p.TTFTP50 < 509*ms || p.TTFTP50 > 541*ms || p.LagP99 < 19*ms || p.LagP99 > 41*ms {
			t.Errorf("ttft p50 %v, lag p99 %v", p.TTFTP50, p.LagP99)
		}
		if p.PlannedRate != 10 || p.SentRate != float64(p.Sent)/2 || p.OutputRate != float64(p.OK)/2 || p.Left != 900*ms {
			t.Errorf("planned %v, sent %v, output %v, left %v", p.PlannedRate, p.SentRate, p.OutputRate, p.Left)
		}
	})
}

// The dispatcher of the wall clock: its own thread, fine timers. Only what holds on a busy machine is checked.
func TestWallClock(t *testing.T) {
	rec, results := recorder(t)
	s, err := replay.RunReal(t.Context(), every(2, 100), replay.Options{}, &transport{service: constant(ms)}, rec)
	if err != nil {
		t.Fatal(err)
	}
	if s.Sent != 100 || s.Counts["ok"] != 100 || s.Elapsed < 198*ms {
		t.Errorf("%+v", s)
	}
	for _, r := range results() {
		if *r.LagUs < 0 {
			t.Errorf("row %d left %d µs early", r.Row, -*r.LagUs)
		}
	}
}

func TestWallClockThinkTimeWakesTheDispatcher(t *testing.T) {
	p := plan(0, 0, 60_000)
	for i := int64(1); i < 3; i++ {
		parent := int64(0)
		p.Rows[i].Parent = &parent
	}
	p.Rows[1].ScheduledUs = 5000
	ctx, cancel := context.WithCancel(t.Context())
	rec, results := recorder(t)
	o := replay.Options{Turns: replay.TurnsThink, FailFast: func(r *schemas.Result) bool {
		if r.Row == 1 {
			cancel() // nothing is left but a turn that is due in a minute
		}
		return false
	}}
	s, err := replay.RunReal(ctx, p, o, &transport{service: constant(ms)}, rec)
	if err != nil || s.Sent != 2 || s.Stopped != "signal" || s.Elapsed > 30*time.Second {
		t.Errorf("%+v, %v", s, err)
	}
	if rows := results(); rows[2].Status != schemas.ResultNotSent || rows[2].ScheduledUs < 60_000_000 {
		t.Errorf("%+v", rows[2])
	}
}

// The zero of the schedule is an instant of the wall clock, for all shards of a run.
func TestStartAt(t *testing.T) {
	inBubble(t, func(t *testing.T, run runFunc) {
		began := time.Now()
		s := run(t.Context(), every(100, 3), replay.Options{StartAt: began.Add(time.Minute)}, &transport{service: constant(ms)})
		if took := time.Since(began); took != time.Minute+201*ms || s.Elapsed != 201*ms {
			t.Errorf("took %v, elapsed %v", took, s.Elapsed)
		}
	})
	rows := inBubble(t, func(t *testing.T, run runFunc) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		s := run(ctx, plan(0, 0), replay.Options{StartAt: began.Add(time.Minute), Concurrency: 1}, &transport{service: constant(ms)})
		if took := time.Since(began); took != time.Second || s.Sent != 0 || s.Stopped != "signal" {
			t.Errorf("took %v, %+v", took, s)
		}
	})
	if len(rows) != 0 {
		t.Errorf("%d rows", len(rows))
	}
}

func TestStartAtThatHasPassed(t *testing.T) {
	rec, _ := recorder(t)
	defer rec.Discard()
	_, err := replay.RunReal(t.Context(), plan(0), replay.Options{StartAt: time.Now().Add(-time.Second)}, &transport{service: constant(ms)}, rec)
	if err == nil || !strings.Contains(err.Error(), "was 1") {
		t.Errorf("error %v", err)
	}
}
