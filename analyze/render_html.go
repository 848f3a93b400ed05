package analyze

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"

	"tailgate/schemas"
)

//go:embed report.html
var reportHTML string

var reportPage = template.Must(template.New("report").Funcs(template.FuncMap{
	"num": htmlNumber, "cells": percentileCells, "tails": tailsOf,
}).Parse(reportHTML))

// page is what the template reads.
type page struct {
	R                                                   *Report
	Title, Headline, Class, Summary, Requests, GateText string
	Facts                                               []fact
	TailNames                                           []string
	Charts                                              []figure
}

type fact struct{ Name, Value string }

type figure struct {
	Title string
	SVG   template.HTML
	Keys  []figureKey
}

type figureKey struct{ Class, Name string }

// tailMetrics are the columns of the table of tails.
var tailMetrics = []string{"ttft_ms", "tpot_ms", "e2e_ms"}

// WriteHTML writes the report as one page that needs neither a network nor a script: the verdict first, then
// rules, tails, charts and every figure. Cells carry the exact values of the JSON.
func (r *Report) WriteHTML(w io.Writer) error {
	p := page{R: r, Title: "tailgate analysis", Headline: "no gate", Class: "none", Summary: r.ruleCounts(), Requests: r.requestsText(), Facts: r.facts()}
	if id := r.runID(); id != "" {
		p.Title += " of " + id
	}
	if r.Gate != nil {
		p.Headline, p.Class, p.GateText = r.headline(), r.Gate.Verdict, r.gateText()
	} else if len(r.Invalid) > 0 {
		p.Headline, p.Class = "invalid run", schemas.VerdictInvalid
	}
	for _, name := range tailMetrics {
		p.TailNames = append(p.TailNames, strings.TrimSuffix(name, "_ms"))
	}
	for _, c := range r.charts() {
		f := figure{Title: c.Title, SVG: c.SVG()}
		for i, l := range c.Lines {
			f.Keys = append(f.Keys, figureKey{fmt.Sprintf("k%d", i), l.Name})
		}
		if len(c.Marks) > 0 {
			f.Keys = append(f.Keys, figureKey{"kf", "failures"})
		}
		p.Charts = append(p.Charts, f)
	}
	var b bytes.Buffer
	err := reportPage.Execute(&b, p)
	if err == nil {
		_, err = w.Write(b.Bytes())
	}
	if err != nil {
		return fmt.Errorf("writing the HTML report: %w", err)
	}
	return nil
}

// ruleCounts names the rules that did not pass, and counts the others.
func (r *Report) ruleCounts() string {
	if r.Gate == nil {
		return "Figures without a verdict: no gate was given."
	}
	var parts []string
	passed := 0
	for _, verdict := range []string{schemas.VerdictInvalid, schemas.VerdictFail, schemas.VerdictInconclusive} {
		var names []string
		for _, v := range r.Gate.Rules {
			if v.Verdict == verdict {
				names = append(names, v.Rule+bucketSuffix(v.By))
			}
		}
		if len(names) > 0 {
			parts = append(parts, fmt.Sprintf("%s: %s", verdict, strings.Join(names, ", ")))
		}
	}
	for _, v := range r.Gate.Rules {
		if v.Verdict == schemas.VerdictPass {
			passed++
		}
	}
	return strings.Join(append([]string{fmt.Sprintf("%d of %d rules pass", passed, len(r.Gate.Rules))}, parts...), "; ")
}

// bucketSuffix names the bucket of a rule that is not for the whole run.
func bucketSuffix(t Tuple) string {
	if len(t) == 0 {
		return ""
	}
	return " (" + t.String() + ")"
}

// facts are the headline figures.
func (r *Report) facts() []fact {
	t := r.Throughput
	out := []fact{
		{"validity", strings.TrimPrefix(r.validText(), "validity ")}, {"success rate", short(r.SuccessRate)}, {"requests/s", short(t.RequestsPerS)},
		{"goodput/s", short(t.GoodputPerS)}, {"output tokens/s", short(t.OutputTokensPerS)},
		{"minutes measured", short(r.MeasuredMinutes)},
	}
	if r.EarlyStopShare.Known() {
		out = append(out, fact{"stopped early", share(r.EarlyStopShare)})
	}
	return out
}

// htmlNumber shows four digits and carries the exact value of the JSON.
func htmlNumber(f Figure) (template.HTML, error) {
	exact, err := json.Marshal(f)
	if err != nil {
		return "", err
	}
	value := strings.Trim(string(exact), `"`)
	return template.HTML(fmt.Sprintf(`<data value="%s">%s</data>`, value, short(f))), nil
}

type percentileCell struct {
	Value Figure
	Few   bool
}

func percentileCells(m Metric) []percentileCell {
	out := make([]percentileCell, len(percentiles))
	for i, p := range percentiles {
		out[i] = percentileCell{*p.of(&m), slices.Contains(m.Insufficient, p.name)}
	}
	return out
}

func tailsOf(b Bucket) []Tail {
	var out []Tail
	for _, name := range tailMetrics {
		i := slices.IndexFunc(b.Metrics, func(m Metric) bool { return m.Name == name })
		out = append(out, b.Metrics[i].Tail)
	}
	return out
}
