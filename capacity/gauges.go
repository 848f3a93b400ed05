package capacity

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"time"

	"tailgate/internal/fault"
	"tailgate/internal/parquetio"
	"tailgate/schemas"
)

// Gauges are what the replicas of a cluster showed while a run was measured; −1 = nobody told it. They explain a point
// and decide nothing.
type Gauges struct {
	Running     float64 `json:"running"` // mean, all replicas
	Waiting     float64 `json:"waiting"`
	KVUsage     float64 `json:"kv_usage"`    // mean over replicas and time, share
	GPUUtil     float64 `json:"gpu_util"`    // mean, share
	Preemptions float64 `json:"preemptions"` // in the time
	PrefixHits  float64 `json:"prefix_hits"` // share of the asked prefix tokens
	RSSBytes    float64 `json:"rss_bytes"`   // of the serving processes, mean of the sum
	HBMBytes    float64 `json:"hbm_bytes"`   // GPU memory in use, mean of the sum
	// Connections are those that the client opened in the time: where the load is steady, reconnects.
	Connections float64 `json:"connections_opened"`
}

// sample is the part of a telemetry row that gauges are made of.
type sample struct {
	AtUs   int64   `parquet:"at_us"`
	Target string  `parquet:"target,dict"`
	Metric string  `parquet:"metric,dict"`
	Value  float64 `parquet:"value"`
}

// gaugeSources are the metrics that gauges are made of.
var gaugeSources = []string{
	schemas.MetricRequestsRunning, schemas.MetricRequestsWaiting, schemas.MetricKVUsedRatio, schemas.MetricGPUBusy,
	schemas.MetricProcessRSS, schemas.MetricGPUMemUsed, schemas.MetricPreemptions, schemas.MetricPrefixQueryTokens,
	schemas.MetricPrefixHitTokens, schemas.MetricClientConnections,
}

// telemetryOf reads the samples of a run that gauges are made of; none where the run has no telemetry.
func telemetryOf(dir string) ([]sample, error) {
	r, err := parquetio.Open[sample](filepath.Join(dir, schemas.TelemetryName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var out []sample
	batch := make([]sample, 4096)
	for {
		n, err := r.Read(batch)
		for _, s := range batch[:n] {
			if slices.Contains(gaugeSources, s.Metric) && (s.Target != schemas.TargetClient || s.Metric == schemas.MetricClientConnections) {
				out = append(out, s)
			}
		}
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fault.Mark(fmt.Errorf("reading telemetry: %w", err), fault.Data, "")
		}
	}
}

// gaugesOf are the gauges of [from, to).
func gaugesOf(samples []sample, from, to time.Duration) Gauges {
	byMetric := map[string][]sample{}
	for _, s := range samples {
		if s.AtUs >= from.Microseconds() && s.AtUs < to.Microseconds() {
			byMetric[s.Metric] = append(byMetric[s.Metric], s)
		}
	}
	g := Gauges{
		Running:     sumOfMeans(byMetric[schemas.MetricRequestsRunning]),
		Waiting:     sumOfMeans(byMetric[schemas.MetricRequestsWaiting]),
		KVUsage:     plainMean(byMetric[schemas.MetricKVUsedRatio]),
		GPUUtil:     plainMean(byMetric[schemas.MetricGPUBusy]),
		Preemptions: growth(byMetric[schemas.MetricPreemptions]),
		PrefixHits:  -1,
		RSSBytes:    sumOfMeans(byMetric[schemas.MetricProcessRSS]),
		HBMBytes:    sumOfMeans(byMetric[schemas.MetricGPUMemUsed]),
		Connections: growth(byMetric[schemas.MetricClientConnections]),
	}
	if asked := growth(byMetric[schemas.MetricPrefixQueryTokens]); asked > 0 {
		g.PrefixHits = math.Max(0, growth(byMetric[schemas.MetricPrefixHitTokens])) / asked
	}
	return g
}

func plainMean(s []sample) float64 {
	if len(s) == 0 {
		return -1
	}
	sum := 0.0
	for _, x := range s {
		sum += x.Value
	}
	return sum / float64(len(s))
}

// sumOfMeans adds the means over time of all targets, each of which may have several series at an instant.
func sumOfMeans(s []sample) float64 {
	if len(s) == 0 {
		return -1
	}
	type instants struct {
		sum  float64
		seen map[int64]bool
	}
	targets := map[string]*instants{}
	for _, x := range s {
		t := targets[x.Target]
		if t == nil {
			t = &instants{seen: map[int64]bool{}}
			targets[x.Target] = t
		}
		t.sum += x.Value
		t.seen[x.AtUs] = true
	}
	total := 0.0
	for _, t := range targets {
		total += t.sum / float64(len(t.seen))
	}
	return total
}

// growth is by how much the counters of all targets grew from their first look to their last; −1 without two looks.
func growth(s []sample) float64 {
	byTarget := map[string][]sample{}
	for _, x := range s {
		byTarget[x.Target] = append(byTarget[x.Target], x)
	}
	total, known := 0.0, false
	for _, list := range byTarget {
		slices.SortFunc(list, func(a, b sample) int { return cmp.Compare(a.AtUs, b.AtUs) })
		first, last := list[0].AtUs, list[len(list)-1].AtUs
		if first == last {
			continue
		}
		known = true
		for _, x := range list {
			switch x.AtUs {
			case first:
				total -= x.Value
			case last:
				total += x.Value
			}
		}
	}
	if !known {
		return -1
	}
	return total
}
