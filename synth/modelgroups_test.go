package synth_test

import (
	"fmt"
	"math"
	"testing"

	"tailgate/internal/rng"
	"tailgate/profile"
	"tailgate/schemas"
	"tailgate/synth"
	"tailgate/trace"
)

// crowd is an hour of many small tenants. Two requests in five go on with a session of the last minutes, in some minutes
// more of them and in others fewer.
func crowd(seed uint64, tenants int) *trace.Trace {
	r := rng.New(seed, "crowd")
	type open struct {
		name   string
		tenant int
		turn   int32
		in     int32
		row    int64
	}
	t := &trace.Trace{Meta: trace.Meta{Name: "crowd", Unit: trace.UnitMicros, LengthUs: 3_600_000_000}}
	var sessions []*open
	for minute := range 60 {
		begin, goOn := 120.0, 80*math.Exp(.35*r.NormFloat64())
		rate := begin + goOn
		for at := r.ExpFloat64() / rate; at < 1; at += r.ExpFloat64() / rate {
			i := int64(len(t.Rows))
			s := &open{name: fmt.Sprintf("s_%d", i), tenant: r.IntN(tenants), turn: -1}
			if len(sessions) > 0 && r.Float64() < goOn/rate {
				s = sessions[len(sessions)-1-min(r.IntN(600), len(sessions)-1)]
			} else {
				sessions = append(sessions, s)
			}
			row := schemas.TraceRow{Row: i, SourceRow: i, ScheduledUs: int64((float64(minute) + at) * 60e6), OutputTokens: ptr(1 + r.Int32N(300)),
				Tenant: ptr(fmt.Sprintf("t_%d", s.tenant)), Session: &s.name}
			s.turn, s.in = s.turn+1, s.in+100+r.Int32N(400)
			if row.Turn, row.InputTokens = s.turn, s.in; s.turn > 0 {
				row.Parent = ptr(s.row)
			}
			s.row = i
			t.Rows = append(t.Rows, row)
		}
	}
	return t
}

// Many small groups together are as bursty as what they were drawn from: none of them shows by itself in which minutes
// sessions went on.
func TestManySmallGroupsKeepTheDispersionOfAll(t *testing.T) {
	idc := func(tr *trace.Trace) float64 {
		stamps := make([]int64, len(tr.Rows))
		for i := range tr.Rows {
			stamps[i] = tr.Rows[i].ScheduledUs
		}
		return profile.Counts(stamps, 60_000_000).IDC()
	}
	src := crowd(1, 80)
	p, want, got := profileOf(t, src), idc(src), 0.0
	const draws = 2
	for seed := range uint64(draws) {
		got += idc(fromProfile(t, p, synth.ModelOptions{Seed: seed})) / draws
	}
	t.Logf("IDC at 60 s: %.2f drawn, %.2f before", got, want)
	if got < .8*want || got > 1.25*want {
		t.Errorf("IDC at 60 s: %.2f drawn, %.2f before", got, want)
	}
}
