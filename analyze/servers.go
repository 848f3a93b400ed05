package analyze

import (
	"math"
	"slices"

	"tailgate/schemas"
)

// ServerFacts sums up what one target showed of itself over the measured part of the runs. It explains a verdict and
// decides none.
type ServerFacts struct {
	Target  string        `json:"target"`
	Metrics ServerMetrics `json:"metrics"`
}

// ServerMetrics holds the metrics that a target told, in the order of the report.
type ServerMetrics []ServerMetric

// ServerMetric is one of them, in the unit that its name ends in: shares from 0 to 1, *_per_s rates.
type ServerMetric struct {
	Metric string `json:"-"`
	N      int    `json:"n"`     // looks
	Mean   Figure `json:"mean"`  // of looks; of rates and shares of counters over the whole time
	Max    Figure `json:"max"`   // null for shares of counters
	Total  Figure `json:"total"` // what a counter grew by; null for others
}

// MarshalJSON writes the metrics as an object in the order of the report.
func (ms ServerMetrics) MarshalJSON() ([]byte, error) {
	return objectOf(ms, func(m ServerMetric) string { return m.Metric })
}

// derivation says how a shown metric follows from what is recorded.
type derivation int

const (
	level     derivation = iota // as it is
	perSecond                   // growth of a counter over time
	growthOf                    // growth of the first counter over that of the second
	restOf                      // 1 − growth of the first counter over that of the second
	partOf                      // the first over the sum of both
)

// serverMetric is one metric of the servers as reports show it.
type serverMetric struct {
	name, title, unit string
	how               derivation
	from              []string // canonical names of docs/telemetry.md
	share             bool     // from 0 to 1
	hint              string   // how to have it recorded
}

const (
	engineHint = "the engine's /metrics"
	gpuHint    = "a DCGM exporter: --telemetry gpu=http://host:9400/metrics"
	nodeHint   = "a node exporter: --telemetry node=http://host:9100/metrics"
)

// serverMetrics are in the order of the report: load, memory, what the cache saves, work done, hardware.
var serverMetrics = []serverMetric{
	{"requests_running", "Requests running", "requests", level, []string{schemas.MetricRequestsRunning}, false, engineHint},
	{"requests_waiting", "Requests waiting", "requests", level, []string{schemas.MetricRequestsWaiting}, false, engineHint},
	{"kv_used_ratio", "KV cache in use", "share of KV blocks", level, []string{schemas.MetricKVUsedRatio}, true, engineHint},
	{"preemptions_per_s", "Preemptions", "requests/s", perSecond, []string{schemas.MetricPreemptions}, false, engineHint},
	{"prefix_hit_ratio", "Prefix cache hits", "share of prompt tokens", growthOf, []string{schemas.MetricPrefixHitTokens, schemas.MetricPrefixQueryTokens}, true, engineHint},
	{"generation_tokens_per_s", "Tokens generated", "tokens/s", perSecond, []string{schemas.MetricGenerationTokens}, false, engineHint},
	{"prompt_tokens_per_s", "Prompt tokens", "tokens/s", perSecond, []string{schemas.MetricPromptTokens}, false, engineHint},
	{"gpu_busy_ratio", "GPU busy", "share of time", level, []string{schemas.MetricGPUBusy}, true, gpuHint},
	{"gpu_sm_active_ratio", "GPU multiprocessors active", "share of time", level, []string{schemas.MetricGPUSMActive}, true, gpuHint},
	{"gpu_tensor_active_ratio", "GPU tensor cores active", "share of time", level, []string{schemas.MetricGPUTensorActive}, true, gpuHint},
	{"gpu_dram_active_ratio", "HBM bandwidth in use", "share of time", level, []string{schemas.MetricGPUDRAMActive}, true, gpuHint},
	{"gpu_mem_used_ratio", "HBM in use", "share of memory", partOf, []string{schemas.MetricGPUMemUsed, schemas.MetricGPUMemFree}, true, gpuHint},
	{"gpu_power_w", "GPU power", "W", level, []string{schemas.MetricGPUPower}, false, gpuHint},
	{"node_cpu_busy_ratio", "CPU busy", "share of all cores", restOf, []string{schemas.MetricNodeCPUIdle, schemas.MetricNodeCPU}, true, nodeHint},
	{"process_cpu_cores", "CPU of the process", "cores", perSecond, []string{schemas.MetricProcessCPU}, false, engineHint},
}

