package analyze

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
)

// trendColumns are what the tables of a trend show, by the place in metrics.
var trendColumns = []metric{ttft, tpot, itl, e2e}

// WriteText writes the trend for people: a table per bucket, a row per day, and all days under them.
func (t *Trend) WriteText(w io.Writer) error {
	return t.write(w, "%s\n", (*table).text)
}

// WriteMarkdown writes the same for a merge request.
func (t *Trend) WriteMarkdown(w io.Writer) error {
	return t.write(w, "### %s\n\n", (*table).markdown)
}

func (t *Trend) write(w io.Writer, heading string, render func(*table, *bytes.Buffer)) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s\n", t.head())
	for _, bucket := range t.All.Buckets {
		b.WriteString("\n")
		fmt.Fprintf(&b, heading, bucketName(bucket.By))
		render(t.bucketTable(string(bucket.By)), &b)
	}
	for _, s := range t.Unchecked {
		fmt.Fprintf(&b, "\nnot checked: %s\n", s)
	}
	return writeText(w, "the trend", &b)
}

func (t *Trend) head() string {
	runs := 0
	for _, b := range t.All.Buckets {
		runs = max(runs, b.Runs)
	}
	days := 0
	for _, d := range t.Days {
		if d.Day != nil {
			days++
		}
	}
	return fmt.Sprintf("%d runs on %d days; percentiles in ms over all scheduled requests, failures infinite, from merged histograms "+
		"(up to %s below the exact value; verdicts are taken on exact rows)", runs, days, percent(t.HistogramError))
}

// bucketTable is a row for each day that has the bucket, and one for all.
func (t *Trend) bucketTable(by string) *table {
	out := &table{left: 1, head: []string{"day", "runs", "scheduled", "success"}}
	for _, m := range trendColumns {
		for _, p := range []string{"p50", "p95", "p99"} {
			out.head = append(out.head, metrics[m].label+" "+p)
		}
	}
	add := func(name string, day TrendDay) {
		for _, b := range day.Buckets {
			if string(b.By) == by {
				out.add(append([]string{name, strconv.Itoa(b.Runs), strconv.FormatInt(b.Scheduled, 10), short(b.SuccessRate)}, b.cells()...)...)
			}
		}
	}
	for _, day := range t.Days {
		name := "unknown"
		if day.Day != nil {
			name = *day.Day
		}
		add(name, day)
	}
	add("all", t.All)
	return out
}

func (b TrendBucket) cells() []string {
	var out []string
	for _, m := range trendColumns {
		cells := []string{"-", "-", "-"}
		for _, have := range b.Metrics {
			if have.Name == metrics[m].json {
				cells = []string{short(have.P50), short(have.P95), short(have.P99)}
			}
		}
		out = append(out, cells...)
	}
	return out
}

// WriteJSON writes the trend as one JSON object, indented, with a final newline.
func (t *Trend) WriteJSON(w io.Writer) error { return writeJSON(w, "the trend", t) }
