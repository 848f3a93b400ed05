package replay

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// MetricErrorRate is the one metric of an AbortRule that the client itself knows as a share: of failed requests among
// those that ended in the rule's time. Others are gauges (waiting, running, kv_usage … of the target; in_flight, backlog
// and sent_rate of the client), which must lie over the limit in every look of that time.
const MetricErrorRate = "error_rate"

// abortMinEnded is the least number of ended requests that an error rate is taken from.
const abortMinEnded = 10

// AbortRule stops a run to protect its target.
type AbortRule struct {
	Metric string
	Above  float64 // shares as shares
	For    time.Duration
	Text   string // as written
}

var abortForm = regexp.MustCompile(`^([a-z][a-z0-9_]*)\s*>\s*([0-9]*\.?[0-9]+)\s*(%?)\s+for\s+([0-9.]+(?:ms|s|m|h))$`)

// ParseAbortRule reads METRIC > NUMBER for TIME, such as "waiting > 500 for 60s" or "error_rate > 20% for 30s".
func ParseAbortRule(s string) (AbortRule, error) {
	m := abortForm.FindStringSubmatch(strings.TrimSpace(s))
	if m == nil {
		return AbortRule{}, fmt.Errorf("abort_if: %q is not METRIC > NUMBER for TIME, such as waiting > 500 for 60s", s)
	}
	r := AbortRule{Metric: m[1], Text: s}
	var err1, err2 error
	r.Above, err1 = strconv.ParseFloat(m[2], 64)
	r.For, err2 = time.ParseDuration(m[4])
	if m[3] == "%" {
		r.Above /= 100
	}
	if err1 != nil || err2 != nil || r.For < time.Second {
		return AbortRule{}, fmt.Errorf("abort_if: %q has no number, or a time below 1s", s)
	}
	if r.Metric == MetricErrorRate && r.Above >= 1 {
		return AbortRule{}, fmt.Errorf("abort_if: %q never holds: an error rate is a share, such as 20%%", s)
	}
	return r, nil
}

// abortWatch holds rules against one look a second.
type abortWatch struct {
	rules []AbortRule
	since []time.Duration // since when each gauge is over its limit; -1 = it is not
	looks []abortLook     // those of the longest rule
	keep  time.Duration
}

type abortLook struct {
	at         time.Duration
	ok, failed int64 // ended so far
}

func newAbortWatch(rules []AbortRule) *abortWatch {
	w := &abortWatch{rules: rules, since: make([]time.Duration, len(rules)), looks: []abortLook{{}}}
	for i, r := range rules {
		w.since[i] = -1
		w.keep = max(w.keep, r.For)
	}
	return w
}

// look returns the rule that has held for its time; "" = none. gauge tells a metric of now; false = not known, which
// ends the time for which it was over.
func (w *abortWatch) look(at time.Duration, ok, failed int64, gauge func(string) (float64, bool)) string {
	if at < 0 {
		return ""
	}
	w.looks = append(w.looks, abortLook{at, ok, failed})
	for len(w.looks) > 2 && w.looks[1].at <= at-w.keep {
		w.looks = w.looks[1:]
	}
	for i, r := range w.rules {
		if r.Metric == MetricErrorRate {
			if w.errorRate(at, r) > r.Above {
				return r.Text
			}
			continue
		}
		switch v, known := gauge(r.Metric); {
		case !known || v <= r.Above:
			w.since[i] = -1
		case w.since[i] < 0:
			w.since[i] = at
		case at-w.since[i] >= r.For:
			return r.Text
		}
	}
	return ""
}

// errorRate is the share of failures among the requests that ended in the rule's time, 0 while that time is not over
// or hardly any request ended.
func (w *abortWatch) errorRate(at time.Duration, r AbortRule) float64 {
	last := w.looks[len(w.looks)-1]
	from := w.looks[0]
	if at < r.For {
		return 0
	}
	for _, l := range w.looks {
		if l.at <= at-r.For {
			from = l
		}
	}
	ok, failed := last.ok-from.ok, last.failed-from.failed
	if ok+failed < abortMinEnded {
		return 0
	}
	return float64(failed) / float64(ok+failed)
}
