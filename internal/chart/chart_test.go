package chart

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestNothingToDraw(t *testing.T) {
	for name, c := range map[string]Chart{
		"no data":              {},
		"only NaN":             {Lines: []Line{{X: []float64{1, 2}, Y: []float64{math.NaN(), math.NaN()}}}},
		"nothing above zero":   {LogX: true, LogY: true, Lines: []Line{{X: []float64{1, 0}, Y: []float64{0, 3}}}},
		"a limit without data": {Limits: []Limit{{Value: 1}}},
	} {
		if svg := c.SVG(); svg != "" {
			t.Errorf("%s: %s", name, svg)
		}
	}
}

func TestEveryMarkIsDrawn(t *testing.T) {
	points := Line{Name: "a", X: []float64{1, 10, 100}, Y: []float64{1, 2, 4}}
	cases := []struct {
		name  string
		chart Chart
		marks map[string]int
	}{
		{"lines", Chart{Lines: []Line{points, points}}, map[string]int{`class="line s0"`: 1, `class="line s1"`: 1}},
		{"dots come after the lines' colours", Chart{Lines: []Line{points}, Dots: []Line{points}}, map[string]int{`class="dot s1"`: 3}},
		{"dots at zero of a log axis", Chart{LogX: true, Dots: []Line{{X: []float64{0, 1, 2}, Y: []float64{1, 1, 1}}}}, map[string]int{`class="dot s0"`: 2}},
		{"bars", Chart{Bars: []Bar{{X0: 0, X1: 1, Y: 2}, {X0: 1, X1: 2, Y: 1, Series: 1}}}, map[string]int{`class="bar s0"`: 1, `class="bar s1"`: 1}},
		{"cells", Chart{LogX: true, LogY: true, Cells: []Cell{{X0: 1, X1: 2, Y0: 1, Y1: 4, Share: .5}}}, map[string]int{`fill-opacity="0.50"`: 1}},
		{"whiskers", Chart{LogY: true, Lines: []Line{points}, Whiskers: []Whisker{{X: 1, Lo: .5, Hi: 2}, {X: 2, Lo: 0, Hi: 2}}}, map[string]int{`class="whisker"`: 1}},
		{"bands inside the axis", Chart{Lines: []Line{points}, Bands: []Band{{X0: 1, X1: 2}, {X0: 500, X1: 600}}}, map[string]int{`class="band"`: 1}},
		{"limit", Chart{Lines: []Line{points}, Limits: []Limit{{Value: 1, Text: "<1>"}, {Value: 10, Text: "x", OnX: true}, {Value: 1e6, Text: "far"}}}, map[string]int{`class="limit"`: 4, "&lt;1&gt;": 1, "far": 0}},
		{"stacked bars", Chart{Bars: []Bar{{X0: 0, X1: 1, Y: 2}, {X0: 0, X1: 1, Base: 2, Y: 4, Series: 1}}}, map[string]int{`class="bar s`: 2, `height="87.7"`: 2}},
		{"ranges break", Chart{Ranges: []Range{{X: []float64{1, 2, 3, 4}, Lo: []float64{1, 1, math.NaN(), 2}, Hi: []float64{2, 3, math.NaN(), 3}}}}, map[string]int{`class="range s0"`: 1, "z": 2}},
		{"a line's own colour and its points", Chart{Lines: []Line{{X: []float64{1, 2}, Y: []float64{1, math.NaN()}, Colour: 4, Marked: true}}}, map[string]int{`class="line s3"`: 1, `class="dot s3"`: 1}},
		{"more lines than colours", Chart{Lines: slices.Repeat([]Line{points}, Colours+1)}, map[string]int{`class="line s0"`: 2, `class="line s7"`: 1, "s8": 0}},
		{"more bars than colours", Chart{Bars: []Bar{{X0: 0, X1: 1, Y: 2, Series: Colours + 1}}}, map[string]int{`class="bar s1"`: 1}},
		{"many nines", Chart{Percentiles: true, Lines: []Line{{X: []float64{1, 10}, Y: []float64{.5, .99995}}}}, map[string]int{">99.99<": 1, `text-anchor="end">0<`: 0}},
		{"few nines", Chart{LogX: true, Percentiles: true, Lines: []Line{{X: []float64{1, 10}, Y: []float64{.5, .99}}}}, map[string]int{">99<": 1, ">0<": 1}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			svg := string(c.chart.SVG())
			for mark, n := range c.marks {
				if got := strings.Count(svg, mark); got != n {
					t.Errorf("%d of %s, want %d in %s", got, mark, n, svg)
				}
			}
			if strings.Contains(svg, "NaN") || strings.Contains(svg, "Inf") {
				t.Errorf("not a number in %s", svg)
			}
		})
	}
}

