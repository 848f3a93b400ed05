package profile

import (
	"fmt"
	"math"
	"slices"

	"tailgate/internal/chart"
	"tailgate/internal/stats"
	"tailgate/schemas"
)

// latencyShares are the quantiles of the page.
var latencyShares = [...]float64{.5, .9, .95, .99}

// latencyFigure tells what production itself took.
func (p *Profile) latencyFigure() figure {
	f := figure{ID: "latency", Title: "Latencies of production"}
	if len(p.Latency) == 0 {
		f.Missing = "No latencies: they come from a lake whose gateways tell them, and no trace has them."
		return f
	}
	f.Notes = []string{"As the gateways told them, of answered requests of known input length. ttft: arrival to the first token. duration: to the end. " +
		"tpot: what lies between, by output token. A quantile is the upper border of its bin, which is at most 1/16 wide."}
	for _, dim := range latencyDims {
		c := &chart.Chart{Title: dim, What: "share of requests that took no longer, by input length", XLabel: "seconds", YLabel: "share of requests", LogX: true, Shares: true}
		g := grid{Title: "Numbers of " + dim, Head: []string{"class", "input from", "below", "requests", "p50 (s)", "p90", "p95", "p99"}}
		for _, part := range latencyParts(p.Latency, dim) {
			part.row(&g)
			if part.key.Class != All {
				continue
			}
			var bins []bin
			for _, r := range part.rows {
				bins = append(bins, bin{max(float64(r.LoUs), onLog) / 1e6, float64(r.HiUs) / 1e6, r.N})
			}
			c.Lines = append(c.Lines, cumulative(inputRange(part.rows[0]), bins))
		}
		if len(g.Rows) > 0 {
			f.draw(c)
			f.Tables = append(f.Tables, g)
		}
	}
	return f
}

func inputRange(r schemas.ProfileLatency) string {
	if r.InHi == math.MaxInt32 {
		return fmt.Sprintf("input from %s", group3(int64(r.InLo)))
	}
	return fmt.Sprintf("input %s to %s", group3(int64(r.InLo)), group3(int64(r.InHi)-1))
}

// latencyPart is the bins of a class and a range of input lengths.
type latencyPart struct {
	key  schemas.ProfileKey
	rows []schemas.ProfileLatency
	n    int64
}

// latencyParts splits the rows of a dimension, which are in order.
func latencyParts(rows []schemas.ProfileLatency, dim string) []*latencyPart {
	var out []*latencyPart
	for _, r := range rows {
		if r.Dim != dim {
			continue
		}
		if k := len(out) - 1; k < 0 || out[k].key.Class != r.Class || out[k].rows[0].InLo != r.InLo {
			out = append(out, &latencyPart{key: r.ProfileKey})
		}
		part := out[len(out)-1]
		part.rows, part.n = append(part.rows, r), part.n+r.N
	}
	return out
}

func (l *latencyPart) row(g *grid) {
	class := label(l.key.Class)
	if l.key.Class == All {
		class = "all"
	}
	to := "no limit"
	values := []any{class, l.rows[0].InLo, to, l.n}
	if l.rows[0].InHi != math.MaxInt32 {
		values[2] = l.rows[0].InHi
	}
	for _, share := range latencyShares {
		values = append(values, l.quantile(share))
	}
	g.row(values...)
}

// quantile is the nearest rank, in seconds.
func (l *latencyPart) quantile(share float64) float64 {
	rank, seen := int64(stats.Rank(int(l.n), share)), int64(0)
	k := slices.IndexFunc(l.rows, func(r schemas.ProfileLatency) bool {
		seen += r.N
		return seen >= rank
	})
	return float64(l.rows[k].HiUs) / 1e6
}
