package telemetry

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Sample is one series of an exposition. Name has its colons as underscores, since the same engine exports vllm:x or
// vllm_x by what the client accepts; histograms and summaries come as their _bucket, _sum and _count.
type Sample struct {
	Name       string
	Labels     map[string]string
	Value      float64
	Cumulative bool // a counter, or part of a histogram
}

// missing is the least of the values near 2^63 by which DCGM says that it knows none.
const missing = 1 << 62

// Parse reads the text format of Prometheus, in order of names. What has no value (NaN, or a blank of DCGM) is left
// out, and so are the _created stamps of every counter.
func Parse(r io.Reader) ([]Sample, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(r)
	if err != nil {
		return nil, fmt.Errorf("reading metrics: %w", err)
	}
	var out []Sample
	for _, family := range slices.Sorted(maps.Keys(families)) {
		name := strings.ReplaceAll(family, ":", "_")
		if strings.HasSuffix(name, "_created") {
			continue
		}
		for _, m := range families[family].GetMetric() {
			out = appendMetric(out, name, families[family].GetType(), m)
		}
	}
	return out, nil
}

func appendMetric(out []Sample, name string, kind dto.MetricType, m *dto.Metric) []Sample {
	labels := make(map[string]string, len(m.GetLabel()))
	for _, l := range m.GetLabel() {
		labels[l.GetName()] = l.GetValue()
	}
	add := func(name string, labels map[string]string, v float64, cumulative bool) {
		if !math.IsNaN(v) && !math.IsInf(v, 0) && v < missing {
			out = append(out, Sample{name, labels, v, cumulative})
		}
	}
	switch kind {
	case dto.MetricType_COUNTER:
		add(name, labels, m.GetCounter().GetValue(), true)
	case dto.MetricType_GAUGE:
		add(name, labels, m.GetGauge().GetValue(), false)
	case dto.MetricType_HISTOGRAM:
		h := m.GetHistogram()
		for _, b := range h.GetBucket() {
			with := maps.Clone(labels)
			with["le"] = strconv.FormatFloat(b.GetUpperBound(), 'g', -1, 64)
			add(name+"_bucket", with, float64(b.GetCumulativeCount()), true)
		}
		add(name+"_sum", labels, h.GetSampleSum(), true)
		add(name+"_count", labels, float64(h.GetSampleCount()), true)
	case dto.MetricType_SUMMARY:
		add(name+"_sum", labels, m.GetSummary().GetSampleSum(), true)
		add(name+"_count", labels, float64(m.GetSummary().GetSampleCount()), true)
	default:
		// node_exporter's node_netstat_* are untyped and cumulative.
		add(name, labels, m.GetUntyped().GetValue(), strings.HasPrefix(name, "node_netstat_"))
	}
	return out
}
