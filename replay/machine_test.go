package replay

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"tailgate/schemas"
)

const ms = time.Millisecond

// planAt is a plan with one row at each stamp, in ms.
func planAt(at ...int64) *Plan {
	p := &Plan{RunID: "r"}
	for i, ms := range at {
		p.Rows = append(p.Rows, schemas.TraceRow{Row: int64(i), ScheduledUs: 1000 * ms})
	}
	return p
}

// every is n rows with this gap in ms.
func every(gap int64, n int) *Plan {
	at := make([]int64, n)
	for i := range at {
		at[i] = gap * int64(i)
	}
	return planAt(at...)
}

// simulate steps a machine against a target that takes service for each request, and returns the sends as
// "row@sent" with the lag behind a "+" where there is one, and the rows that were never sent.
func simulate(m *machine, service time.Duration) (sends []string, unsent []int) {
	type flight struct {
		row int
		end time.Duration
	}
	var flights []flight
	now := time.Duration(0)
	step := func(ev event) {
		for _, s := range m.step(now, ev) {
			text := fmt.Sprintf("%d@%d", s.row, now.Milliseconds())
			if lag := now - s.scheduled; lag > 0 {
				text += fmt.Sprintf("+%d", lag.Milliseconds())
			}
			sends = append(sends, text)
			flights = append(flights, flight{s.row, now + service})
		}
	}
	for {
		step(event{kind: evTick})
		at, ok := m.wake()
		if len(flights) > 0 && (!ok || flights[0].end < at) {
			at, ok = flights[0].end, true
		}
		if !ok {
			break
		}
		now = at
		for len(flights) > 0 && flights[0].end == now {
			f := flights[0]
			flights = flights[1:]
			step(event{kind: evEnded, row: f.row, at: now})
		}
	}
	m.unsent(func(s send) { unsent = append(unsent, s.row) })
	return sends, unsent
}

func TestMachine(t *testing.T) {
	first := int64(0)
	second := int64(1)
	session := planAt(0, 100, 150, 300)
	session.Rows[1].Parent, session.Rows[3].Parent = &first, &second // 0 → 1 → 3; row 2 is alone

	cases := []struct {
		name    string
		plan    *Plan
		opts    Options
		service time.Duration
		sends   []string
		unsent  []int
		stopped string
		capped  bool
	}{
		{name: "open loop keeps stamps whatever the target does", plan: planAt(0, 200, 400), service: time.Hour,
			sends: []string{"0@0", "1@200", "2@400"}},
		{name: "equal stamps leave together in plan order", plan: planAt(0, 2000, 2000, 2000, 4000), service: 500 * ms,
			sends: []string{"0@0", "1@2000", "2@2000", "3@2000", "4@4000"}},
		{name: "cap: late sends wait visibly", plan: every(200, 6), opts: Options{MaxInflight: 1}, service: 300 * ms,
			sends: []string{"0@0", "1@300+100", "2@600+200", "3@900+300", "4@1200+400", "5@1500+500"}, capped: true},
		{name: "cap that is never reached", plan: every(200, 3), opts: Options{MaxInflight: 1}, service: 200 * ms,
			sends: []string{"0@0", "1@200", "2@400"}},
		{name: "no send at the deadline", plan: every(100, 20), opts: Options{MaxInflight: 1, Duration: 2 * time.Second}, service: time.Second,
			sends:  []string{"0@0", "1@1000+900"},
			unsent: []int{2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19}, stopped: "duration", capped: true},
		{name: "a stamp at the deadline does not go", plan: planAt(0, 999, 1000, 1001), opts: Options{Duration: time.Second}, service: ms,
			sends: []string{"0@0", "1@999"}, unsent: []int{2, 3}, stopped: "duration"},
		{name: "a deadline behind the end stops nothing", plan: planAt(0, 2000), opts: Options{Duration: time.Hour}, service: time.Second,
			sends: []string{"0@0", "1@2000"}},
		{name: "count", plan: planAt(0, 0, 0, 5), opts: Options{Count: 2}, service: ms,
			sends: []string{"0@0", "1@0"}, unsent: []int{2, 3}, stopped: "count"},
		{name: "count of the whole plan stops nothing", plan: planAt(0, 1), opts: Options{Count: 2}, service: ms,
			sends: []string{"0@0", "1@1"}},
		{name: "closed loop: a slot's next request is due when it became free", plan: planAt(0, 0, 50, 9000, 9000), opts: Options{Concurrency: 2}, service: 100 * ms,
			sends: []string{"0@0", "1@0", "2@100", "3@100", "4@200"}},
		{name: "closed loop with more slots than rows", plan: planAt(7, 8), opts: Options{Concurrency: 9}, service: ms,
			sends: []string{"0@0", "1@0"}},
		{name: "closed loop to the deadline: what had no slot was never scheduled", plan: every(1, 10), opts: Options{Concurrency: 1, Duration: 250 * ms}, service: 100 * ms,
			sends: []string{"0@0", "1@100", "2@200"}, stopped: "duration"},
		{name: "turns by timestamp do not wait for answers", plan: session, service: time.Second,
			sends: []string{"0@0", "1@100", "2@150", "3@300"}},
		{name: "turns by think time", plan: session, opts: Options{Turns: TurnsThink}, service: time.Second,
			sends: []string{"0@0", "2@150", "1@1100", "3@2300"}},
		{name: "think time, stopped in between", plan: session, opts: Options{Turns: TurnsThink, Duration: 1200 * ms}, service: time.Second,
			sends: []string{"0@0", "2@150", "1@1100"}, unsent: []int{3}, stopped: "duration"},
		{name: "think time under a cap", plan: session, opts: Options{Turns: TurnsThink, MaxInflight: 1}, service: time.Second,
			sends: []string{"0@0", "2@1000+850", "1@2000+900", "3@3200"}, capped: true},
		{name: "steps: more slots at a fixed instant", plan: every(0, 9), service: 100 * ms,
			opts:  Options{Steps: []Step{{1, 150 * ms}, {3, 0}}},
			sends: []string{"0@0", "1@100", "2@150", "3@150", "4@200", "5@250", "6@250", "7@300", "8@350"}},
		{name: "steps: a slot goes when its request ends, and the last step ends the run", plan: every(0, 9), service: 100 * ms,
			opts:  Options{Steps: []Step{{3, 50 * ms}, {1, 200 * ms}}},
			sends: []string{"0@0", "1@0", "2@0", "3@100", "4@200"}, stopped: "duration"},
		{name: "steps: a free slot is taken away at once", plan: every(0, 2), service: 100 * ms,
			opts:  Options{Steps: []Step{{2, 10 * ms}, {1, 0}}},
			sends: []string{"0@0", "1@0"}},
		{name: "steps and a shorter duration", plan: every(0, 9), service: 100 * ms,
			opts:  Options{Steps: []Step{{1, 150 * ms}, {3, 150 * ms}}, Duration: 120 * ms},
			sends: []string{"0@0", "1@100"}, stopped: "duration"},
		{name: "empty plan", plan: planAt(), service: ms},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			m := newMachine(c.plan, &c.opts)
			sends, unsent := simulate(m, c.service)
			if !slices.Equal(sends, c.sends) {
				t.Errorf("sends %v\nwant  %v", sends, c.sends)
			}
			if !slices.Equal(unsent, c.unsent) {
				t.Errorf("unsent %v, want %v", unsent, c.unsent)
			}
			if m.stopped != c.stopped || m.capReached != c.capped {
				t.Errorf("stopped %q, cap reached %v", m.stopped, m.capReached)
			}
		})
	}
}

