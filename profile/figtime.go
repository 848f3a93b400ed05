package profile

import (
	"fmt"
	"time"

	"tailgate/internal/chart"
	"tailgate/schemas"
)

// maxPoints bounds the points of the rate curve on the page.
const maxPoints = 1500

// shownBin is the width of the rate's bins on the page: minutes, finer for short traces and wider for more than a day.
func (p *Profile) shownBin() int64 {
	last := int64(0)
	for _, r := range total(p.Rate) {
		last = max(last, r.BinStartUs)
	}
	switch {
	case last < 180_000_000:
		return binsUs[0]
	case last < 1_200_000_000:
		return binsUs[1]
	case last <= dayUs:
		return binsUs[2]
	}
	return binsUs[3]
}

// steady gives the total's bins of the width without holes, several as one where there are more than maxPoints.
func (p *Profile) steady(width int64) ([]schemas.ProfileRate, int64) {
	var rows []schemas.ProfileRate
	for _, r := range total(p.Rate) {
		if len(rows) == 0 {
			width = max(width, r.BinUs) // the finest that there is
		}
		if r.BinUs == width {
			rows = append(rows, r)
		}
	}
	if len(rows) == 0 {
		return nil, width
	}
	first, last := rows[0].BinStartUs, rows[len(rows)-1].BinStartUs
	width *= ((last-first)/width + maxPoints) / maxPoints
	first -= first % width
	out := make([]schemas.ProfileRate, (last-first)/width+1)
	for i := range out {
		out[i].BinStartUs = first + int64(i)*width
	}
	for _, r := range rows {
		o := &out[(r.BinStartUs-first)/width]
		o.Requests += r.Requests
		o.SessionsStarted += r.SessionsStarted
		o.TokensIn += r.TokensIn
		o.TokensOut += r.TokensOut
		o.Errors += r.Errors
	}
	return out, width
}

// wallKnown tells whether window_start is a wall time; a schedule without one starts at 1970.
func (p *Profile) wallKnown() bool { return p.Meta[0].WindowStart.Year() > 1970 }

// timeUnit is the unit of an axis of time over us microseconds, and the axis' label.
func (p *Profile) timeUnit(us int64) (unit float64, label string) {
	unit, name := 60e6, "minutes"
	switch {
	case us > 4*dayUs:
		unit, name = dayUs, "days"
	case us > 3*3_600_000_000:
		unit, name = 3600e6, "hours"
	}
	if p.wallKnown() {
		return unit, name + " since " + p.Meta[0].WindowStart.UTC().Format("2006-01-02 15:04 UTC")
	}
	return unit, name + " on the trace's clock"
}

func (p *Profile) rateFigure() figure {
	f := figure{ID: "rate", Title: "Rate by time"}
	bins, binUs := p.steady(p.shownBin())
	if len(bins) == 0 {
		f.Missing = "No rate: the profile has no rate curve of the total."
		return f
	}
	unit, label := p.timeUnit(bins[len(bins)-1].BinStartUs - bins[0].BinStartUs)
	perMinute := 60e6 / float64(binUs)
	requests := &chart.Chart{Title: "Requests per minute", What: "arrivals by time, burst windows shaded", XLabel: label, YLabel: "requests/min"}
	tokens := &chart.Chart{Title: "Tokens per minute", What: "tokens of requests that did not fail, by time, burst windows shaded", XLabel: label, YLabel: "tokens/min"}
	req, in, out := chart.Line{}, chart.Line{Name: "input"}, chart.Line{Name: "output"}
	g := grid{Title: fmt.Sprintf("Numbers by %s", width(binUs)), Head: []string{"from second", "requests", "failed", "sessions started", "input tokens", "output tokens"}}
	for _, b := range bins {
		x := (float64(b.BinStartUs) + float64(binUs)/2) / unit
		req.Add(x, float64(b.Requests)*perMinute)
		in.Add(x, float64(b.TokensIn)*perMinute)
		out.Add(x, float64(b.TokensOut)*perMinute)
		g.row(b.BinStartUs/1_000_000, b.Requests, b.Errors, b.SessionsStarted, b.TokensIn, b.TokensOut)
	}
	requests.Lines, tokens.Lines = []chart.Line{req}, []chart.Line{in, out}
	f.Notes = []string{fmt.Sprintf("Bins of %s as a rate per minute; the first and the last bin may be covered in part.", width(binUs))}
	var key []chart.Key
	_, several := p.partial()
	if origin := p.Meta[0].OriginUs; len(p.Bursts) > 0 && origin != nil && !several {
		for _, b := range p.Bursts {
			from := float64(b.StartUs - *origin)
			requests.Bands = append(requests.Bands, chart.Band{X0: from / unit, X1: (from + float64(b.LengthUs)) / unit})
		}
		tokens.Bands = requests.Bands
		key = []chart.Key{{Class: "kb", Name: "burst windows"}}
	} else if len(p.Bursts) > 0 {
		f.Notes = append(f.Notes, "Burst windows are not marked: the profile does not tell where their clock starts, as it has several windows or was written by an earlier version.")
	}
	f.draw(requests, key...)
	f.draw(tokens, key...)
	f.Tables = []grid{g}
	return f
}

