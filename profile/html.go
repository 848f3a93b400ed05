package profile

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"strconv"

	"tailgate/internal/chart"
	"tailgate/internal/page"
	"tailgate/schemas"
)

//go:embed page.html
var pageHTML string

var profilePage = page.New(pageHTML, nil)

// pageView is what the template reads.
type pageView struct {
	Title, Headline string
	Notes           []string
	Facts           []pageFact
	Figures         []figure
	Footer          []string
}

type pageFact struct{ Name, Value string }

// figure is a part of the page: charts with the numbers that they show, or the sentence that says why there is none.
type figure struct {
	ID, Title string
	Missing   string
	Notes     []string
	Charts    []drawing
	Tables    []grid
}

type drawing struct {
	Title string
	SVG   template.HTML
	Keys  []chart.Key
}

// grid is a table of the page.
type grid struct {
	Title string // of a table that is folded; "" = in the open
	Head  []string
	Rows  [][]cellText
}

// cellText is a figure as it is read and as it is; the latter is empty for words.
type cellText struct{ Text, Exact string }

// draw adds a chart with its legend.
func (f *figure) draw(c *chart.Chart, more ...chart.Key) {
	svg := c.SVG()
	if svg == "" {
		return
	}
	f.Charts = append(f.Charts, drawing{Title: c.Title, SVG: svg, Keys: append(c.Keys(), more...)})
}

// row appends a row: words, whole numbers, figures and figures that may be unknown.
func (g *grid) row(values ...any) {
	cells := make([]cellText, len(values))
	for i, v := range values {
		switch v := v.(type) {
		case string:
			cells[i] = cellText{Text: v}
		case int32:
			cells[i] = cellText{group3(int64(v)), strconv.Itoa(int(v))}
		case int64:
			cells[i] = cellText{group3(v), strconv.FormatInt(v, 10)}
		case float64:
			cells[i] = cellText{short(v), exact(v)}
		case *float64:
			cells[i] = cellText{Text: "—"}
			if v != nil {
				cells[i] = cellText{short(*v), exact(*v)}
			}
		default:
			cells[i] = cellText{Text: fmt.Sprint(v)}
		}
	}
	g.Rows = append(g.Rows, cells)
}

// short is v to read: as on the screen, but small figures do not vanish.
func short(v float64) string {
	if v != 0 && math.Abs(v) < 1e-3 {
		return fmt.Sprintf("%.2g", v)
	}
	return sig(v)
}

