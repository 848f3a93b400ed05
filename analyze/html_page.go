package analyze

import (
	_ "embed"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"tailgate/internal/jsonleaf"
	"tailgate/internal/page"
	"tailgate/schemas"
)

//go:embed report.html
var reportHTML string

var reportPage = page.New(reportHTML, map[string]any{"figure": figureText})

// reportView is what the template reads.
type reportView struct {
	R                               *Report
	Title, Headline, Class, Summary string
	Badges                          []string
	Troubles                        []trouble
	MoreTroubles                    int
	Validity, Requests, GateText    string
	Together                        string // of several runs
	Facts                           []fact
	Rules, Tails, Rates, Servers    grid
	Metrics                         []grid // by bucket
	Chapters                        []chapter
	Course                          []string // cold start, recoveries
}

// figureText writes a figure with three digits; – is not known.
func figureText(f Figure) string {
	if !f.Known() {
		return "–"
	}
	return fmt.Sprintf("%.3g", float64(f))
}

// trouble is a rule that did not pass.
type trouble struct{ Rule, Bucket, Verdict, Text string }

// fact is one headline figure; Path is its place in the JSON.
type fact struct {
	Name, Path string
	gridCell
}

// WriteHTML writes the report as one page that needs neither a network nor a script: the verdict with its reasons first,
// then rules, figures and every number of the JSON. Figures without data say why.
func (r *Report) WriteHTML(w io.Writer) error {
	v, err := r.reportView()
	if err != nil {
		return err
	}
	b, err := reportPage.Render(v)
	if err == nil {
		_, err = w.Write(b)
	}
	if err != nil {
		return fmt.Errorf("writing the HTML report: %w", err)
	}
	return nil
}

func (r *Report) reportView() (*reportView, error) {
	p := &reportView{R: r, Title: "tailgate analysis", Chapters: r.chapters(), Validity: r.validitySentence(), Summary: r.ruleCounts(), Requests: r.requestsText(), Together: r.togetherText(), Course: r.course()}
	if id := r.runID(); id != "" {
		p.Title += " of " + id
	}
	p.head()
	var err error
	for _, t := range []struct {
		into *grid
		make func() (grid, error)
	}{{&p.Rules, r.rulesTable}, {&p.Tails, r.tailsTable}, {&p.Rates, r.ratesTable}, {&p.Servers, r.serversTable}} {
		if *t.into, err = t.make(); err != nil {
			return nil, err
		}
	}
	for i := range r.Buckets {
		g, err := r.metricsTable(i)
		if err != nil {
			return nil, err
		}
		p.Metrics = append(p.Metrics, g)
	}
	p.Facts, err = r.facts()
	return p, err
}

// maxTroubles is how many rules the head of the page tells about; the table of rules has all.
const maxTroubles = 6

// head fills in the verdict, what it is worth, and why.
func (p *reportView) head() {
	r := p.R
	switch {
	case r.Gate != nil:
		p.Headline, p.Class, p.GateText = strings.ToUpper(r.Gate.Verdict), r.Gate.Verdict, r.gateText()
	case len(r.Invalid) > 0:
		p.Headline, p.Class = "INVALID RUN", schemas.VerdictInvalid
	default:
		p.Headline, p.Class = "no gate", "none"
	}
	if r.Gate == nil {
		return
	}
	if r.Gate.Provisional && r.Gate.Verdict != schemas.VerdictFail { // a failure is final
		p.Badges = append(p.Badges, "provisional: the run is too short for the full rule")
	}
	needs := 0.0
	for _, verdict := range []string{schemas.VerdictFail, schemas.VerdictInconclusive} {
		for i, v := range r.Gate.Rules {
			if v.Verdict != verdict {
				continue
			}
			if v.NeedsMinutes.Known() {
				needs = max(needs, float64(v.NeedsMinutes))
			}
			if len(p.Troubles) == maxTroubles {
				p.MoreTroubles++
				continue
			}
			p.Troubles = append(p.Troubles, r.trouble(i))
		}
	}
	if needs > 0 && r.Gate.Verdict == schemas.VerdictInconclusive {
		p.Badges = append(p.Badges, fmt.Sprintf("needs %.0f more minutes", math.Ceil(needs)))
	}
}

