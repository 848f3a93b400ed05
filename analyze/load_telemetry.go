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
	c, err := parquetio.OpenColumns(path)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	var at []int64
	var values []float64
	var metric, target []int32
	var metrics, targets parquetio.Dict
	waiting := metrics.Code([]byte(waitingMetric))
	codes := func(dict *parquetio.Dict, name string, to *[]int32) error {
		return c.Strings(ctx, name, dict, func(codes []int32) error {
			*to = append(*to, codes...)
			return nil
		})
	}
	if err := c.Int64s(ctx, "at_us", func(v []int64, _ []bool) error {
		at = append(at, v...)
		return nil
	}); err != nil {
		return nil, err
	}
	if err := c.Float64s(ctx, "value", func(v []float64, _ []bool) error {
		values = append(values, v...)
		return nil
	}); err != nil {
		return nil, err
	}
	if err := codes(&metrics, "metric", &metric); err != nil {
		return nil, err
	}
	if err := codes(&targets, "target", &target); err != nil {
		return nil, err
	}
	if len(values) != len(at) || len(metric) != len(at) || len(target) != len(at) {
		return nil, fmt.Errorf("reading %s: columns of different lengths", path)
	}
	var out []look
	for i := range at {
		if metric[i] != waiting {
			continue
		}
		if n := len(out); n > 0 && out[n-1].at == at[i] && out[n-1].target == target[i] {
			out[n-1].waiting += values[i]
			continue
		}
		out = append(out, look{at[i], target[i], values[i]})
	}
	return out, nil
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
