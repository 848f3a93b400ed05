package analyze

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"sort"

	"tailgate/schemas"
)

// kvFull is the share of KV memory in use above which it counts as full.
const kvFull = .95

// gauges are what one target showed, look by look. NaN is what a look did not tell.
type gauges struct {
	at                      []int64
	kv, waiting, preempted  []float64
	full                    []int32 // looks before each at which KV was full
	queued                  []int32 // … at which requests waited while KV was not full
	restarts                []int64 // instants of looks after a restart
	hasKV, hasWait, hasPrem bool
}

// readGauges reads the telemetry of the first input of the clock that has some.
func (s *scene) readGauges(ctx context.Context, clock int, clocks []int, out *Explanation) error {
	for k, in := range s.x.v.d.Inputs {
		if clocks[k] != clock || !in.Folder {
			continue
		}
		path := filepath.Join(in.Path, schemas.TelemetryName)
		if _, err := os.Stat(path); err != nil {
			continue
		}
		t, err := readSamples(ctx, path)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			out.Unchecked = append(out.Unchecked, fmt.Sprintf("what the servers showed: %v", err))
			continue
		}
		s.gauges = s.sort(t)
		return nil
	}
	return nil
}

// sort sorts samples by target. Where no target of the telemetry is one that requests went to, as behind a gateway, all of
// them stand together: the fullest KV, the sums of the others.
func (s *scene) sort(t *samples) map[int32]*gauges {
	codes := make([]int32, len(t.targets.Words))
	known := false
	for c, name := range t.targets.Words {
		codes[c] = noWord
		for code, word := range s.x.v.d.target.dict.Words {
			if word == name {
				codes[c], known = int32(code), true
			}
		}
	}
	out := map[int32]*gauges{}
	started := map[int32]float64{}
	for i, metric := range t.metric {
		code := codes[t.target[i]]
		if known && code == noWord {
			continue // an exporter beside the targets, or the client itself
		}
		name, value := t.metrics.Words[metric], t.value[i]
		switch name {
		case schemas.MetricKVUsedRatio, schemas.MetricPreemptions, schemas.MetricRequestsWaiting, schemas.MetricProcessStart:
		default:
			continue
		}
		g := out[code]
		if g == nil {
			g = &gauges{}
			out[code] = g
		}
		g.add(name, t.at[i], value)
		if name == schemas.MetricProcessStart && known {
			if before, ok := started[code]; ok && before != value {
				g.restarts = append(g.restarts, t.at[i])
			}
			started[code] = value
		}
	}
	for _, g := range out {
		g.finish()
	}
	return out
}

// add takes one series of one look; several series of a metric are joined.
func (g *gauges) add(metric string, at int64, value float64) {
	if n := len(g.at); n == 0 || g.at[n-1] != at {
		g.at = append(g.at, at)
		g.kv, g.waiting, g.preempted = append(g.kv, math.NaN()), append(g.waiting, math.NaN()), append(g.preempted, math.NaN())
	}
	last := len(g.at) - 1
	sum := func(to *float64) {
		if math.IsNaN(*to) {
			*to = 0
		}
		*to += value
	}
	switch metric {
	case schemas.MetricKVUsedRatio:
		g.hasKV = true
		if !(g.kv[last] >= value) {
			g.kv[last] = value
		}
	case schemas.MetricRequestsWaiting:
		g.hasWait = true
		sum(&g.waiting[last])
	case schemas.MetricPreemptions:
		g.hasPrem = true
		sum(&g.preempted[last])
	}
}

// finish counts looks, so that any window is answered by a difference. A counter that goes back is a restart.
func (g *gauges) finish() {
	g.full, g.queued = make([]int32, len(g.at)+1), make([]int32, len(g.at)+1)
	for i := range g.at {
		g.full[i+1], g.queued[i+1] = g.full[i], g.queued[i]
		if g.kv[i] >= kvFull {
			g.full[i+1]++
		} else if g.waiting[i] >= 1 {
			g.queued[i+1]++
		}
		if i > 0 && g.preempted[i] < g.preempted[i-1] {
			g.restarts = append(g.restarts, g.at[i])
		}
	}
}

// lookUs is how far apart looks are; a window is widened by so much on either side.
const lookUs = 1_000_000

// looks are the looks [a, b) around a window.
func (g *gauges) looks(from, to int64) (a, b int) {
	a = sort.Search(len(g.at), func(i int) bool { return g.at[i] >= from-lookUs })
	b = sort.Search(len(g.at), func(i int) bool { return g.at[i] > to+lookUs })
	return a, b
}

// preemptions counts those between the looks around a window.
func (g *gauges) preemptions(from, to int64) float64 {
	a, b := g.looks(from, to)
	if b-a < 2 || math.IsNaN(g.preempted[a]) || math.IsNaN(g.preempted[b-1]) {
		return 0
	}
	return g.preempted[b-1] - g.preempted[a]
}

// gaugesOf are those of the act's target, else of all targets together; null without any.
func (s *scene) gaugesOf(a *act) *gauges {
	if g, ok := s.gauges[a.target]; ok {
		return g
	}
	return s.gauges[noWord]
}
