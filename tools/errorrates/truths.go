package main

import (
	"fmt"
	"strings"
)

// shares over the limit at which runs are judged: the limits of p95 and p99, their halves, quarters and tenths.
var shares = []float64{.05, .025, .0125, .01, .005, .0025, .001}

// coverageLoads are the loads, of capacity, at which intervals are held against the true p95.
var coverageLoads = [2]float64{.8, .9}

// truth is what long runs showed of a scenario.
type truth struct {
	shares map[float64]float64 // rate ÷ capacity by the share over the limit
	p95    [2]float64          // ms, at coverageLoads
}

func (t truth) literal() string {
	var parts []string
	for _, v := range shares {
		parts = append(parts, fmt.Sprintf("%g: %.4f", v, t.shares[v]))
	}
	return "map[float64]float64{" + strings.Join(parts, ", ") + "}"
}

// truths are printed by `go run ./tools/errorrates -truth 48`: 248 hours at each of 10 rates and 2 loads.
var truths = map[string]truth{
	"E1P": {shares: map[float64]float64{0.05: 0.8180, 0.025: 0.7837, 0.0125: 0.7517, 0.01: 0.7419, 0.005: 0.7122, 0.0025: 0.6840, 0.001: 0.6484}, p95: [2]float64{1592, 5464}},
	"E1G": {shares: map[float64]float64{0.05: 0.6890, 0.025: 0.6363, 0.0125: 0.5885, 0.01: 0.5740, 0.005: 0.5315, 0.0025: 0.4925, 0.001: 0.4458}, p95: [2]float64{5145, 1.321e+04}},
	"E2P": {shares: map[float64]float64{0.05: 0.9090, 0.025: 0.8900, 0.0125: 0.8720, 0.01: 0.8664, 0.005: 0.8494, 0.0025: 0.8329, 0.001: 0.8120}, p95: [2]float64{637.8, 1520}},
	"E2G": {shares: map[float64]float64{0.05: 0.8142, 0.025: 0.7777, 0.0125: 0.7421, 0.01: 0.7307, 0.005: 0.6959, 0.0025: 0.6616, 0.001: 0.6176}, p95: [2]float64{1688, 6617}},
}