func (p *Profile) hoursFigure() figure {
	f := figure{ID: "hours", Title: "Rate by hour of day"}
	bins, binUs := p.hourBins()
	if len(bins) == 0 || bins[len(bins)-1].BinStartUs+binUs-bins[0].BinStartUs <= dayUs {
		f.Missing = "No rate by hour of day: the traffic does not cover more than a day."
		return f
	}
	clock := "hour of the UTC day"
	if !p.wallKnown() {
		clock = "hour since the schedule's start, modulo 24"
	}
	var requests, tokensIn, tokensOut, covered [24]int64
	for _, b := range bins {
		h := p.Meta[0].WindowStart.UTC().Add(time.Duration(b.BinStartUs) * time.Microsecond).Hour()
		requests[h] += b.Requests
		tokensIn[h] += b.TokensIn
		tokensOut[h] += b.TokensOut
		covered[h] += binUs
	}
	c := &chart.Chart{Title: "Mean requests per minute", What: "mean arrival rate by hour of day", XLabel: clock, YLabel: "requests/min"}
	g := grid{Title: "Numbers", Head: []string{"hour", "minutes covered", "requests", "requests/min", "input tokens", "output tokens"}}
	for h := range 24 {
		if covered[h] == 0 {
			continue
		}
		minutes := float64(covered[h]) / 60e6
		rate := float64(requests[h]) / minutes
		c.Bars = append(c.Bars, chart.Bar{X0: float64(h) + .06, X1: float64(h) + .94, Y: rate})
		g.row(int64(h), minutes, requests[h], rate, tokensIn[h], tokensOut[h])
	}
	f.draw(c)
	f.Tables = []grid{g}
	return f
}

// hourBins are the widest bins without holes; unlike those of the rate's figure they are never put together.
func (p *Profile) hourBins() ([]schemas.ProfileRate, int64) {
	widest := binsUs[len(binsUs)-1]
	var out []schemas.ProfileRate
	for _, r := range total(p.Rate) {
		if r.BinUs != widest {
			continue
		}
		for len(out) > 0 && out[len(out)-1].BinStartUs+widest < r.BinStartUs {
			out = append(out, schemas.ProfileRate{BinStartUs: out[len(out)-1].BinStartUs + widest})
		}
		out = append(out, r)
	}
	return out, widest
}

func (p *Profile) burstsFigure() figure {
	f := figure{ID: "bursts", Title: "Burst windows"}
	rows := total(p.Bursts)
	if len(rows) == 0 {
		f.Missing = "No burst windows: the trace is too short for two windows of 10 s, has fewer than 10 requests, or never rises above its mean."
		return f
	}
	f.Notes = []string{"The windows of 10, 60 or 300 s with the most requests above the mean rate, the worst first; play one by replay --window burst:RANK."}
	g := grid{Head: []string{"rank", "start (s)", "length (s)", "requests", "expected", "input tokens", "output tokens", "long inputs", "most of class", "most of tenant"}}
	for _, b := range rows {
		g.row(b.Rank, float64(b.StartUs)/1e6, float64(b.LengthUs)/1e6, b.Requests, b.Expected, b.TokensIn, b.TokensOut, b.LongShare, word(b.TopClass), word(b.TopTenant))
	}
	f.Tables = []grid{g}
	return f
}

func word(s *string) string {
	if s == nil {
		return "—"
	}
	return label(*s)
}
