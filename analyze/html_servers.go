package analyze

import (
	"fmt"
	"math"
	"slices"

	"tailgate/internal/chart"
)

// serversChapter shows what the targets told of themselves, a figure for each metric with a line for each target.
func (f *runFigures) serversChapter() chapter {
	c := chapter{ID: "servers", Title: "At the servers",
		Intro: "What each target told of itself each second. It explains a verdict and decides none."}
	if len(f.Servers) == 0 {
		c.Intro = "The runs have no telemetry: results were read without a run folder, the run was made with --no-telemetry, or its targets have no /metrics. " +
			"What the servers did is not known. tailgate replay records it each second; see --telemetry for GPUs and machines."
		return c
	}
	c.Intro += fmt.Sprintf(" Lines are the mean of each %s; of levels, what lies between the least and the largest look is shaded.", f.widthText())
	missing := map[string]bool{}
	for _, m := range serverMetrics {
		d := f.server(m)
		if d.SVG == "" {
			c.Missing = append(c.Missing, fmt.Sprintf("%s: no target tells it (%s).", m.title, m.hint))
			missing[m.name] = true
			continue
		}
		c.Drawings = append(c.Drawings, d)
	}
	return c
}

// server draws one metric of all targets.
func (f *runFigures) server(m serverMetric) drawing {
	var names []string
	for _, s := range f.Servers {
		if slices.ContainsFunc(s.Metrics, func(x ServerMetric) bool { return x.Metric == m.name }) {
			names = append(names, s.Target)
		}
	}
	c := f.empty(m.title, m.unit, m.title+" of each target over the run")
	c.Shares = m.share
	looks := 0
	var cells []levelCells
	for _, target := range names {
		own := newLevelCells(f.slices)
		for k, p := range f.view.periods {
			points := m.points(f.view.seen(p), target, p.start, p.close())
			looks += len(points)
			for _, x := range points {
				own.add(f.slice(k, x.at), x)
			}
		}
		if m.how == level || m.how == partOf {
			c.Ranges = append(c.Ranges, f.between(own, len(c.Lines)))
		}
		c.Lines = append(c.Lines, f.line(target, own.means()))
		cells = append(cells, own)
	}
	note := fmt.Sprintf("n = %s at %s.", counted(looks, "look", "looks"), counted(len(names), "target", "targets"))
	if len(c.Lines) > chart.Colours {
		c.Lines, c.Ranges = f.among(cells), nil
		note += " Too many targets for a line each: the largest, the median and the smallest of them in each slice; the table below has each."
	}
	return drawn(c, note, "no target tells it")
}

// levelCells holds what one target showed in each slice.
type levelCells struct{ num, den, least, most []float64 }

func newLevelCells(n int) levelCells {
	c := levelCells{make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n)}
	for i := range n {
		c.least[i], c.most[i] = math.Inf(1), math.Inf(-1)
	}
	return c
}

func (c levelCells) add(slice int, p point) {
	c.num[slice] += p.num
	c.den[slice] += p.den
	if p.den > 0 {
		c.least[slice], c.most[slice] = min(c.least[slice], p.value()), max(c.most[slice], p.value())
	}
}

// between shades from the least to the largest look of each slice.
func (f *runFigures) between(c levelCells, series int) chart.Range {
	r := chart.Range{Series: series}
	for i := range c.least {
		if slices.Contains(f.first, i) {
			r.X, r.Lo, r.Hi = append(r.X, f.middle(i)), append(r.Lo, math.NaN()), append(r.Hi, math.NaN())
		}
		if c.den[i] > 0 {
			r.X, r.Lo, r.Hi = append(r.X, f.middle(i)), append(r.Lo, c.least[i]), append(r.Hi, c.most[i])
		}
	}
	return r
}

// means are NaN in slices without a look.
func (c levelCells) means() []float64 {
	out := make([]float64, len(c.num))
	for i := range out {
		out[i] = c.num[i] / c.den[i]
	}
	return out
}

// among draws the extremes and the median over many targets.
func (f *runFigures) among(cells []levelCells) []chart.Line {
	top, mid, low := make([]float64, f.slices), make([]float64, f.slices), make([]float64, f.slices)
	for i := range f.slices {
		top[i], mid[i], low[i] = math.NaN(), math.NaN(), math.NaN()
		var means []float64
		least, most := math.Inf(1), math.Inf(-1)
		for _, c := range cells {
			if c.den[i] > 0 {
				means = append(means, c.num[i]/c.den[i])
				least, most = min(least, c.least[i]), max(most, c.most[i])
			}
		}
		if len(means) > 0 {
			slices.Sort(means)
			top[i], mid[i], low[i] = most, means[(len(means)-1)/2], least
		}
	}
	return []chart.Line{f.line("largest", top), f.line("median", mid), f.line("smallest", low)}
}
