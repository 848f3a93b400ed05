package analyze

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"tailgate/internal/stats"
	"tailgate/schemas"
)

// Recovery is how long after the end of a declared burst a run was back to what it was before its first burst: the
// start of the first minute that lies inside the baseline's band, which reaches up to the level that 90 % of
// the baseline's minutes keep.
type Recovery struct {
	FromS  Figure `json:"from_s"` // since the schedule's zero
	ToS    Figure `json:"to_s"`
	Factor Figure `json:"factor"` // rate inside, of the rate outside all bursts
	// Seconds after the burst's end; null where the run ended, or the next burst began, before, and where the baseline
	// before the first burst is under 3 min.
	InflightS Figure `json:"inflight_s"` // by the mean of the requests in flight
	TTFTS     Figure `json:"ttft_s"`     // by the p90 of ttft, failures infinite
	Reason    string `json:"reason,omitempty"`
}

// Minutes are looked at every 5 s.
const (
	recoveryStepUs   = 5_000_000
	recoverySteps    = 12                  // of a minute
	recoveryBaseline = 2*recoverySteps + 1 // minutes at every step, of a baseline of 3 min
	recoveryShare    = .9
)

// recoveries tells of every declared burst; null without one.
func (v *view) recoveries() []Recovery {
	var out []Recovery
	for _, p := range v.periods {
		bursts := slices.Clone(v.burstsOf(p))
		slices.SortFunc(bursts, func(a, b schemas.BurstSpan) int { return cmp.Compare(a.FromUs, b.FromUs) })
		if len(bursts) > 0 {
			out = append(out, v.recoveriesOf(p, bursts)...)
		}
	}
	return out
}

func (v *view) recoveriesOf(p period, bursts []schemas.BurstSpan) []Recovery {
	cells := int((p.end - p.start) / recoveryStepUs)
	inflight := minutesOf(v.occupied(p, p.start, recoveryStepUs, cells).means())
	ttft := v.ttftByMinute(p, cells)
	calm := int((bursts[0].FromUs-p.start)/recoveryStepUs) - recoverySteps + 1 // minutes that end before the first burst
	out := make([]Recovery, len(bursts))
	for i, b := range bursts {
		r := Recovery{FromS: Figure(float64(b.FromUs) / 1e6), ToS: Figure(float64(b.ToUs) / 1e6), Factor: v.factor(p, b, bursts), InflightS: unknown, TTFTS: unknown}
		until := p.end
		if i+1 < len(bursts) {
			until = min(until, bursts[i+1].FromUs)
		}
		r.InflightS = back(inflight, calm, p.start, b.ToUs, until)
		r.TTFTS = back(ttft, calm, p.start, b.ToUs, until)
		switch {
		case calm < recoveryBaseline:
			r.Reason = "the baseline before the first burst is under 3 min"
		case !r.InflightS.Known() || !r.TTFTS.Known():
			r.Reason = fmt.Sprintf("not back within the %.3g min that follow", float64(until-b.ToUs)/6e7)
		}
		out[i] = r
	}
	return out
}

// back finds the first minute after the burst that is inside the band, in s after its end. levels hold one value for
// the minute that begins at each step.
func back(levels []float64, calm int, start, burstEnd, until int64) Figure {
	if calm < recoveryBaseline || calm > len(levels) {
		return unknown
	}
	base := slices.Sorted(slices.Values(levels[:calm]))
	band := base[stats.Rank(calm, recoveryShare)-1]
	if math.IsInf(band, 1) {
		return unknown
	}
	for k := max(0, int((burstEnd-start+recoveryStepUs-1)/recoveryStepUs)); k < len(levels); k++ {
		at := start + int64(k)*recoveryStepUs
		if at+recoverySteps*recoveryStepUs > until {
			break
		}
		if levels[k] <= band {
			return Figure(float64(at-burstEnd) / 1e6)
		}
	}
	return unknown
}

// minutesOf takes means of the cells of each minute, one minute at every cell.
func minutesOf(cells []float64) []float64 {
	var out []float64
	for k := 0; k+recoverySteps <= len(cells); k++ {
		out = append(out, stats.Mean(cells[k:k+recoverySteps]))
	}
	return out
}

