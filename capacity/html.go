package capacity

import (
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"math"
	"slices"

	"tailgate/internal/chart"
	"tailgate/internal/page"
)

//go:embed envelope.html
var envelopeHTML string

var envelopePage = page.New(envelopeHTML, map[string]any{
	"num":     short,
	"minutes": func(s float64) string { return fmt.Sprintf("%.0f min", s/60) },
	"percent": func(x float64) string { return fmt.Sprintf("%.3g %%", 100*x) },
	"times":   times,
	"dash":    orDash,
	"soaked":  (*Soak).recoveryText,
	"lost":    (*Loss).recoveryText,
	"backed":  (*Envelope).calibrationText,
})

// short writes a number with four digits and no exponent.
func short(x float64) string {
	if math.Abs(x) >= 1e4 {
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.4g", x)
}

type envelopeView struct {
	E                         *Envelope
	State, Headline, Sentence string
	Warnings                  []string
	Charts                    []envelopeFigure
}

type envelopeFigure struct {
	Title string
	SVG   template.HTML
	Keys  []chart.Key
}

// html is the envelope as one page that needs neither a network nor a script.
func (e *Envelope) html() ([]byte, error) {
	v := envelopeView{E: e, State: SearchConfirmed}
	first := e.Rows[0]
	v.Headline = fmt.Sprintf("%.4g requests/s", first.SafeQPS)
	v.Sentence = fmt.Sprintf("%s/%s holds its SLOs at this rate, tested for %.0f min.", first.Class, first.Pattern, first.Tested/60)
	if first.State != SearchConfirmed {
		v.State, v.Headline = SearchInconclusive, "inconclusive"
		v.Sentence = fmt.Sprintf("%.4g requests/s so far; about %.0f more minutes are needed to confirm a rate.", first.Bound, first.NeedsMinutes)
	}
	for _, r := range e.Rows {
		for _, w := range r.Warnings {
			v.Warnings = append(v.Warnings, fmt.Sprintf("%s/%s: %s", r.Class, r.Pattern, w))
		}
	}
	for _, s := range e.searches {
		v.Charts = append(v.Charts, s.figure())
	}
	v.Charts = append(v.Charts, e.Ladder.figure())
	b, err := envelopePage.Render(v)
	if err != nil {
		return nil, fmt.Errorf("writing the envelope's page: %w", err)
	}
	return b, nil
}

// figure draws the share of violations over the rate: every point, and the fitted curve of each rule, in units of the
// allowed share.
func (s *SafeQPS) figure() envelopeFigure {
	c := chart.Chart{Title: "Violations of " + s.Cell.String(), What: "violations in units of the allowed share, over the request rate",
		XLabel: "requests/s", YLabel: "violations ÷ allowed", LogY: true, Limits: []chart.Limit{{Value: 1, Text: "allowed"}}}
	f := envelopeFigure{Title: c.Title}
	low, high := math.Inf(1), 0.0
	for _, p := range s.Points {
		low, high = min(low, p.Rate), max(high, p.Rate)
	}
	for i, r := range s.Rules {
		line := chart.Line{Name: r.Rule, Colour: i + 1}
		for k := range 41 {
			rate := low * math.Pow(high/low, float64(k)/40)
			z := logit(r.Allowed) + r.Slope*math.Log(rate/r.Estimate)
			if y := 1 / (1 + math.Exp(-z)) / r.Allowed; y > .01 {
				line.Add(rate, y)
			}
		}
		c.Lines = append(c.Lines, line)
		dots := chart.Line{Name: r.Rule + ", runs", Colour: i + 1}
		points := slices.Clone(s.Points)
		slices.SortFunc(points, func(a, b Point) int { return cmp.Compare(a.Rate, b.Rate) })
		for _, p := range points {
			if v, _ := p.share(i); v > 0 {
				dots.Add(p.Rate, v/r.Allowed)
			}
		}
		c.Dots = append(c.Dots, dots)
		f.Keys = append(f.Keys, chart.SeriesKey(i, r.Rule))
	}
	f.SVG = c.SVG()
	return f
}

func (l *Ladder) figure() envelopeFigure {
	c := chart.Chart{Title: "Closed loop", What: "completed requests per second over the concurrency", XLabel: "concurrency", YLabel: "requests/s", LogX: true}
	line := chart.Line{Name: "completed"}
	for _, r := range l.Rungs {
		line.Add(float64(r.Concurrency), r.RequestsPerS)
	}
	c.Lines = []chart.Line{line}
	return envelopeFigure{Title: c.Title, SVG: c.SVG()}
}