func TestMachineStopsForGood(t *testing.T) {
	m := newMachine(planAt(0, 0, 10), &Options{MaxInflight: 1})
	if n := len(m.step(0, event{kind: evTick})); n != 1 {
		t.Fatalf("%d sends", n)
	}
	m.step(ms, event{kind: evStop, reason: stopSignal})
	m.step(2*ms, event{kind: evStop, reason: stopAbort})
	if n := len(m.step(3*ms, event{kind: evEnded, row: 0, at: 3 * ms})); n != 0 || m.stopped != stopSignal {
		t.Errorf("%d sends after the stop, stopped %q", n, m.stopped)
	}
	if _, ok := m.wake(); ok {
		t.Error("a stopped machine wants to be woken")
	}
	var due []time.Duration
	m.unsent(func(s send) { due = append(due, s.scheduled) })
	if !slices.Equal(due, []time.Duration{0, 10 * ms}) {
		t.Errorf("unsent are due at %v", due)
	}
}

func TestParentsOutsideThePlanOrBehindAreNone(t *testing.T) {
	p := planAt(0, 1, 2, 3)
	gone, later, itself, good := int64(99), int64(3), int64(2), int64(1)
	p.Rows[0].Parent, p.Rows[1].Parent, p.Rows[2].Parent, p.Rows[3].Parent = &gone, &later, &itself, &good
	if got := p.parents(); !slices.Equal(got, []int32{-1, -1, -1, 1}) {
		t.Errorf("parents %v", got)
	}
}

func TestBucketFloor(t *testing.T) {
	for v, want := range map[int32]int32{0: 0, 1: 1, 2047: 2047, 2048: 2048, 2049: 2048, 4095: 4094, 4096: 4096, 4099: 4096, 20000: 20000, 123457: 123456, 1<<31 - 1: 2047 << 20} {
		if got := bucketFloor(v); got != want {
			t.Errorf("bucketFloor(%d) = %d, want %d", v, got, want)
		}
	}
	for v := int32(1); v < 1<<30; v += v/7 + 1 {
		if f := bucketFloor(v); f > v || float64(v-f) > 0.001*float64(v) || bucketFloor(f) != f {
			t.Errorf("bucketFloor(%d) = %d", v, f)
		}
	}
}

