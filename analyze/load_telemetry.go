package analyze

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"tailgate/internal/parquetio"
)

// telemetryName is the table of what the targets of a run showed each second.
const telemetryName = "telemetry.parquet"

// waitingMetric is the server's own queue in it.
const waitingMetric = "requests_waiting"

// look is what one target showed at one instant, all its series together.
type look struct {
	at      int64 // µs since the schedule's zero
	target  int32
	waiting float64
}

// loadTelemetry reads the servers' queues of a run folder, null where it has none. It is beside the results: a file that
// cannot be read is named as unchecked.
func (d *Data) loadTelemetry(ctx context.Context, dir string) []look {
	path := filepath.Join(dir, telemetryName)
	if _, err := os.Stat(path); err != nil {
		return nil
	}
	looks, err := readLooks(ctx, path)
	if err != nil {
		d.Unchecked = append(d.Unchecked, fmt.Sprintf("the servers' queues: %v", err))
		return nil
	}
	return looks
}

func readLooks(ctx context.Context, path string) ([]look, error) {
	s, err := readSamples(ctx, path)
	if err != nil {
		return nil, err
	}
	waiting := s.metrics.Code([]byte(waitingMetric))
	var out []look
	for i := range s.at {
		if s.metric[i] != waiting {
			continue
		}
		if n := len(out); n > 0 && out[n-1].at == s.at[i] && out[n-1].target == s.target[i] {
			out[n-1].waiting += s.value[i]
			continue
		}
		out = append(out, look{s.at[i], s.target[i], s.value[i]})
	}
	return out, nil
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
