package trace

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// WriteText renders the description on one screen.
func (i Info) WriteText(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	line := func(key, format string, args ...any) { fmt.Fprintf(tw, key+"\t"+format+"\n", args...) }
	line("trace", "%s (%s, %s bytes)", i.Name, i.Format, grouped(i.Bytes))
	if i.StartedAt != nil {
		line("started at", "%s", i.StartedAt.Format(time.RFC3339Nano))
	}
	line("rows", "%s", i.rowsText())
	line("span", "%v of %v, %s requests/s, CV of the gaps %s", micros(i.SpanUs), micros(i.LengthUs), figure(i.Rate), figure(i.IATCV))
	line("stamps", "%s distinct, at most %s at one stamp", grouped(i.DistinctStamps), counted(i.MaxTied, "row"))
	if i.QuantumUs > 0 {
		how := "kept"
		if i.Spread {
			how = "rows spread inside it"
		}
		line("clock", "ticks every %v, %s", micros(i.QuantumUs), how)
	}
	for _, l := range []struct {
		key string
		LengthInfo
	}{{"input tokens", i.Input}, {"output tokens", i.Output}} {
		if l.N > 0 {
			line(l.key, "%s in %s; mean %s, min %d, p50 %d, p95 %d, p99 %d, max %d", grouped(l.Tokens), counted(l.N, "row"), tokens(l.Mean),
				*l.Min, *l.P50, *l.P95, *l.P99, *l.Max)
		}
	}
	if i.BlockSize > 0 {
		line("blocks", "%s distinct of %d tokens; an endless cache hits %s of blocks, %s of tokens", grouped(i.DistinctBlocks),
			i.BlockSize, figure(i.BlockHit), figure(i.TokenHit))
	}
	line("sessions", "%s", i.sessionsText())
	for _, l := range []struct {
		key    string
		labels []LabelCount
	}{{"classes", i.Classes}, {"tenants", i.Tenants}, {"models", i.Models}} {
		if len(l.labels) > 0 {
			line(l.key, "%s", labelList(l.labels))
		}
	}
	return tw.Flush()
}

func (i *Info) rowsText() string {
	parts := []string{grouped(i.Rows)}
	for _, p := range []struct {
		n    int64
		what string
	}{{i.Failed, "failed in the log"}, {i.UnknownOutput, "without a known output length"}, {i.Damaged, "with a prompt that was cut or redacted in the log"}} {
		if p.n > 0 {
			parts = append(parts, grouped(p.n)+" "+p.what)
		}
	}
	return strings.Join(parts, ", ")
}

func (i *Info) sessionsText() string {
	if i.SessionsFrom == "none" {
		return "nothing ties a row to another"
	}
	ways := strings.NewReplacer("session_id", "session ids", "parent", "parents", "prefix", "shared prefixes", "+", " and ").Replace(i.SessionsFrom)
	return fmt.Sprintf("%s by %s; %s with several turns, %s turns in the mean, at most %s", grouped(i.Sessions), ways,
		grouped(i.MultiTurn), figure(i.MeanTurns), grouped(i.MaxTurns))
}

// labelList names the most frequent labels.
func labelList(labels []LabelCount) string {
	const shown = 8
	var parts []string
	for k, l := range labels {
		if k == shown {
			parts = append(parts, fmt.Sprintf("and %d more", len(labels)-k))
			break
		}
		parts = append(parts, l.Label+" "+grouped(l.Rows))
	}
	return strings.Join(parts, ", ")
}

// counted is a number of things: "1 row", "2,000 rows".
func counted(n int64, what string) string {
	if n != 1 {
		what += "s"
	}
	return grouped(n) + " " + what
}

// grouped is n with its thousands apart.
func grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// tokens is a mean number of tokens, to one decimal below 1,000.
func tokens(v *float64) string {
	if v == nil || *v < 1000 {
		return figure(v)
	}
	return grouped(int64(*v + .5))
}

func figure(v *float64) string {
	if v == nil {
		return "–"
	}
	return fmt.Sprintf("%.4g", *v)
}
