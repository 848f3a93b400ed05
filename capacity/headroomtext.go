package capacity

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"tailgate/schemas"
)

// WriteText writes the headroom for people.
func (h *Headroom) WriteText(w io.Writer) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "Headroom of %s%s\n\n", h.Envelope, h.when())
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "class\tpattern\tSafe QPS\tpeak 60 s\tused\theadroom\tpeak 10 s\tused\tN−1\tused\theadroom\t")
	for i := range h.Rows {
		fmt.Fprintln(t, strings.Join(h.cells(&h.Rows[i]), "\t")+"\t"+stateText(&h.Rows[i]))
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("writing the headroom: %w", err)
	}
	b.WriteString("\n")
	for _, line := range h.lines() {
		fmt.Fprintln(&b, line)
	}
	if _, err := w.Write(b.Bytes()); err != nil {
		return fmt.Errorf("writing the headroom: %w", err)
	}
	return nil
}

func (h *Headroom) when() string {
	switch {
	case h.Day == "":
		return ", traffic without a wall time"
	case h.Days == 1:
		return " on " + h.Day
	}
	return fmt.Sprintf(" on %s (%d days since %s)", h.Day, h.Days, h.FirstDay)
}

// cells are the columns of a row; – is not known.
func (h *Headroom) cells(r *schemas.HeadroomRow) []string {
	wide, narrow := peakOf(r, 60), peakOf(r, 10)
	decides := wide
	if h.DecidesS == 10 {
		decides = narrow
	}
	return []string{r.Class, r.Pattern, rateText(r.SafeQPS), peakText(wide), percentText(wide.Used), leftText(decides.Headroom, decides.HeadroomRate), peakText(narrow),
		percentText(narrow.Used), rateText(r.NMinus1), percentText(decides.UsedNMinus1), leftText(decides.HeadroomNMinus1, decides.RateNMinus1)}
}

// peakOf is the peak of a width; Peak is -1 where it is not told.
func peakOf(r *schemas.HeadroomRow, width int) schemas.HeadroomPeak {
	for _, p := range r.Peaks {
		if p.WidthS == width {
			return p
		}
	}
	return schemas.HeadroomPeak{Peak: -1}
}

func rateText(x *float64) string {
	if x == nil {
		return "–"
	}
	return short(*x) + "/s"
}

func peakText(p schemas.HeadroomPeak) string {
	if p.Peak < 0 {
		return "–"
	}
	return short(p.Peak) + "/s"
}

func percentText(x *float64) string {
	if x == nil {
		return "–"
	}
	return fmt.Sprintf("%.0f %%", 100**x)
}

func leftText(share, rate *float64) string {
	if share == nil {
		return "–"
	}
	return fmt.Sprintf("%.0f %% (%s/s)", 100**share, short(*rate))
}

// stateText says what a row's state means, "" where all is well.
func stateText(r *schemas.HeadroomRow) string {
	switch r.State {
	case schemas.HeadroomOverSafe:
		return "OVER SAFE QPS"
	case schemas.HeadroomOverNMinus1:
		return "does not survive the loss of a replica"
	case schemas.HeadroomUntested:
		return "no confirmed rate"
	case schemas.HeadroomNoTraffic:
		return "no such traffic in the profile"
	}
	if r.GrowthHolds != nil && !*r.GrowthHolds {
		return "declared growth does not fit"
	}
	return ""
}

// lines are the sentences under the table.
func (h *Headroom) lines() []string {
	out := []string{fmt.Sprintf("peaks of %d s bins decide; a declared growth of %.3g is held against N−1 where it was tested", h.DecidesS, h.Growth)}
	for _, r := range h.Rows {
		if r.Trend != nil {
			out = append(out, fmt.Sprintf("trend of %s/%s: %s", r.Class, r.Pattern, r.Trend.Text))
		}
	}
	most := map[string]schemas.HeadroomHour{}
	var classes []string
	for _, n := range h.Hours {
		if _, seen := most[n.Class]; !seen {
			classes = append(classes, n.Class)
		}
		if n.Replicas > most[n.Class].Replicas {
			most[n.Class] = n
		}
	}
	for _, class := range classes {
		n := most[class]
		text := fmt.Sprintf("replicas of %s: at most %d (%d to lose one), at %02d UTC, at %s/s each", class, n.Replicas, n.ReplicasNMinus1, n.Hour, short(n.PerReplica))
		if !n.Tested {
			text += "; carried over from the tested cluster, not tested"
		}
		out = append(out, text)
	}
	switch {
	case h.Stale == nil:
	case *h.Stale:
		for _, m := range h.Moved {
			out = append(out, "stale: "+m.Text)
		}
		out = append(out, "test again: "+strings.Join(h.Again, ", "))
	default:
		out = append(out, "the traffic is within what was tested")
	}
	for _, n := range h.Notes {
		out = append(out, "note: "+n)
	}
	return out
}

// WriteCSV writes the replicas that each hour needs, for autoscalers that go by a schedule.
func (h *Headroom) WriteCSV(w io.Writer) error {
	c := csv.NewWriter(w)
	number := func(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }
	_ = c.Write([]string{"hour", "class", "peak_request_rate", "replicas", "replicas_n_minus_1", "per_replica_request_rate", "days", "tested"}) // Error tells
	for _, n := range h.Hours {
		_ = c.Write([]string{strconv.Itoa(n.Hour), n.Class, number(n.Peak), strconv.Itoa(n.Replicas), strconv.Itoa(n.ReplicasNMinus1), number(n.PerReplica),
			strconv.Itoa(n.Days), strconv.FormatBool(n.Tested)})
	}
	c.Flush()
	if err := c.Error(); err != nil {
		return fmt.Errorf("writing the replicas by hour: %w", err)
	}
	return nil
}
