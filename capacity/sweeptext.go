package capacity

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"tailgate/analyze"
	"tailgate/internal/parquetio"
	"tailgate/internal/version"
	"tailgate/schemas"
)

// WriteText writes the points for people.
func (s *Sweep) WriteText(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "run\trequests/s\toutput tok/s\tper GPU\tin flight\tttft p95\tp99\ttpot p95\tp99\te2e p95\tp99\tkv\tgpu\tpreempted\twaiting\tgate")
	for _, p := range s.Points {
		cells := []string{p.Load.Name, fmt.Sprintf("%.4g", p.Facts.RequestsPerS), fmt.Sprintf("%.4g", p.Facts.OutputTokensPerS), orDash(p.PerGPU, 0), fmt.Sprintf("%.4g", p.Facts.Inflight)}
		for _, m := range []string{"ttft", "tpot", "e2e"} {
			for _, l := range p.Facts.Latency {
				if l.Metric == m {
					cells = append(cells, ms(l.P95), ms(l.P99))
				}
			}
		}
		g := p.Facts.Gauges
		cells = append(cells, orDash(g.KVUsage, -1), orDash(g.GPUUtil, -1), orDash(g.Preemptions, -1), orDash(g.Waiting, -1), p.Verdict)
		fmt.Fprintln(t, strings.Join(cells, "\t"))
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("writing the sweep: %w", err)
	}
	if s.OfflineRatio > 0 {
		if _, err := fmt.Fprintf(w, "server/offline: %.3g of the output tokens/s with everything at t0\n", s.OfflineRatio); err != nil {
			return fmt.Errorf("writing the sweep: %w", err)
		}
	}
	return nil
}

// ms writes a latency in ms.
func ms(f analyze.Figure) string {
	switch {
	case !f.Known():
		return "-"
	case !known(f):
		return "inf"
	}
	return short(float64(f)) + " ms"
}

// orDash writes a figure, or a dash for the one that stands for unknown.
func orDash(x, unknown float64) string {
	if x == unknown {
		return "-"
	}
	return short(x)
}

// WriteTable writes the points as rows of the capacity table; digest names the sweep.
func (s *Sweep) WriteTable(path, digest string) error {
	var rows []schemas.CapacityPoint
	for _, m := range s.Runs {
		rows = append(rows, m.points(digest, nil)...)
	}
	return parquetio.WriteFile(path, schemas.Footer{Schema: schemas.TableCapacity, Tool: version.String()}.Map(), rows)
}
