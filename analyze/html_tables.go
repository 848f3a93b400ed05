package analyze

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tailgate/internal/jsonleaf"
)

// The tables of the page are made from the JSON of the report, so both hold the same numbers: a table names the place of
// its rows in the object (data-path), a row its key, a column the path of its number from there.

// grid is one table.
type grid struct {
	Path, Corner string
	Columns      []gridColumn
	Rows         []gridRow
}

// Width is how many columns the table of rules has.
func (g grid) Width() int { return len(g.Columns) + 4 }

type gridColumn struct{ Key, Head, Class string }

type gridRow struct {
	Key, Head string
	Cells     []gridCell
}

// gridCell is one number: its text in the JSON, and in short.
type gridCell struct {
	Exact, Short string
	Few          bool // fewer values than the percentile needs
}

// leaves are the numbers of v, nulls and infinities among them, in the order of its JSON.
func leaves(v any) ([]jsonleaf.Leaf, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return jsonleaf.Read(bytes.NewReader(data))
}

// cellOf shows a number with four digits.
func cellOf(l jsonleaf.Leaf) gridCell {
	switch l.Exact {
	case "null":
		return gridCell{l.Exact, "–", false}
	case "inf", "-inf":
		return gridCell{l.Exact, "∞", false}
	}
	x, err := strconv.ParseFloat(l.Exact, 64)
	if err != nil {
		return gridCell{l.Exact, l.Exact, false}
	}
	return gridCell{l.Exact, groupedFigure(Figure(x)), false}
}

// heads are the words of columns that are not those of their key.
var heads = strings.NewReplacer("metrics.", "", ".tail.", " ", "tail.", "tail ", "p995", "p99.5", "p999", "p99.9", "_ms", "", "_per_s", "/s", "_ratio", "", "_", " ", ".", " ")

// tabulate makes a table of one row for each element, with the numbers that keep lets in; it returns the column's class too.
func tabulate(path, corner string, n int, row func(i int) (key, head string, v any), keep func(path string) (class string, ok bool)) (grid, error) {
	g := grid{Path: path, Corner: corner}
	index := map[string]int{}
	rows := make([][]jsonleaf.Leaf, n)
	for i := range n {
		key, head, v := row(i)
		g.Rows = append(g.Rows, gridRow{Key: key, Head: head})
		all, err := leaves(v)
		if err != nil {
			return g, fmt.Errorf("making the table of %s: %w", path, err)
		}
		for _, l := range all {
			class, ok := keep(l.Path)
			if !ok {
				continue
			}
			if _, seen := index[l.Path]; !seen {
				index[l.Path] = len(g.Columns)
				g.Columns = append(g.Columns, gridColumn{l.Path, heads.Replace(l.Path), class})
			}
			rows[i] = append(rows[i], l)
		}
	}
	for i, list := range rows {
		g.Rows[i].Cells = make([]gridCell, len(g.Columns))
		for _, l := range list {
			g.Rows[i].Cells[index[l.Path]] = cellOf(l)
		}
	}
	return g, nil
}

// tailsTable has one row a bucket: what is counted, and the tails of the metrics that matter most.
func (r *Report) tailsTable() (grid, error) {
	return tabulate("buckets", "bucket", len(r.Buckets), func(i int) (string, string, any) {
		return strconv.Itoa(i), r.Buckets[i].By.String(), r.Buckets[i]
	}, tailColumns)
}

// tailColumns keeps counts, and the tails of tailMetrics.
func tailColumns(path string) (class string, ok bool) {
	name, metric := strings.CutPrefix(path, "metrics.")
	if !metric {
		return "", !strings.HasPrefix(path, "by.")
	}
	for _, t := range tailMetrics {
		if rest, ok := strings.CutPrefix(name, t.name+".tail."); ok && rest != "n" {
			if rest == "p50" {
				class = "edge"
			}
			return class, true
		}
	}
	return "", false
}

// metricsTable has one row a metric of a bucket, with every number of it.
func (r *Report) metricsTable(i int) (grid, error) {
	ms := r.Buckets[i].Metrics
	g, err := tabulate(fmt.Sprintf("buckets.%d.metrics", i), "metric", len(ms), func(k int) (string, string, any) {
		return ms[k].Name, ms[k].Name, ms[k]
	}, func(path string) (string, bool) {
		if path == "tail.n" {
			return "edge", true
		}
		return "", true
	})
	for k, row := range g.Rows {
		for c := range row.Cells {
			row.Cells[c].Few = slices.Contains(ms[k].Insufficient, g.Columns[c].Key)
		}
	}
	return g, err
}

// ratesTable has one row a run.
func (r *Report) ratesTable() (grid, error) {
	return tabulate("rates", "run", len(r.Rates), func(i int) (string, string, any) {
		name := "run " + strconv.Itoa(i+1)
		if id := r.Rates[i].RunID; id != nil {
			name = *id
		}
		return strconv.Itoa(i), name, r.Rates[i]
	}, tailColumns)
}

// serversTable has one row a target.
func (r *Report) serversTable() (grid, error) {
	return tabulate("servers", "target", len(r.Servers), func(i int) (string, string, any) {
		return strconv.Itoa(i), r.Servers[i].Target, r.Servers[i]
	}, func(path string) (string, bool) {
		return "", !strings.HasSuffix(path, ".n") && (!strings.HasSuffix(path, ".total") || strings.Contains(path, "preemptions"))
	})
}

// rulesTable has one row a rule.
func (r *Report) rulesTable() (grid, error) {
	if r.Gate == nil {
		return grid{}, nil
	}
	return tabulate("gate.rules", "rule", len(r.Gate.Rules), func(i int) (string, string, any) {
		return strconv.Itoa(i), r.Gate.Rules[i].Rule, r.Gate.Rules[i]
	}, func(path string) (string, bool) { return "", !strings.HasPrefix(path, "by.") })
}
