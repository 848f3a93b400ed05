package capacity

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"tailgate/schemas"
)

// promFile writes Prometheus's text format, metric by metric.
type promFile struct {
	bytes.Buffer
	last string
}

// add writes a sample; labels are name, value, name, value …. Samples of a metric come one after another.
func (p *promFile) add(name, help string, v float64, labels ...string) {
	name = "tailgate_headroom_" + name
	if name != p.last {
		fmt.Fprintf(p, "# HELP %s %s\n# TYPE %s gauge\n", name, help, name)
		p.last = name
	}
	p.WriteString(name)
	for i := 0; i+1 < len(labels); i += 2 {
		sep := ","
		if i == 0 {
			sep = "{"
		}
		fmt.Fprintf(p, `%s%s="%s"`, sep, labels[i], promEscape.Replace(labels[i+1]))
	}
	if len(labels) > 0 {
		p.WriteString("}")
	}
	text := strconv.FormatFloat(v, 'g', -1, 64)
	if math.IsInf(v, 1) {
		text = "+Inf"
	}
	p.WriteString(" " + text + "\n")
}

var promEscape = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// WritePrometheus writes the figures as Prometheus text. A figure that is not known has no sample; a breach that is not to
// come is +Inf.
func (h *Headroom) WritePrometheus(w io.Writer) error {
	p := &promFile{}
	if t, err := time.Parse(time.DateOnly, h.Day); err == nil {
		p.add("day_timestamp_seconds", "Begin of the UTC day that was looked at, in unix time.", float64(t.Unix()))
	}
	p.add("over_safe", "1: a peak is above Safe QPS.", truth(h.OverSafe))
	p.add("over_n_minus_1", "1: a peak is above the rate that was tested with one replica less.", truth(h.OverNMinus1))
	if h.Stale != nil {
		p.add("stale", "1: the traffic left what the envelope was tested on.", truth(*h.Stale))
	}
	for _, cell := range h.Again {
		p.add("test_again", "Cells of the envelope that the traffic has left.", 1, "cell", cell)
	}
	for _, m := range []struct {
		name, help string
		of         func(schemas.HeadroomRow) *float64
	}{
		{"safe_request_rate", "Safe QPS, requests/s.", func(r schemas.HeadroomRow) *float64 { return r.SafeQPS }},
		{"n_minus_1_request_rate", "Rate that was tested with one replica less, requests/s.", func(r schemas.HeadroomRow) *float64 { return r.NMinus1 }},
		{"mean_request_rate", "Mean rate of the day, requests/s.", func(r schemas.HeadroomRow) *float64 { return r.MeanRate }},
	} {
		h.deciding(func(r schemas.HeadroomRow) {
			if v := m.of(r); v != nil {
				p.add(m.name, m.help, *v, "class", r.Class, "pattern", r.Pattern)
			}
		})
	}
	for _, m := range []struct {
		name, help string
		of         func(schemas.HeadroomPeak) *float64
	}{
		{"peak_request_rate", "Highest rate of the day in bins of the width, requests/s.", func(p schemas.HeadroomPeak) *float64 { return &p.Peak }},
		{"used_ratio", "Highest rate over Safe QPS.", func(p schemas.HeadroomPeak) *float64 { return p.Used }},
		{"n_minus_1_used_ratio", "Highest rate over the rate tested with one replica less.", func(p schemas.HeadroomPeak) *float64 { return p.UsedNMinus1 }},
	} {
		h.deciding(func(r schemas.HeadroomRow) {
			for _, peak := range r.Peaks {
				if v := m.of(peak); v != nil {
					p.add(m.name, m.help, *v, "class", r.Class, "width", fmt.Sprintf("%ds", peak.WidthS))
				}
			}
		})
	}
	h.promTrend(p)
	for _, n := range h.Hours {
		p.add("replicas", "Replicas that the hour of the UTC day needs.", float64(n.Replicas), "class", n.Class, "hour", strconv.Itoa(n.Hour))
	}
	for _, n := range h.Hours {
		p.add("replicas_n_minus_1", "Replicas that it needs so that one may be lost.", float64(n.ReplicasNMinus1), "class", n.Class, "hour", strconv.Itoa(n.Hour))
	}
	if _, err := w.Write(p.Bytes()); err != nil {
		return fmt.Errorf("writing the metrics: %w", err)
	}
	return nil
}

// promTrend writes the days until a breach with their interval, where they can be told.
func (h *Headroom) promTrend(p *promFile) {
	never := math.Inf(1)
	for _, m := range []struct {
		name, help string
		of         func(*schemas.HeadroomTrend) *float64
	}{
		{"days_until_breach", "Days until the weeks' highest peaks reach Safe QPS; +Inf: not as it goes.", func(t *schemas.HeadroomTrend) *float64 { return t.Breach }},
		{"days_until_breach_lower", "Lower end of its 95 % interval.", func(t *schemas.HeadroomTrend) *float64 { return t.BreachLo }},
		{"days_until_breach_upper", "Upper end of its 95 % interval.", func(t *schemas.HeadroomTrend) *float64 { return t.BreachHi }},
	} {
		h.deciding(func(r schemas.HeadroomRow) {
			if r.Trend == nil || r.Trend.State == schemas.TrendNeedsDays {
				return
			}
			v := m.of(r.Trend)
			if v == nil {
				v = &never
			}
			p.add(m.name, m.help, *v, "class", r.Class)
		})
	}
}

// deciding visits the rows that classes are judged by.
func (h *Headroom) deciding(visit func(schemas.HeadroomRow)) {
	for _, r := range h.Rows {
		if r.Decides {
			visit(r)
		}
	}
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
