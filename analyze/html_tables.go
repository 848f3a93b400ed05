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
	Bounds       []boundCell
}

// boundCell is one end of the interval of a number, at its own place from the row on.
type boundCell struct {
	Key string
	gridCell
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
		return gridCell{Exact: l.Exact, Short: "–"}
	case "inf":
		return gridCell{Exact: l.Exact, Short: "∞"}
	case "-inf":
		return gridCell{Exact: l.Exact, Short: "−∞"}
	}
	x, err := strconv.ParseFloat(l.Exact, 64)
	if err != nil {
		return gridCell{Exact: l.Exact, Short: l.Exact}
	}
	return gridCell{Exact: l.Exact, Short: groupedFigure(Figure(x))}
}

// heads are the words of columns that are not those of their key.
var heads = strings.NewReplacer("metrics.", "", "tails.", "", ".tail.", " ", "tail.", "tail ", "p995", "p99.5", "p999", "p99.9", "_ms", "", "_per_s", "/s", "_ratio", "", "_", " ", ".", " ")

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
				index[l.Path] = 0
				g.Columns = append(g.Columns, gridColumn{l.Path, heads.Replace(l.Path), class})
			}
			rows[i] = append(rows[i], l)
		}
	}
	all := slices.Clone(g.Columns)
	g.Columns = slices.DeleteFunc(g.Columns, func(c gridColumn) bool { // an object that is null in some rows
		return slices.ContainsFunc(all, func(o gridColumn) bool { return strings.HasPrefix(o.Key, c.Key+".") })
	})
	for i, c := range g.Columns {
		index[c.Key] = i + 1
	}
	for i, list := range rows {
		g.Rows[i].Cells = make([]gridCell, len(g.Columns))
		for _, l := range list {
			if c := index[l.Path]; c > 0 {
				g.Rows[i].Cells[c-1] = cellOf(l)
			}
		}
	}
	return g, nil
}

// tailsTable has one row a bucket: what is counted, and the tails of the metrics that matter most.
func (r *Report) tailsTable() (grid, error) {
	g, err := tabulate("buckets", "bucket", len(r.Buckets), func(i int) (string, string, any) {
		return strconv.Itoa(i), r.Buckets[i].By.String(), r.Buckets[i]
	}, tailColumns)
	if err != nil {
		return g, err
	}
	return g.sorted(func(key string) int {
		switch {
		case slices.Contains([]string{"scheduled", "ok", "success_rate"}, key):
			return 0
		case strings.HasPrefix(key, "metrics."):
			return 1
		}
		return 2
	}), nil
}

// sorted puts the columns in order of rank, and leaves the order of equals.
func (g grid) sorted(rank func(key string) int) grid {
	order := make([]int, len(g.Columns))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return rank(g.Columns[a].Key) - rank(g.Columns[b].Key) })
	out := g
	out.Columns, out.Rows = make([]gridColumn, len(order)), slices.Clone(g.Rows)
	for r := range out.Rows {
		out.Rows[r].Cells = make([]gridCell, len(order))
	}
	for i, from := range order {
		out.Columns[i] = g.Columns[from]
		for r := range out.Rows {
			out.Rows[r].Cells[i] = g.Rows[r].Cells[from]
		}
	}
	return out
}

// tailColumns keeps counts, and the tails of tailMetrics.
func tailColumns(path string) (class string, ok bool) {
	name, metric := strings.CutPrefix(path, "metrics.")
	if !metric {
		return "", !strings.HasPrefix(path, "by.")
	}
	for _, t := range tailMetrics {
		if rest, ok := strings.CutPrefix(name, t.name+".tail."); ok && slices.Contains(boundedPercentiles, rest) {
			return edgeAt(rest), true
		}
	}
	return "", false
}

// edgeAt begins a group of columns with p50.
func edgeAt(percentile string) (class string) {
	if percentile == "p50" {
		return "edge"
	}
	return ""
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
		return "", !strings.HasPrefix(path, "needs.") && !strings.HasPrefix(path, intervalsPath)
	})
	if err != nil {
		return g, err
	}
	for k, row := range g.Rows {
		all, err := leaves(ms[k])
		if err != nil {
			return g, err
		}
		for c := range row.Cells {
			name, tail := strings.CutPrefix(g.Columns[c].Key, "tail.")
			row.Cells[c].Few = !tail && slices.Contains(ms[k].Insufficient, name)
			if tail && slices.Contains(boundedPercentiles, name) {
				row.Cells[c].Bounds = boundsOf(all, intervalsPath+name)
			}
		}
	}
	return g, nil
}

// intervalsPath is where the intervals of a tail's percentiles stand, and boundedPercentiles are those that are shown with
// them.
const intervalsPath = "tail.intervals."

var boundedPercentiles = []string{"p50", "p95", "p99"}

// boundsOf are the ends of the interval at path, where there is one.
func boundsOf(all []jsonleaf.Leaf, path string) []boundCell {
	var out []boundCell
	for _, l := range all {
		if l.Path == path+".lower" || l.Path == path+".upper" {
			out = append(out, boundCell{l.Path, cellOf(l)})
		}
	}
	return out
}

// ratesTable has one row a run.
func (r *Report) ratesTable() (grid, error) {
	return tabulate("rates", "run", len(r.Rates), func(i int) (string, string, any) {
		name := "run " + strconv.Itoa(i+1)
		if id := r.Rates[i].RunID; id != nil {
			name = *id
		}
		return strconv.Itoa(i), name, r.Rates[i]
	}, func(path string) (string, bool) {
		return edgeAt(path[strings.LastIndexByte(path, '.')+1:]), path != "run_id" && !strings.HasSuffix(path, ".n")
	})
}

// serversTable has one row a target.
func (r *Report) serversTable() (grid, error) {
	return tabulate("servers", "target", len(r.Servers), func(i int) (string, string, any) {
		return strconv.Itoa(i), r.Servers[i].Target, r.Servers[i]
	}, func(path string) (string, bool) {
		return "", path != "target" && !strings.HasSuffix(path, ".n") && (!strings.HasSuffix(path, ".total") || strings.Contains(path, "preemptions"))
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