// serverSources are the recorded metrics that reports use.
var serverSources = func() (out []string) {
	for _, m := range serverMetrics {
		out = append(out, m.from...)
	}
	return out
}()

// point is a value at an instant. For what follows from counters it is num over den between the instant before and this.
type point struct {
	at       int64
	num, den float64
}

func (p point) value() float64 { return p.num / p.den }

// points derives the metric from the series of one target in [from, to]. A counter that goes back has no growth there.
func (m serverMetric) points(shown []series, target string, from, to int64) []point {
	var src []*series
	for _, name := range m.from {
		i := slices.IndexFunc(shown, func(s series) bool { return s.target == target && s.metric == name })
		if i < 0 {
			return nil
		}
		src = append(src, &shown[i])
	}
	a := src[0]
	var out []point
	last := -1 // of a, within the time
	for i, at := range a.at {
		other := 0.0
		if len(src) > 1 {
			k, ok := slices.BinarySearch(src[1].at, at)
			if !ok {
				continue
			}
			other = src[1].values[k]
		}
		if at < from || at > to {
			continue
		}
		switch m.how {
		case level:
			out = append(out, point{at, a.values[i], 1})
		case partOf:
			out = append(out, point{at, a.values[i], a.values[i] + other})
		default:
			if last >= 0 {
				p := point{at, a.values[i] - a.values[last], float64(at-a.at[last]) / 1e6}
				if m.how != perSecond {
					before, _ := slices.BinarySearch(src[1].at, a.at[last])
					p.den = other - src[1].values[before]
				}
				if m.how == restOf {
					p.num = p.den - p.num
				}
				if p.num >= 0 && p.den >= 0 {
					out = append(out, p)
				}
			}
			last = i
		}
	}
	return out
}

// seen are the series of the period's run: shards look at the same servers, so one of them tells.
func (v *view) seen(p period) []series {
	clock := v.d.Inputs[v.d.input.at(v.rows[p.from])].clock
	for _, in := range v.d.Inputs {
		if in.clock == clock && len(in.shown) > 0 {
			return in.shown
		}
	}
	return nil
}

// targets names those that the runs looked at, in order.
func (v *view) targets() []string {
	var out []string
	for _, p := range v.periods {
		for _, s := range v.seen(p) {
			if !slices.Contains(out, s.target) {
				out = append(out, s.target)
			}
		}
	}
	slices.Sort(out)
	return out
}

// servers sums up every target; null without telemetry.
func (v *view) servers() []ServerFacts {
	var out []ServerFacts
	for _, target := range v.targets() {
		f := ServerFacts{Target: target}
		for _, m := range serverMetrics {
			var all []point
			for _, p := range v.periods {
				all = append(all, m.points(v.seen(p), target, p.start, p.close())...)
			}
			if len(all) > 0 {
				f.Metrics = append(f.Metrics, m.sum(all))
			}
		}
		out = append(out, f)
	}
	return out
}

// close is when the last answer of the period had come, at least its last arrival.
func (p period) close() int64 { return max(p.last, p.done) }

func (m serverMetric) sum(all []point) ServerMetric {
	s := ServerMetric{Metric: m.name, N: len(all), Mean: unknown, Max: unknown, Total: unknown}
	num, den, most := 0.0, 0.0, math.Inf(-1)
	for _, p := range all {
		num, den = num+p.num, den+p.den
		if p.den > 0 {
			most = max(most, p.value())
		}
	}
	if den > 0 {
		s.Mean = Figure(num / den)
		if m.how == level || m.how == perSecond || m.how == partOf {
			s.Max = Figure(most)
		}
	}
	if m.how == perSecond {
		s.Total = Figure(num)
	}
	return s
}
