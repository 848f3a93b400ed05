package profile

import (
	"bufio"
	"fmt"
	"io"
	"text/tabwriter"
)

// shownLabels bounds the tenants and classes on the screen; JSON has all.
const shownLabels = 8

// WriteText writes the comparison as a table: what, A, B, and the distance where there is one. Errors of w are
// dropped: the caller's writer keeps its own.
func (c *Comparison) WriteText(w io.Writer) {
	b := bufio.NewWriter(w)
	defer b.Flush()
	fmt.Fprintf(b, "A  %s\nB  %s\n\n", c.A, c.B)
	t := tabwriter.NewWriter(b, 0, 8, 2, ' ', 0)
	defer t.Flush()
	row := func(what string, p Pair, more string) {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", what, opt(p.A), opt(p.B), more)
	}
	fmt.Fprintln(t, "\tA\tB\t")
	row("requests", c.Rows, "")
	row("request_rate /s", c.Rate, "B/A "+opt(c.RateOf))
	row("gap CV", c.IATCV, "")
	for _, l := range []struct {
		name string
		LengthPair
	}{{"input_length", c.Input}, {"output_length", c.Output}} {
		row(l.name+" mean", l.Mean, "KS "+opt(l.KS))
		row(l.name+" p50", l.P50, "")
		row(l.name+" p99", l.P99, "")
	}
	for _, s := range c.IDC {
		if s.A != nil || s.B != nil {
			row("IDC "+width(s.ScaleUs), s.Pair, "")
		}
	}
	row("sessions", c.Sessions.Sessions, "")
	row("turns a session", c.Sessions.MeanTurns, "")
	row("multi-turn share", c.Sessions.MultiTurn, "")
	row("cut sessions", c.Sessions.Cut, "")
	row("turn gap p50, s", c.Sessions.ThinkP50, "")
	for _, h := range c.Hits {
		if h.Capacity > 0 && h.Capacity&(h.Capacity-1) == 0 {
			continue // the powers of two are for charts
		}
		what := fmt.Sprintf("block hit, LRU %s", group3(h.Capacity))
		if h.Capacity == 0 {
			what = "block hit, all kept"
		}
		row(what, h.Pair, "")
	}
	labels := func(kind string, all []SharePair) {
		for i, s := range all {
			if i == shownLabels {
				fmt.Fprintf(t, "%d more of kind %s\t\t\t\n", len(all)-i, kind)
				break
			}
			row(kind+" "+label(s.Label), s.Pair, "")
		}
	}
	labels("tenant", c.Tenants)
	labels("class", c.Classes)
}
