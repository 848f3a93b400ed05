package analyze

import (
	"fmt"
	"math"
	"time"

	"tailgate/internal/stats"
)

// A client is too slow when the p99 of its lag is over 5 ms and over 2 % of the gate's ttft limit.
const (
	lagFloorUs = 5_000
	lagShare   = 0.02
)

// A minute is spoilt when more than 1 % of its rows, and more than 3, were sent later than 1 s after its end.
const (
	minuteUs  = 60_000_000
	graceUs   = 1_000_000
	lateShare = 0.01
	lateRows  = 3
)

// validity returns why the run cannot be judged, and whether its validity was judged at all.
func (v *view) validity(ttftLimit time.Duration) (reasons []string, judged bool) {
	judged = true
	for _, in := range v.d.Inputs {
		switch {
		case !in.Folder:
			judged = false
		case in.Manifest == nil:
			reasons = append(reasons, "unfinished: "+in.Path+" has no manifest.json")
			reasons = append(reasons, in.Notes...)
		case in.Manifest.Run != nil:
			reasons = append(reasons, in.Manifest.Run.Invalid...)
		}
	}
	reasons = append(reasons, v.d.shardFaults(ttftLimit)...)
	if !judged {
		return reasons, len(reasons) > 0
	}
	return append(reasons, v.late(ttftLimit)...), true
}

// lagLimit is the lateness in µs that a client may have.
func lagLimit(ttftLimit time.Duration) float64 {
	return max(lagFloorUs, lagShare*float64(ttftLimit.Microseconds()))
}

// late holds the client's own lateness against its limits.
func (v *view) late(ttftLimit time.Duration) []string {
	var lags values
	type minute struct{ rows, late int }
	worst, spoilt := minute{}, 0
	for _, p := range v.periods {
		minutes := map[int64]minute{}
		for _, i := range v.rows[p.from:p.to] {
			sent, at := v.d.sent.at(i), v.d.scheduled.at(i)
			if sent == noTime {
				continue
			}
			lags = append(lags, float64(sent-at))
			k := int64(math.Floor(float64(at) / minuteUs))
			m := minutes[k]
			m.rows++
			if sent > (k+1)*minuteUs+graceUs {
				m.late++
			}
			minutes[k] = m
		}
		for _, m := range minutes {
			if float64(m.late) > max(lateShare*float64(m.rows), lateRows) {
				spoilt++
				if m.late > worst.late || m.late == worst.late && m.rows > worst.rows {
					worst = m
				}
			}
		}
	}
	var reasons []string
	limit := lagLimit(ttftLimit)
	if n := lags.count(); n > 0 {
		if p99 := lags.smallest(stats.Rank(n, .99))[0]; p99 > limit {
			reasons = append(reasons, fmt.Sprintf("the client was late: p99 of lag is %.4g ms, %.4g ms allowed", p99/1000, limit/1000))
		}
	}
	if spoilt > 0 {
		reasons = append(reasons, fmt.Sprintf("the client fell behind in %d minutes: in the worst, %d of %d requests were sent over 1 s after its end",
			spoilt, worst.late, worst.rows))
	}
	return reasons
}
