package ingest

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"text/tabwriter"

	"tailgate/internal/stats"
	"tailgate/schemas"
)

// Quality says how well our count of the prompts' tokens agrees with the engine's: what rendering and tokenizer
// are worth, and how much of the prompts' ids had to be padded or cut to the engine's length.
type Quality struct {
	Total  QualityGroup   `json:"total"`
	Groups []QualityGroup `json:"groups"` // by model and class, the largest first; at most 100
}

// QualityGroup is the quality of one model and class. Difference = our count − the engine's, in tokens, over the
// rows where both are known of a whole prompt.
type QualityGroup struct {
	Model string `json:"model"`
	Class string `json:"class"`
	// Rows have the engine's count and a prompt of which something was hashed: Equal + Padded + Cut.
	Rows   int64 `json:"rows"`
	Equal  int64 `json:"equal"`  // the counts agree
	Padded int64 `json:"padded"` // the engine counted more: positions without an own id follow
	Cut    int64 `json:"cut"`    // the engine counted fewer: ids behind its length are dropped
	// Compared rows have a difference; null figures mean that none has. Quantiles hold to two digits.
	Compared int64    `json:"compared"`
	MeanDiff *float64 `json:"mean_diff_tokens"`
	P50Diff  *int64   `json:"p50_diff_tokens"`
	P95Abs   *int64   `json:"p95_abs_diff_tokens"`
	// MeanShare is the sum of the differences over the sum of the engine's counts.
	MeanShare *float64 `json:"mean_diff_share"`
}

// maxQualityGroups bounds the groups that are told apart, qualityShown those of a report.
const (
	maxQualityGroups = 1000
	qualityShown     = 100
)

type groupName struct{ model, class string }

// qualityCounter counts per model and class. The zero value is ready; counters add up.
type qualityCounter struct{ groups map[groupName]*diffs }

// diffs is a histogram of differences.
type diffs struct {
	rows, equal, padded, cut int64
	n, sum, engine           int64
	hist                     map[int64]int64 // by difference, to two digits
}

// add counts a row.
func (q *qualityCounter) add(r *schemas.Request) {
	if r.Reconciled == schemas.ReconciledNone {
		return
	}
	name := groupName{model: r.Model}
	if r.Class != nil {
		name.class = *r.Class
	}
	d := q.group(name)
	d.add(r.Reconciled)
	if r.CountedTokens != nil && r.InputTokens != nil {
		d.compare(int64(*r.CountedTokens), int64(*r.InputTokens))
	}
}

// add counts a row of which something was hashed.
func (d *diffs) add(reconciled string) {
	d.rows++
	switch reconciled {
	case schemas.ReconciledEqual:
		d.equal++
	case schemas.ReconciledPadded:
		d.padded++
	case schemas.ReconciledCut:
		d.cut++
	}
}

// compare takes our count of a prompt and the engine's.
func (d *diffs) compare(ours, engine int64) {
	diff := ours - engine
	d.n++
	d.sum += diff
	d.engine += engine
	d.hist[roundTwo(diff)]++
}

func (q *qualityCounter) group(name groupName) *diffs {
	if q.groups == nil {
		q.groups = map[groupName]*diffs{}
	}
	d := q.groups[name]
	if d == nil && len(q.groups) >= maxQualityGroups {
		name = groupName{schemas.LabelOther, schemas.LabelOther}
		d = q.groups[name]
	}
	if d == nil {
		d = &diffs{hist: map[int64]int64{}}
		q.groups[groupName{string([]byte(name.model)), string([]byte(name.class))}] = d
	}
	return d
}

// merge adds what o counted.
func (q *qualityCounter) merge(o *qualityCounter) {
	for name, d := range o.groups {
		q.group(name).merge(d)
	}
}

func (d *diffs) merge(o *diffs) {
	d.rows, d.equal, d.padded, d.cut = d.rows+o.rows, d.equal+o.equal, d.padded+o.padded, d.cut+o.cut
	d.n, d.sum, d.engine = d.n+o.n, d.sum+o.sum, d.engine+o.engine
	for v, n := range o.hist {
		d.hist[v] += n
	}
}

// roundTwo rounds v to two decimal digits.
func roundTwo(v int64) int64 {
	unit := int64(1)
	for v/unit >= 100 || v/unit <= -100 {
		unit *= 10
	}
	return int64(math.Round(float64(v)/float64(unit))) * unit
}

func (q *qualityCounter) report() Quality {
	all := &diffs{hist: map[int64]int64{}}
	out := Quality{Groups: []QualityGroup{}}
	for name, d := range q.groups {
		all.merge(d)
		out.Groups = append(out.Groups, d.report(name))
	}
	slices.SortFunc(out.Groups, func(a, b QualityGroup) int {
		return cmp.Or(cmp.Compare(b.Rows, a.Rows), cmp.Compare(a.Model, b.Model), cmp.Compare(a.Class, b.Class))
	})
	out.Groups = out.Groups[:min(len(out.Groups), qualityShown)]
	out.Total = all.report(groupName{"*", "*"})
	return out
}

func (d *diffs) report(name groupName) QualityGroup {
	g := QualityGroup{Model: name.model, Class: name.class, Rows: d.rows, Equal: d.equal, Padded: d.padded, Cut: d.cut, Compared: d.n}
	if d.n == 0 {
		return g
	}
	g.MeanDiff = new(float64(d.sum) / float64(d.n))
	if d.engine > 0 {
		g.MeanShare = new(float64(d.sum) / float64(d.engine))
	}
	absolute := map[int64]int64{}
	for v, n := range d.hist {
		absolute[max(v, -v)] += n
	}
	g.P50Diff, g.P95Abs = new(rank(d.hist, d.n, .5)), new(rank(absolute, d.n, .95))
	return g
}

// rank is the p-quantile by nearest rank.
func rank(hist map[int64]int64, n int64, p float64) int64 {
	at := int64(stats.Rank(int(n), p))
	values := slices.Sorted(maps.Keys(hist))
	for _, v := range values {
		if at -= hist[v]; at <= 0 {
			return v
		}
	}
	return values[len(values)-1]
}

// writeText writes the total and the groups for people.
func (q *Quality) writeText(w io.Writer) error {
	if q.Total.Rows == 0 {
		return nil
	}
	fmt.Fprintln(w, "our count of prompt tokens against the engine's:")
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "model\tclass\trows\tequal\tpadded\tcut\tmean diff\tof the engine's\tp50 diff\tp95 |diff|")
	for _, g := range append([]QualityGroup{q.Total}, q.Groups...) {
		share := func(n int64) string { return fmt.Sprintf("%.1f %%", 100*float64(n)/float64(g.Rows)) }
		fmt.Fprintf(tw, "%s\t%s\t%d\t%s\t%s\t%s\t", g.Model, g.Class, g.Rows, share(g.Equal), share(g.Padded), share(g.Cut))
		if g.MeanDiff == nil || g.MeanShare == nil {
			fmt.Fprintln(tw, "-\t-\t-\t-")
			continue
		}
		fmt.Fprintf(tw, "%.1f\t%+.1f %%\t%d\t%d\n", *g.MeanDiff, 100**g.MeanShare, *g.P50Diff, *g.P95Abs)
	}
	if err := tw.Flush(); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}
