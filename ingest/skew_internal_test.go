package ingest

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// Three clocks, one of them 400 ms ahead, with scattered lags and some records that came very late: the estimate is
// within the scatter, and the late ones do not move it.
func TestSkewEstimate(t *testing.T) {
	var m skewMeter
	r := rand.New(rand.NewPCG(1, 2))
	start := time.Date(2026, 11, 19, 15, 0, 0, 0, time.UTC)
	for i := range 3000 {
		lag := time.Duration(20+r.IntN(30)) * time.Millisecond
		if i%20 == 0 {
			lag = time.Duration(1+r.IntN(60)) * time.Second // a batch that waited
		}
		ended := start.Add(time.Duration(i) * 100 * time.Millisecond)
		clock := [...]string{"a", "b", "fast"}[i%3]
		logged := ended.Add(lag)
		if clock == "fast" {
			ended = ended.Add(400 * time.Millisecond)
		}
		m.add(clock, ended, logged)
	}
	list := m.report()
	if len(list) != 3 || list[0].Clock != "fast" || list[0].Records != 1000 {
		t.Fatalf("%+v", list)
	}
	if skew := list[0].SkewUs; skew < -415_000 || skew > -385_000 {
		t.Errorf("skew %d µs, want about -400 ms", skew)
	}
	for _, c := range list[1:] {
		if c.SkewUs < -15_000 || c.SkewUs > 15_000 || c.skewed() || c.MADUs > 20_000 {
			t.Errorf("%+v", c)
		}
	}
	if notes := skewNotes(list); len(notes) != 1 || !strings.Contains(notes[0], "fast seems") || !strings.Contains(notes[0], "ahead of") {
		t.Errorf("%q", notes)
	}
}

func TestSkewOfLogsWithoutStamps(t *testing.T) {
	var m skewMeter
	ended := time.Date(2026, 11, 19, 15, 0, 0, 0, time.UTC)
	m.add("a", ended, time.Time{})
	m.add("a", ended, time.UnixMilli(-1))
	if list := m.report(); len(list) != 0 {
		t.Errorf("%+v", list)
	}
	for i := range 2 * skewClocks {
		m.add(string(rune('a'+i)), ended, ended)
	}
	if list := m.report(); len(list) != skewClocks {
		t.Errorf("%d clocks are followed", len(list))
	}
}