// exact is the shortest text that reads back as v.
func exact(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// WriteHTML writes the total, and a table of the groups, as one page that needs neither a network nor a script.
// Every figure stands with its numbers, exact in the value attribute of their data elements; a figure without data
// is a sentence that says why.
func (p *Profile) WriteHTML(w io.Writer) error {
	b, err := profilePage.Render(p.page())
	if err == nil {
		_, err = w.Write(b)
	}
	if err != nil {
		return fmt.Errorf("writing the HTML page: %w", err)
	}
	return nil
}

func (p *Profile) page() pageView {
	if len(p.Meta) == 0 {
		return pageView{Title: "tailgate profile", Headline: "no profile"}
	}
	m := p.Meta[0]
	out := pageView{Title: "tailgate profile " + m.ProfileID, Footer: footer(m)}
	if m.Requests == 0 {
		out.Headline = "no requests: nothing to profile"
		return out
	}
	out.Headline = fmt.Sprintf("%s requests over %s", group3(m.Requests), p.spanText())
	if m.Dequantised {
		out.Notes = append(out.Notes, fmt.Sprintf("The source's clock ticks every %s. Stamps were spread inside their slot: what is told below that describes the spreading.", width(m.TimeResolutionUs)))
	}
	if k, yes := p.partial(); yes {
		const layout = "2006-01-02 15:04 UTC"
		out.Notes = append(out.Notes, fmt.Sprintf("The profile is merged of several windows. Rate and lengths are of all; what does not add up, the facts of the gaps and of the cache included, is of the newest, %s to %s.",
			k.WindowStart.UTC().Format(layout), k.WindowEnd.UTC().Format(layout)))
	}
	out.Facts = p.facts()
	out.Figures = []figure{
		p.rateFigure(), p.hoursFigure(), p.burstsFigure(), p.gapsFigure(), p.dispersionFigure(),
		p.lengthsFigure(), p.jointFigure(), p.turnsFigure(), p.turnGapsFigure(), p.growthFigure(),
		p.hitsFigure(), p.reuseFigure(), p.latencyFigure(), p.groupsFigure(),
	}
	return out
}

func (p *Profile) spanText() string {
	if _, yes := p.partial(); yes {
		return seconds(p.Meta[0].WindowEnd.Sub(p.Meta[0].WindowStart).Seconds())
	}
	if g := p.shownGaps(); g != nil && g.MeanS != nil && *g.MeanS > 0 {
		return seconds(*g.MeanS * float64(g.N))
	}
	return "one instant"
}

func footer(m schemas.ProfileMeta) []string {
	out := []string{fmt.Sprintf("Source: %s. Clock resolution %s. Sessions: %s.", m.Source, width(m.TimeResolutionUs), group3(m.Sessions))}
	for _, f := range []struct{ name, value string }{
		{"Model", m.Model}, {"Tokenizer", m.Tokenizer}, {"Key epoch", m.Epoch}, {"Inputs", m.InputsSHA256},
	} {
		if f.value != "" {
			out = append(out, f.name+": "+f.value+".")
		}
	}
	if m.BlockSize > 0 {
		out = append(out, fmt.Sprintf("Blocks of %d tokens.", m.BlockSize))
	}
	return out
}

// facts are the headline figures; unknown ones are left out.
func (p *Profile) facts() []pageFact {
	m := p.Meta[0]
	out := []pageFact{{"failed", fmt.Sprintf("%.2f %%", 100*float64(m.Failed)/float64(m.Requests))}, {"sessions", group3(m.Sessions)}}
	add := func(name string, v *float64) {
		if v != nil {
			out = append(out, pageFact{name, sig(*v)})
		}
	}
	if g := p.shownGaps(); g != nil {
		if g.MeanS != nil && *g.MeanS > 0 {
			add("requests/s", val(1 / *g.MeanS))
		}
		add("CV of gaps", g.CVRaw)
	}
	for _, f := range total(p.IATFit) {
		if f.Clock == ClockRaw && f.Selected {
			out = append(out, pageFact{"law of gaps", f.Dist})
		}
	}
	for _, d := range total(p.Dispersion) {
		if d.ScaleUs == 60_000_000 {
			add("IDC at 60 s", d.IDC)
		}
	}
	for _, h := range total(p.HitCurve) {
		if h.CapacityBlocks == nil {
			add("block hit, no limit", h.BlockHit)
		}
	}
	return out
}

// total keeps the rows of the total; of a table with rows for several windows, those of the newest.
func total[T keyed](rows []T) []T {
	var out []T
	for _, r := range rows {
		if !isTotal(r.Key()) {
			continue
		}
		if len(out) > 0 {
			switch newest := out[0].Key(); {
			case r.Key().WindowStart.Before(newest.WindowStart):
				continue
			case r.Key().WindowStart.After(newest.WindowStart):
				out = nil
			}
		}
		out = append(out, r)
	}
	return out
}

// shownGaps describes the gaps that the page shows; nil when there are none.
func (p *Profile) shownGaps() *schemas.ProfileIAT {
	rows := total(p.IAT)
	if len(rows) == 0 {
		return nil
	}
	return &rows[0]
}

// partial tells the window that the figures of the gaps and of the sessions are about, when it is not the whole profile.
func (p *Profile) partial() (schemas.ProfileKey, bool) {
	for _, s := range total(p.SessionStat) {
		m := p.Meta[0]
		return s.ProfileKey, !s.WindowStart.Equal(m.WindowStart) || !s.WindowEnd.Equal(m.WindowEnd)
	}
	return schemas.ProfileKey{}, false
}
