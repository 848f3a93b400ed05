package telemetry

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"tailgate/schemas"
)

// Value is one canonical series at one instant.
type Value struct {
	Metric     string
	Labels     map[string]string // engine, model, role, gpu; reason, le
	Value      float64
	Cumulative bool
}

// mapper finds the sources of a raw name.
type mapper struct{ byName map[string][]source }

func newMapper() *mapper {
	m := &mapper{byName: map[string][]source{}}
	add := func(s source) { m.byName[s.name] = append(m.byName[s.name], s) }
	for _, s := range sources {
		add(s)
	}
	for _, s := range histograms {
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			part := s
			part.name, part.to = s.name+suffix, s.to+suffix
			if suffix == "_bucket" {
				part.keep = only("le", "le")
			}
			add(part)
		}
	}
	return m
}

// canonical maps the samples of one endpoint. Series that differ only in labels that are not canonical are joined: sums of
// counts, the maximum of shares. A metric that the endpoint has under several names is taken from the best of them. The
// result is in order of metric and labels.
func (m *mapper) canonical(samples []Sample) []Value {
	rank := map[string]int{}
	for i := range samples {
		for _, s := range m.byName[samples[i].Name] {
			if r, ok := rank[s.to]; s.matches(&samples[i]) && (!ok || s.rank < r) {
				rank[s.to] = s.rank
			}
		}
	}
	values := map[string]*Value{}
	for i := range samples {
		for _, s := range m.byName[samples[i].Name] {
			if s.matches(&samples[i]) && s.rank == rank[s.to] {
				join(values, &s, &samples[i])
			}
		}
	}
	capacity(values, samples)
	out := make([]Value, 0, len(values))
	for _, key := range slices.Sorted(maps.Keys(values)) {
		out = append(out, *values[key])
	}
	return out
}

// join adds a sample to its canonical series.
func join(values map[string]*Value, s *source, sample *Sample) {
	v := Value{Metric: s.to, Labels: map[string]string{}, Value: sample.Value, Cumulative: sample.Cumulative}
	if s.scale != 0 {
		v.Value *= s.scale
	}
	for raw, value := range sample.Labels {
		name, ok := common[raw]
		if kept, k := s.keep[raw]; k {
			name, ok = kept, true
		}
		if ok && value != "" {
			v.Labels[name] = value
		}
	}
	key := seriesKey(v.Metric, v.Labels)
	switch old, ok := values[key]; {
	case !ok:
		values[key] = &v
	case s.max:
		old.Value = max(old.Value, v.Value)
	default:
		old.Value += v.Value
	}
}

// capacity works out the KV capacity where an engine tells its block size and the number of blocks.
func capacity(values map[string]*Value, samples []Sample) {
	add := func(sample *Sample, tokens float64) {
		s := source{to: schemas.MetricKVCapacityTokens}
		join(values, &s, &Sample{Labels: sample.Labels, Value: tokens})
	}
	perBlock := 0.0
	for i := range samples {
		if samples[i].Name == "trtllm_kv_cache_tokens_per_block" {
			perBlock = samples[i].Value
		}
	}
	for i := range samples {
		switch s := &samples[i]; s.Name {
		case "vllm_cache_config_info":
			size, err1 := strconv.ParseFloat(s.Labels["block_size"], 64)
			blocks, err2 := strconv.ParseFloat(s.Labels["num_gpu_blocks"], 64)
			if err1 == nil && err2 == nil {
				add(s, size*blocks)
			}
		case "trtllm_kv_cache_max_blocks":
			if perBlock > 0 {
				add(s, s.Value*perBlock)
			}
		}
	}
}

// matches tells whether the sample has the labels that the source asks for.
func (s *source) matches(sample *Sample) bool {
	for label, want := range s.where {
		got := sample.Labels[label]
		switch {
		case strings.HasPrefix(want, "*"):
			if !strings.HasSuffix(got, want[1:]) {
				return false
			}
		case strings.HasSuffix(want, "*"):
			if !strings.HasPrefix(got, want[:len(want)-1]) {
				return false
			}
		case got != want:
			return false
		}
	}
	return true
}

// seriesKey tells series apart and sorts them: by metric, then by labels in order.
func seriesKey(metric string, labels map[string]string) string {
	var b strings.Builder
	b.WriteString(metric)
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		value := labels[name]
		if name == "le" {
			value = sortableBound(value)
		}
		b.WriteString("\x00" + name + "\x00" + value)
	}
	return b.String()
}

// sortableBound brings the bounds of a histogram in order.
func sortableBound(le string) string {
	v, err := strconv.ParseFloat(le, 64)
	if err != nil {
		return le
	}
	return strconv.FormatFloat(1e12+min(v, 1e11)*1e3, 'f', 6, 64)
}
