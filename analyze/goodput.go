package analyze

import (
	"math"

	"tailgate/internal/stats"
)

// good says whether a row is ok and keeps every latency limit of the gate that holds for it; of several limits on
// one metric the loosest counts. A limit on gaps is kept when the request's own percentile of gaps keeps it.
func (v *view) good(g *Gate) func(i int32) bool {
	type place struct {
		by string
		m  metric
	}
	type bound struct {
		rule   Rule
		metric metric
		holds  func(i int32) bool
	}
	var bounds []bound
	at := map[place]int{}
	for _, rule := range g.Rules {
		if rule.kind != percentileRule || rule.metric == outputTokens || rule.metric == lag {
			continue
		}
		p := place{rule.By.json(), g.of(rule)}
		if k, ok := at[p]; !ok {
			at[p] = len(bounds)
			bounds = append(bounds, bound{rule, p.m, v.d.matcher(rule.By)})
		} else if rule.Limit.Value > bounds[k].rule.Limit.Value {
			bounds[k].rule = rule
		}
	}
	return func(i int32) bool {
		if !v.d.ok(i) {
			return false
		}
		for _, b := range bounds {
			if b.holds(i) && v.d.breaks(b.rule, b.metric, i) {
				return false
			}
		}
		return true
	}
}

// breaks says whether row i has metric m and breaks the limit of the rule with it.
func (d *Data) breaks(rule Rule, m metric, i int32) bool {
	if !m.pooled() {
		x := d.value(m, i)
		return !math.IsNaN(x) && rule.Limit.breaks(x)
	}
	gaps := d.gapsOf(m, i)
	over := 0
	for _, g := range gaps {
		if rule.Limit.breaks(float64(g)) {
			over++
		}
	}
	return over > len(gaps)-stats.Rank(len(gaps), rule.p)
}