// Keys have the colours that are drawn.
func TestKeys(t *testing.T) {
	c := Chart{Lines: []Line{{Name: "a", Colour: 3}, {}, {Name: "b"}}, Dots: []Line{{Name: "c"}}}
	if diff := cmp.Diff([]Key{{"k2", "a"}, {"k2", "b"}, {"k3", "c"}}, c.Keys()); diff != "" {
		t.Error(diff)
	}
}

func TestNarrowMarksAreSeen(t *testing.T) {
	c := Chart{LogX: true, LogY: true, Cells: []Cell{{X0: 1, X1: 1e5, Y0: 1, Y1: 1e5, Share: .1}, {X0: 5e4, X1: 50_001, Y0: 1, Y1: 1e5, Share: 1, Series: 1}}}
	if svg := string(c.SVG()); !strings.Contains(svg, `class="cell s1"`) || !strings.Contains(svg, `width="2.0"`) {
		t.Error(svg)
	}
}

func TestStrips(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	s := Strips{XLabel: "ms", Rows: []Strip{
		{Name: "<all>", Places: []Place{{0, 10, 8, inf, "ten"}, {1, inf, nan, nan, "never"}, {2, nan, nan, nan, ""}}, Limits: []Limit{{Value: 20, Text: "p99 <= 20"}}},
		{Name: strings.Repeat("x", 100), Places: []Place{{0, 1000, nan, nan, ""}}},
	}}
	svg := string(s.SVG())
	for mark, n := range map[string]int{`<circle class="dot s0"`: 2, `<path class="dot s1"`: 1, `class="whisker s0"`: 1, "s2": 0, `class="limit"`: 1, "&lt;all&gt;": 2, strings.Repeat("x", 71) + "…": 1} {
		if got := strings.Count(svg, mark); got != n {
			t.Errorf("%d of %s, want %d in %s", got, mark, n, svg)
		}
	}
	if strings.Contains(svg, "NaN") || strings.Contains(svg, "Inf") {
		t.Errorf("not a number in %s", svg)
	}
	if svg := (&Strips{Rows: []Strip{{Places: []Place{{X: nan}}}}}).SVG(); svg != "" {
		t.Errorf("nothing is drawn as %s", svg)
	}
	if svg := (&Strips{Rows: []Strip{{Places: []Place{{X: inf, Lo: nan, Hi: nan}}}}}).SVG(); !strings.Contains(string(svg), "dot s0") {
		t.Errorf("what is infinite alone: %s", svg)
	}
}

func TestEscape(t *testing.T) {
	if got := escape("<a>\x00\"\xff\u202e"); got != "&lt;a&gt;\ufffd&#34;\ufffd\u202e" {
		t.Errorf("%q", got)
	}
}

func TestTicks(t *testing.T) {
	cases := []struct {
		name string
		axis axis
		want []float64
	}{
		{"linear", axis{lo: 0, hi: 10}, []float64{0, 2, 4, 6, 8, 10}},
		{"two decades", axis{lo: 1, hi: 100, log: true}, []float64{1, 2, 5, 10, 20, 50, 100}},
		{"four decades", axis{lo: 1, hi: 1e4, log: true}, []float64{1, 10, 100, 1000, 1e4}},
		{"ten decades", axis{lo: 1, hi: 1e10, log: true}, []float64{1, 100, 1e4, 1e6, 1e8, 1e10}},
		{"both sides of zero", axis{lo: -20, hi: 150, sym: true}, []float64{-10, -1, 0, 1, 10, 100}},
	}
	sorted := cmpopts.SortSlices(func(a, b float64) bool { return a < b })
	near := cmpopts.EquateApprox(1e-9, 0)
	for _, c := range cases {
		if diff := cmp.Diff(c.want, c.axis.ticks(), sorted, near); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
	for text, v := range map[string]float64{"0": 1e-15, "-20k": -2e4, "20k": 2e4, "2.5M": 2.5e6, "0.25": .25} {
		if got := tickText(v); got != text {
			t.Errorf("%v is %q, want %q", v, got, text)
		}
	}
}
