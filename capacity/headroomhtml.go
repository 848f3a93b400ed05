package capacity

import (
	_ "embed"
	"fmt"
	"io"
	"slices"
	"time"

	"tailgate/internal/chart"
	"tailgate/internal/page"
	"tailgate/schemas"
)

//go:embed headroom.html
var headroomHTML string

var headroomPage = page.New(headroomHTML, nil)

type headroomView struct {
	H                               *Headroom
	When, State, Headline, Sentence string
	Rows                            []headroomViewRow
	Lines                           []string
	Charts                          []envelopeFigure
}

type headroomViewRow struct {
	Cells []string
	State string
}

// WriteHTML writes the headroom as one page that needs neither a network nor a script.
func (h *Headroom) WriteHTML(w io.Writer) error {
	v := headroomView{H: h, When: h.when(), Lines: h.lines()}
	v.State, v.Headline, v.Sentence = h.headline()
	for i := range h.Rows {
		v.Rows = append(v.Rows, headroomViewRow{h.cells(&h.Rows[i]), stateText(&h.Rows[i])})
	}
	h.deciding(func(r schemas.HeadroomRow) {
		if f := h.dailyFigure(r); f.SVG != "" {
			v.Charts = append(v.Charts, f)
		}
		if f := h.hoursFigure(r.Class); f.SVG != "" {
			v.Charts = append(v.Charts, f)
		}
	})
	b, err := headroomPage.Render(v)
	if err == nil {
		_, err = w.Write(b)
	}
	if err != nil {
		return fmt.Errorf("writing the headroom's page: %w", err)
	}
	return nil
}

// headline is the answer in a word, with the class of its colour.
func (h *Headroom) headline() (state, headline, sentence string) {
	first := h.Rows[0]
	worst := -1
	h.deciding(func(r schemas.HeadroomRow) { // the first of the worst
		rank := slices.Index([]string{schemas.HeadroomOK, schemas.HeadroomOverNMinus1, schemas.HeadroomOverSafe}, r.State)
		if rank > worst {
			first, worst = r, rank
		}
	})
	p := peakOf(&first, h.DecidesS)
	sentence = fmt.Sprintf("The highest rate of %s was %s in bins of %d s; Safe QPS with %s arrivals is %s.", first.Class, peakText(p), h.DecidesS, first.Pattern, rateText(first.SafeQPS))
	switch {
	case h.OverSafe:
		return "over", "over Safe QPS", sentence
	case h.OverNMinus1:
		return SearchInconclusive, "no reserve", sentence + " The loss of a replica is not covered."
	case h.Stale != nil && *h.Stale:
		return SearchInconclusive, "stale", sentence + " The traffic has left what was tested."
	case p.Used == nil:
		return SearchInconclusive, "cannot tell", sentence
	}
	return SearchConfirmed, percentText(p.Headroom) + " headroom", sentence
}

// dailyFigure draws the daily peaks of a class with Safe QPS and the trend.
func (h *Headroom) dailyFigure(r schemas.HeadroomRow) envelopeFigure {
	c := chart.Chart{Title: "Daily peaks of " + r.Class, What: fmt.Sprintf("highest rate of each day in bins of %d s", h.DecidesS), XLabel: "days before the last one", YLabel: "requests/s"}
	last, err := time.Parse(time.DateOnly, h.Day)
	if err != nil {
		return envelopeFigure{}
	}
	line := chart.Line{Name: "peak", Marked: true}
	for _, d := range h.Daily {
		if day, err := time.Parse(time.DateOnly, d.Day); err == nil && d.Class == r.Class {
			line.Add(day.Sub(last).Hours()/24, d.Peak)
		}
	}
	if len(line.X) < 2 {
		return envelopeFigure{}
	}
	c.Lines = []chart.Line{line}
	if r.SafeQPS != nil {
		c.Limits = append(c.Limits, chart.Limit{Value: *r.SafeQPS, Text: "Safe QPS"})
	}
	if r.NMinus1 != nil {
		c.Limits = append(c.Limits, chart.Limit{Value: *r.NMinus1, Text: "N−1"})
	}
	return envelopeFigure{Title: c.Title, SVG: c.SVG()}
}

// hoursFigure draws the replicas by hour of a class.
func (h *Headroom) hoursFigure(class string) envelopeFigure {
	c := chart.Chart{Title: "Replicas of " + class + " by hour", What: "replicas that each hour of the UTC day needs", XLabel: "hour, UTC", YLabel: "replicas"}
	need, spare := chart.Line{Name: "needed", Marked: true}, chart.Line{Name: "to lose one", Marked: true}
	for _, n := range h.Hours {
		if n.Class == class {
			need.Add(float64(n.Hour), float64(n.Replicas))
			spare.Add(float64(n.Hour), float64(n.ReplicasNMinus1))
		}
	}
	if len(need.X) < 2 {
		return envelopeFigure{}
	}
	c.Lines = []chart.Line{need, spare}
	return envelopeFigure{Title: c.Title, SVG: c.SVG(), Keys: []chart.Key{chart.SeriesKey(0, need.Name), chart.SeriesKey(1, spare.Name)}}
}
