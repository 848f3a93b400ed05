package analyze

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tailgate/internal/parquetio"
	"tailgate/schemas"
)

// look is what one target showed at one instant, all its series together.
type look struct {
	at      int64 // µs since the schedule's zero
	target  int32
	waiting float64
}

// series is one canonical metric of one target in order of time, its label sets joined: shares by their maximum, all
// else by their sum.
type series struct {
	target, metric string
	at             []int64 // µs since the schedule's zero
	values         []float64
}

// loadTelemetry reads what the servers of a run folder showed into in, nothing where it has no telemetry. It is beside the
// results: a file that cannot be read is named as unchecked.
func (d *Data) loadTelemetry(ctx context.Context, dir string, in *Input) {
	path := filepath.Join(dir, schemas.TelemetryName)
	if _, err := os.Stat(path); err != nil {
		return
	}
	shown, err := readSeries(ctx, path)
	if err != nil {
		d.Unchecked = append(d.Unchecked, fmt.Sprintf("the servers' queues: %v", err))
		return
	}
	in.shown = shown
	for i, s := range shown {
		for k := range s.at {
			if s.metric == schemas.MetricRequestsWaiting {
				in.looks = append(in.looks, look{s.at[k], int32(i), s.values[k]})
			}
		}
	}
}

// readSeries reads the metrics that reports use, in order of target and metric.
func readSeries(ctx context.Context, path string) ([]series, error) {
	s, err := readSamples(ctx, path)
	if err != nil {
		return nil, err
	}
	used := make([]bool, len(s.metrics.Words))
	for i, name := range s.metrics.Words {
		used[i] = slices.Contains(serverSources, name)
	}
	index := map[[2]int32]int{}
	var out []series
	for i, at := range s.at {
		if s.metric[i] < 0 || s.target[i] < 0 || !used[s.metric[i]] {
			continue
		}
		key := [2]int32{s.target[i], s.metric[i]}
		k, ok := index[key]
		if !ok {
			k = len(out)
			index[key] = k
			out = append(out, series{target: s.targets.Words[s.target[i]], metric: s.metrics.Words[s.metric[i]]})
		}
		out[k].at, out[k].values = append(out[k].at, at), append(out[k].values, s.value[i])
	}
	for i := range out {
		out[i].settle()
	}
	slices.SortFunc(out, func(a, b series) int {
		return cmp.Or(cmp.Compare(a.target, b.target), cmp.Compare(a.metric, b.metric))
	})
	return out, nil
}

// settle puts the values in order of time and joins those of one instant.
func (s *series) settle() {
	if !slices.IsSorted(s.at) {
		order := make([]int, len(s.at))
		for i := range order {
			order[i] = i
		}
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(s.at[a], s.at[b]) })
		at, values := make([]int64, len(order)), make([]float64, len(order))
		for k, i := range order {
			at[k], values[k] = s.at[i], s.values[i]
		}
		s.at, s.values = at, values
	}
	share := strings.HasSuffix(s.metric, "_ratio")
	n := 0
	for i := range s.at {
		switch {
		case n == 0 || s.at[n-1] != s.at[i]:
			s.at[n], s.values[n] = s.at[i], s.values[i]
			n++
		case share:
			s.values[n-1] = max(s.values[n-1], s.values[i])
		default:
			s.values[n-1] += s.values[i]
		}
	}
	s.at, s.values = s.at[:n], s.values[:n]
}

// samples are the rows of a telemetry table as columns; metric and target are codes.
type samples struct {
	at               []int64
	value            []float64
	metric, target   []int32
	metrics, targets parquetio.Dict
}

func readSamples(ctx context.Context, path string) (*samples, error) {
	c, err := parquetio.OpenColumns(path)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	s := &samples{}
	codes := func(dict *parquetio.Dict, name string, to *[]int32) error {
		return c.Strings(ctx, name, dict, func(codes []int32) error {
			*to = append(*to, codes...)
			return nil
		})
	}
	if err := c.Int64s(ctx, "at_us", func(v []int64, _ []bool) error {
		s.at = append(s.at, v...)
		return nil
	}); err != nil {
		return nil, err
	}
	if err := c.Float64s(ctx, "value", func(v []float64, _ []bool) error {
		s.value = append(s.value, v...)
		return nil
	}); err != nil {
		return nil, err
	}
	if err := codes(&s.metrics, "metric", &s.metric); err != nil {
		return nil, err
	}
	if err := codes(&s.targets, "target", &s.target); err != nil {
		return nil, err
	}
	if n := len(s.at); len(s.value) != n || len(s.metric) != n || len(s.target) != n {
		return nil, fmt.Errorf("reading %s: columns of different lengths", path)
	}
	return s, nil
}

// waiting is the servers' queue on a grid, all targets together: each target's mean in a cell, or its last one where it
// was not looked at. It is null where the period's run has no telemetry.
func (v *view) waiting(p period, from, to, step int64) []float64 {
	clock := v.d.Inputs[v.d.input.at(v.rows[p.from])].clock
	type cell struct {
		sum float64
		n   int
	}
	targets := map[[2]int32][]cell{} // by input and target: shards may look at one target each for itself
	cells := int((to-from)/step) + 1
	for i, in := range v.d.Inputs {
		if in.clock != clock {
			continue
		}
		for _, l := range in.looks {
			if l.at < from || l.at > to {
				continue
			}
			key := [2]int32{int32(i), l.target}
			if targets[key] == nil {
				targets[key] = make([]cell, cells)
			}
			c := &targets[key][(l.at-from)/step]
			c.sum, c.n = c.sum+l.waiting, c.n+1
		}
		if len(in.looks) > 0 {
			break // the other shards saw the same queues
		}
	}
	if len(targets) == 0 {
		return nil
	}
	out := make([]float64, cells)
	for _, list := range targets {
		last := 0.0
		for i, c := range list {
			if c.n > 0 {
				last = c.sum / float64(c.n)
			}
			out[i] += last
		}
	}
	return out
}