// ttftByMinute is the p90 of ttft of the requests scheduled in each minute, one minute at every cell; +Inf where most
// failed, 0 where none was scheduled.
func (v *view) ttftByMinute(p period, cells int) []float64 {
	rows := v.rows[p.from:p.to]
	var out []float64
	from, to := 0, 0
	for k := 0; k+recoverySteps <= cells; k++ {
		begin := p.start + int64(k)*recoveryStepUs
		end := begin + recoverySteps*recoveryStepUs
		for from < len(rows) && v.d.scheduled.at(rows[from]) < begin {
			from++
		}
		for to < len(rows) && v.d.scheduled.at(rows[to]) < end {
			to++
		}
		s := v.d.rowSample(rows[from:to], ttft)
		level := 0.0
		if n := s.size(); n > 0 {
			level = s.smallest(stats.Rank(n, recoveryShare))[0]
		}
		out = append(out, level)
	}
	return out
}

// factor is the rate inside a burst over the rate outside all bursts; unknown where there is no outside.
func (v *view) factor(p period, b schemas.BurstSpan, all []schemas.BurstSpan) Figure {
	inside, outside := 0, 0
	rest := p.end - p.start
	for _, o := range all {
		rest -= max(0, min(o.ToUs, p.end)-max(o.FromUs, p.start))
	}
	for _, i := range v.rows[p.from:p.to] {
		at := v.d.scheduled.at(i)
		switch in := func(o schemas.BurstSpan) bool { return at >= o.FromUs && at < o.ToUs }; {
		case in(b):
			inside++
		case !slices.ContainsFunc(all, in):
			outside++
		}
	}
	length := min(b.ToUs, p.end) - max(b.FromUs, p.start)
	if outside == 0 || rest <= 0 || length <= 0 {
		return unknown
	}
	return Figure(float64(inside) / float64(length) / (float64(outside) / float64(rest)))
}

// text is the recovery for people.
func (r Recovery) text() string {
	s := fmt.Sprintf("burst from %.4g to %.4g min", float64(r.FromS)/60, float64(r.ToS)/60)
	if r.Factor.Known() {
		s += fmt.Sprintf(", %.3g times the rate", float64(r.Factor))
	}
	for _, t := range []struct {
		what string
		s    Figure
	}{{"requests in flight", r.InflightS}, {"ttft", r.TTFTS}} {
		if t.s.Known() {
			s += fmt.Sprintf("; %s back after %.0f s", t.what, max(0, float64(t.s)))
		} else {
			s += "; " + t.what + " not seen back"
		}
	}
	if r.Reason != "" {
		s += " (" + r.Reason + ")"
	}
	return s
}

// textCourse writes what was found in the course of the run: a cold start, and the ways back from bursts.
func (r *Report) textCourse(b *bytes.Buffer) {
	if lines := r.course(); len(lines) > 0 {
		fmt.Fprintf(b, "\ncourse of the run:\n  %s\n", strings.Join(lines, "\n  "))
	}
}

// course tells of a cold start and of the recoveries from bursts.
func (r *Report) course() []string {
	var lines []string
	if r.Warmup != nil && r.Warmup.ColdStart {
		lines = append(lines, r.Warmup.text())
	}
	for _, recovery := range r.Recoveries {
		lines = append(lines, recovery.text())
	}
	return lines
}

// RecoveryFrom is the recovery of one run from something that happened at an instant since the schedule's zero, such as
// the loss of a replica; false where nothing was measured.
func (d *Data) RecoveryFrom(at time.Duration) (Recovery, bool) {
	v := newView(d, 0, false)
	if len(v.periods) == 0 {
		return Recovery{}, false
	}
	us := at.Microseconds()
	r := v.recoveriesOf(v.periods[0], []schemas.BurstSpan{{FromUs: us, ToUs: us + 1}})[0]
	r.Factor = unknown
	return r, true
}

// SuccessFrom counts the rows of one run that are scheduled from an instant on, and those among them that are ok.
func (d *Data) SuccessFrom(at time.Duration) (ok, n int) {
	for _, i := range newView(d, at, false).rows {
		n++
		if d.ok(i) {
			ok++
		}
	}
	return ok, n
}