func TestRankIsNearestRank(t *testing.T) {
	for _, c := range []struct{ n, permille, want int }{
		{1, 500, 0}, {2, 500, 0}, {3, 500, 1}, {4, 500, 1}, {100, 990, 98}, {101, 990, 99}, {10, 990, 9}, {1, 1000, 0},
	} {
		if got := rank(c.n, c.permille); got != c.want {
			t.Errorf("rank(%d, %d) = %d, want %d", c.n, c.permille, got, c.want)
		}
	}
}

func TestMedianLengths(t *testing.T) {
	n := func(v int32) *int32 { return &v }
	a, b, c := "a", "b", "c"
	p := &Plan{Rows: []schemas.TraceRow{
		{Class: &a, OutputTokens: n(10)}, {Class: &a, OutputTokens: n(30)}, {Class: &a, OutputTokens: n(20)},
		{Class: &b, OutputTokens: n(99)}, {Class: &c},
	}}
	m := p.medianLengths()
	for class, want := range map[*string]int32{&a: 20, &b: 99, &c: 20} {
		if got := m.of(&schemas.TraceRow{Class: class}); got == nil || *got != want {
			t.Errorf("class %s: %v, want %d", *class, got, want)
		}
	}
	if got := (&Plan{Rows: []schemas.TraceRow{{}}}).medianLengths().of(&schemas.TraceRow{}); got != nil {
		t.Errorf("nothing known: %d", *got)
	}
}

func TestCPUWatch(t *testing.T) {
	second := time.Second
	w := &cpuWatch{cores: 2, samples: []cpuSample{{}}}
	used := time.Duration(0)
	for i := 1; i <= 4; i++ {
		used += 2 * second
		w.sample(time.Duration(i)*second, used)
	}
	if w.worst != 1 || w.overloaded() {
		t.Errorf("before five seconds: worst %v, overloaded %v", w.worst, w.overloaded())
	}
	w.sample(5*second, used+second) // 9 of 10 CPU seconds
	if w.worst != 0.9 || w.overloaded() {
		t.Errorf("90 %%: worst %v, overloaded %v", w.worst, w.overloaded())
	}
	w.sample(6*second, used+3*second) // 9 of 10 again, one second on
	w.sample(7*second, used+5*second+second/2)
	if !w.overloaded() {
		t.Errorf("worst %v is not overloaded", w.worst)
	}
	worst := w.worst
	w.sample(20*second, used+5*second)
	if w.worst != worst {
		t.Errorf("a quiet window changed the worst share to %v", w.worst)
	}
}

// A failed turn ends its session: what is on the way goes on, what comes after it is not sent.
func TestFailedTurnEndsItsSession(t *testing.T) {
	p := planAt(0, 100, 150, 300, 900)
	for i, parent := range []int64{-1, 0, -1, 1, 3} {
		if parent >= 0 {
			p.Rows[i].Parent = &parent
		}
	}
	cases := map[string]struct {
		opts   Options
		want   string
		unsent []int
	}{
		"by stamp":  {Options{FailedTurn: FailedTurnEnd}, "[0 1 2]", []int{3, 4}},
		"by think":  {Options{FailedTurn: FailedTurnEnd, Turns: TurnsThink}, "[0 2]", []int{1, 3, 4}},
		"skip":      {Options{FailedTurn: FailedTurnSkip}, "[0 1 2 3 4]", nil},
		"two slots": {Options{FailedTurn: FailedTurnEnd, Concurrency: 2}, "[0 1 2]", nil},
		"cap":       {Options{FailedTurn: FailedTurnEnd, MaxInflight: 1}, "[0 2]", []int{1, 3, 4}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			m := newMachine(p, &c.opts)
			var sent []int
			var ends []time.Duration
			now := time.Duration(0)
			step := func(ev event) {
				for _, s := range m.step(now, ev) {
					sent = append(sent, s.row)
					ends = append(ends, now+200*ms)
				}
			}
			for next := 0; ; {
				step(event{kind: evTick})
				at, ok := m.wake()
				if next < len(ends) && (!ok || ends[next] <= at) {
					now = ends[next]
					next++
					step(event{kind: evEnded, row: sent[next-1], at: now, failed: sent[next-1] == 0})
					continue
				}
				if !ok {
					break
				}
				now = at
			}
			var unsent []int
			m.unsent(func(s send) { unsent = append(unsent, s.row) })
			if fmt.Sprint(sent) != c.want || !slices.Equal(unsent, c.unsent) || !m.over() || m.stopped != "" {
				t.Errorf("sent %v, unsent %v, over %v, stopped %q", sent, unsent, m.over(), m.stopped)
			}
		})
	}
}
