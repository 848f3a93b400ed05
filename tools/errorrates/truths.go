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

// truths are printed by `go run ./tools/errorrates -truth 40`: 200 hours at each of 10 rates and 2 loads.
var truths = map[string]truth{
	"E1P": {shares: map[float64]float64{.05: .818, .025: .78, .0125: .75, .01: .739, .005: .72, .0025: .70, .001: .67}, p95: [2]float64{1621, 6024}},
	"E1G": {shares: map[float64]float64{.05: .692, .025: .635, .0125: .59, .01: .573, .005: .54, .0025: .50, .001: .45}, p95: [2]float64{4754, 1.285e+04}},
	"E2P": {shares: map[float64]float64{.05: .911, .025: .892, .0125: .873, .01: .868, .005: .855, .0025: .84, .001: .82}, p95: [2]float64{300, 1800}},
	"E2G": {shares: map[float64]float64{.05: .818, .025: .78, .0125: .745, .01: .734, .005: .70, .0025: .67, .001: .63}, p95: [2]float64{1800, 5000}},
}
