package capacity

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/goccy/go-yaml"

	"tailgate/internal/atomicfile"
	"tailgate/internal/parquetio"
	"tailgate/internal/version"
	"tailgate/schemas"
)

// Names of an envelope's files.
const (
	EnvelopeName   = "envelope.yaml"
	envelopeJSON   = "envelope.json"
	envelopeTable  = "envelope.parquet"
	pointsTable    = "points.parquet"
	envelopeReport = "envelope.html"
)

// Confirmed tells that every row has a confirmed rate.
func (e *Envelope) Confirmed() bool {
	for _, r := range e.Rows {
		if r.State != SearchConfirmed {
			return false
		}
	}
	return true
}

// Write writes the envelope's files into dir, each whole or not at all.
func (e *Envelope) Write(dir string) error {
	data, err := e.json()
	if err != nil {
		return err
	}
	text, err := yaml.JSONToYAML(data)
	if err != nil {
		return fmt.Errorf("writing the envelope: %w", err)
	}
	head := "# Capacity Envelope of " + e.Name + ". It holds for the traffic, the cluster and the SLOs that it names, and for no other.\n"
	page, err := e.html()
	if err != nil {
		return err
	}
	for name, data := range map[string][]byte{EnvelopeName: append([]byte(head), text...), envelopeJSON: data, envelopeReport: page} {
		if err := atomicfile.WriteFile(filepath.Join(dir, name), data); err != nil {
			return err
		}
	}
	footer := schemas.Footer{Schema: schemas.TableEnvelope, Tool: version.String()}
	if err := parquetio.WriteFile(filepath.Join(dir, envelopeTable), footer.Map(), e.table()); err != nil {
		return err
	}
	footer.Schema = schemas.TableCapacity
	return parquetio.WriteFile(filepath.Join(dir, pointsTable), footer.Map(), e.points)
}

func (e *Envelope) json() ([]byte, error) {
	data, err := json.MarshalIndent(e, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("writing the envelope: %w", err)
	}
	return append(data, '\n'), nil
}

// WriteJSON writes the envelope as one object.
func (e *Envelope) WriteJSON(w io.Writer) error {
	data, err := e.json()
	if err == nil {
		_, err = w.Write(data)
	}
	return err
}

func (e *Envelope) table() []schemas.CapacityEnvelope {
	var out []schemas.CapacityEnvelope
	for _, r := range e.Rows {
		row := schemas.CapacityEnvelope{RunID: e.Digest, Class: r.Class, Pattern: r.Pattern, Load: r.Load, State: r.State, Lower: r.Lower, Upper: r.Upper,
			Decides: r.Decides, TestedS: r.Tested, Offered10: r.Offered10, Offered60: r.Offered60, Headroom10: r.Headroom10, Headroom60: r.Headroom60,
			Full60: r.HeadroomFull, Calibration: e.Calibration, Folder: r.Run}
		row.DriftIDC = r.Drift
		if e.ProfileID != "" {
			row.ProfileID = &e.ProfileID
		}
		if e.TraceSHA256 != "" {
			row.TraceSHA256 = &e.TraceSHA256
		}
		if r.SafeQPS > 0 {
			row.SafeQPS = &r.SafeQPS
		}
		if r.Bound > 0 {
			row.Provisional = &r.Bound
		}
		out = append(out, row)
	}
	return out
}

// WriteText writes the envelope for people.
func (e *Envelope) WriteText(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Capacity Envelope of %s\nSLOs: %s\n\n", e.Name, strings.Join(e.SLOs, ", "))
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "class\tpattern\tSafe QPS\tinterval\tlimited by\ttested\toffered p99 (60 s)\theadroom")
	for _, r := range e.Rows {
		safe := fmt.Sprintf("%.4g", r.SafeQPS)
		if r.State != SearchConfirmed {
			safe = fmt.Sprintf("inconclusive (%.4g so far, needs about %.0f min)", r.Bound, r.NeedsMinutes)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%.4g–%.4g\t%s\t%.0f min\t%.4g\t%s\n", r.Class, r.Pattern, safe, r.Lower, r.Upper, r.Decides, r.Tested/60, r.Offered60, times(r.HeadroomFull))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(&b, "\nclosed loop: at most %.4g requests/s (no capacity: it waits for slow answers)\n", e.Ladder.Rate)
	if s := e.Soak; s != nil {
		fmt.Fprintf(&b, "soak: %.4g/s for %.0f min with %d bursts: %s, %s\n", s.Rate, s.Seconds/60, len(s.Bursts), s.Verdict, s.recoveryText())
	}
	if n := e.NMinus1; n != nil {
		fmt.Fprintf(&b, "one replica less: %.4g/s for %.0f min: %s", n.Rate, n.Seconds/60, n.Verdict)
		for _, r := range e.Rows {
			if r.Class == Mix && r.Headroom60 != nil {
				fmt.Fprintf(&b, ", %.3g times the offered p99 rate of 60 s (%.3g times that of 10 s)", *r.Headroom60, *r.Headroom10)
				break
			}
		}
		b.WriteString("\n")
		if l := n.Loss; l != nil {
			fmt.Fprintf(&b, "loss of a replica (%s) at %.0f s: %.3g %% of the requests failed, %s\n", l.How, l.AtSeconds, 100*l.FailedShare, l.recoveryText())
		}
	}
	if m := e.Micro; m != nil {
		fmt.Fprintf(&b, "micro, %d + %d tokens (%s):\n", m.InputLength, m.OutputLength, m.States)
		for _, r := range m.Rungs {
			fmt.Fprintf(&b, "  %d at a time: %.4g output tokens/s, %.4g requests/s\n", r.Concurrency, r.OutputTokensPerS, r.RequestsPerS)
		}
	}
	for _, p := range e.Pairs {
		for _, c := range p.Changes {
			fmt.Fprintf(&b, "at %gx: %s\n", p.Scale, c.text())
		}
	}
	for _, class := range slices.Sorted(maps.Keys(e.BurstSensitivity)) {
		fmt.Fprintf(&b, "burst sensitivity of %s: %.3g\n", class, e.BurstSensitivity[class])
	}
	fmt.Fprintln(&b, e.calibrationText())
	if e.ProfileID != "" {
		fmt.Fprintf(&b, "profile: %s (%s)\n", e.Profile, e.ProfileID)
	}
	for _, r := range e.Rows {
		for _, text := range r.Warnings {
			fmt.Fprintf(&b, "warning: %s/%s: %s\n", r.Class, r.Pattern, text)
		}
	}
	for _, text := range e.Pitfalls {
		fmt.Fprintf(&b, "pitfall: %s\n", text)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// calibrationText says how far the test's latencies are from those of production. The rates are not corrected by it.
func (e *Envelope) calibrationText() string {
	switch c := e.Calibration; {
	case c == nil:
		return "calibration: not known; a backtest of a replay at 1.0x tells by how much the test's p99 differs from production's"
	case *c > 1:
		return fmt.Sprintf("calibration: the test's p99 is %.3g times that of production, so the rates are on the safe side; they are not corrected by it", *c)
	default:
		return fmt.Sprintf("calibration: the test's p99 is %.3g times that of production, so the rates may be too high; they are not corrected by it", *c)
	}
}

func times(x *float64) string {
	if x == nil {
		return "-"
	}
	return fmt.Sprintf("%.3gx", *x)
}