// trouble says in a line why a rule did not pass.
func (r *Report) trouble(i int) trouble {
	v, rule := r.Gate.Rules[i], r.gate.Rules[i]
	t := trouble{Rule: v.Rule + " " + v.Limit, Bucket: v.By.String(), Verdict: v.Verdict}
	switch {
	case math.IsInf(float64(v.Observed), 1):
		t.Text = "observed: a failed request; "
	case v.Observed.Known() && rule.kind == percentileRule && rule.quantity() == timeLimit:
		t.Text = "observed " + groupedFigure(v.Observed) + " ms; "
	case v.Observed.Known():
		t.Text = "observed " + groupedFigure(v.Observed) + "; "
	}
	t.Text += v.Reason
	if v.NeedsMinutes.Known() && !strings.Contains(v.Reason, "more minutes") {
		t.Text += fmt.Sprintf("; needs %.0f more minutes", math.Ceil(float64(v.NeedsMinutes)))
	}
	return t
}

// groupedFigure is short with the thousands of large numbers apart.
func groupedFigure(f Figure) string {
	if x := float64(f); x >= 10_000 && !math.IsInf(x, 1) && x < 1e15 {
		return grouped(int(math.Round(x)))
	}
	return short(f)
}

// validitySentence says whether the run itself can be trusted.
func (r *Report) validitySentence() string {
	switch {
	case r.Valid == nil:
		return "Whether the run is valid was not judged: the results come without a run's manifest."
	case *r.Valid:
		return "The run is valid: our own side kept up."
	}
	return "The run is invalid, so it says neither pass nor fail:"
}

// WallClock is true for a run that began at some time of day.
func (p *reportView) WallClock(run RunRef) bool {
	return run.StartedAt != nil && (run.Clock == nil || *run.Clock != "virtual")
}

// manyRates is the ratio of the largest to the least request rate from which runs are called different ones.
const manyRates = 1.1

// togetherText warns of a verdict on runs that are not one.
func (r *Report) togetherText() string {
	n := len(r.Rates)
	if n == 0 {
		return ""
	}
	least, most := r.Rates[0].RequestRate, r.Rates[n-1].RequestRate
	if most <= manyRates*least {
		return fmt.Sprintf("%d runs are taken together.", n)
	}
	return fmt.Sprintf("%d runs at %s to %s requests/s are taken together: what holds for all of them is no verdict on any one. See the runs by request rate.", n, short(least), short(most))
}

// ruleCounts counts the rules by their verdict.
func (r *Report) ruleCounts() string {
	if r.Gate == nil {
		return "Figures without a verdict: no gate was given."
	}
	counts := map[string]int{}
	for _, v := range r.Gate.Rules {
		counts[v.Verdict]++
	}
	parts := []string{fmt.Sprintf("%d of %d rules pass", counts[schemas.VerdictPass], len(r.Gate.Rules))}
	for _, verdict := range []string{schemas.VerdictInvalid, schemas.VerdictFail, schemas.VerdictInconclusive} {
		if n := counts[verdict]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, verdict))
		}
	}
	return strings.Join(parts, ", ") + "."
}

// facts are the headline figures.
func (r *Report) facts() ([]fact, error) {
	all, err := leaves(r.head())
	if err != nil {
		return nil, fmt.Errorf("making the head of the page: %w", err)
	}
	var out []fact
	for _, f := range []struct{ path, name string }{
		{"scheduled", "requests scheduled"}, {"success_rate", "success rate"}, {"throughput.requests_per_s", "requests/s ok"},
		{"throughput.goodput_per_s", "goodput, requests/s"}, {"throughput.output_tokens_per_s", "output tokens/s"},
		{"throughput.total_tokens_per_s", "tokens/s, in and out"}, {"early_stop_share", "stopped early"}, {"measured_minutes", "minutes measured"},
	} {
		i := slices.IndexFunc(all, func(l jsonleaf.Leaf) bool { return l.Path == f.path })
		if i < 0 || all[i].Exact == "null" {
			continue
		}
		c := cellOf(all[i])
		switch f.path {
		case "success_rate":
			c.Short = percent(float64(r.SuccessRate))
		case "early_stop_share":
			c.Short = percent(float64(r.EarlyStopShare))
		}
		out = append(out, fact{f.name, f.path, c})
	}
	return out, nil
}

// head is the report without its lists.
func (r *Report) head() Report {
	h := *r
	h.Buckets, h.Gate, h.Rates, h.Servers, h.Runs = nil, nil, nil, nil, nil
	return h
}
