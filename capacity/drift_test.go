package capacity_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"tailgate/capacity"
	"tailgate/internal/fault"
	"tailgate/schemas"
)

// Arrivals that drift are replayed from one draw: the same window of at least 28 min in every probe, rescaled, and the
// answer says so. Steady ones are drawn afresh. What was found is noted: a test that goes on does not draw again.
func TestDriftingArrivalsReplayOneWindow(t *testing.T) {
	for _, waves := range []bool{false, true} {
		dir, p := t.TempDir(), quickPlan(t)
		p.Soak, p.NMinus1, p.Search.MinProbes = nil, nil, 3
		p.Search.Error = .3
		r := &simRunner{sc: fixedSeeds, waves: waves}
		e, err := mustOpen(t, dir, p, r).Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		row, seeds := e.Rows[0], map[uint64]bool{}
		if row.Drift == nil || (*row.Drift > 2) != waves || (row.Window != "") != waves {
			t.Errorf("waves %v: drift %v, window %q", waves, row.Drift, row.Window)
		}
		if said := strings.Contains(strings.Join(row.Warnings, " "), "the arrivals drift"); said != waves {
			t.Errorf("waves %v: %v", waves, row.Warnings)
		}
		probes := 0
		for _, l := range r.loads {
			if l.Layer != capacity.LayerSearch {
				continue
			}
			probes++
			seeds[l.Seed] = true
			if waves && (l.Length < 28*time.Minute || l.Drawn == 0 || math.Abs(l.Rate/l.Scale-l.Drawn)/l.Drawn > .3) {
				t.Errorf("%+v", l)
			}
			if !waves && (l.Drawn != 0 || l.Scale != 0) {
				t.Errorf("%+v", l)
			}
		}
		if want := map[bool]int{false: probes, true: 1}[waves]; len(seeds) != want {
			t.Errorf("waves %v: %d seeds in %d runs", waves, len(seeds), probes)
		}
		again := &simRunner{sc: fixedSeeds, waves: waves}
		if _, err := mustOpen(t, dir, p, again).Run(t.Context()); err != nil || len(again.drawn)+len(again.made) > 0 {
			t.Errorf("drew %v and made %v again, %v", again.drawn, again.made, err)
		}
	}
}

func TestDriftNeedsTime(t *testing.T) {
	constant := func(length time.Duration) *capacity.Traffic {
		traffic, err := capacity.NewTraffic(func(yield func(*schemas.TraceRow) bool) {
			for at := time.Duration(0); at < length; at += 7 * time.Second {
				if !yield(&schemas.TraceRow{ScheduledUs: at.Microseconds()}) {
					return
				}
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		return traffic
	}
	if d := constant(99 * time.Minute).Drift(capacity.Mix); d != nil {
		t.Errorf("a drift of %v in 99 min", *d)
	}
	if d := constant(3 * time.Hour).Drift(capacity.Mix); d == nil || *d > 2 {
		t.Errorf("drift %v of constant gaps", d)
	}
}

// The whole mix has a name, which no class can have beside it.
func TestNoClassIsCalledMix(t *testing.T) {
	chat, mix := "chat", capacity.Mix
	_, err := capacity.NewTraffic(slices.Values([]*schemas.TraceRow{{Class: &chat}, {Row: 1, Class: &mix}}))
	if fault.Of(err) != fault.Usage || !strings.Contains(err.Error(), `row 1 is of a class named "mix"`) {
		t.Errorf("%v", err)
	}
}
