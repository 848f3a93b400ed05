package refresh

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// said is the outcome for people.
func (s *Status) said() string {
	switch s.Outcome {
	case OutcomeNoNewData:
		return "nothing new"
	case OutcomeDrift:
		return "done, the traffic has drifted"
	case OutcomeLate:
		if slices.ContainsFunc(s.Days, func(d DayStatus) bool { return d.Waiting > 0 || d.Refused > 0 }) {
			return "done, late data waits"
		}
		return "done, the log may still bring late data"
	}
	return s.Outcome
}

// WriteText writes the status for people.
func (s *Status) WriteText(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(tw, "%s: %s\n", s.Day, s.said())
	for _, st := range s.Steps {
		fmt.Fprintf(tw, "  %s\t%s\t%s\t%d rows\t%s\t%.1f s\t%s\n", st.Day, st.Step, st.State, st.Rows, sizeText(st.Bytes), st.Seconds, st.Reason)
	}
	if err := tw.Flush(); err != nil {
		return fmt.Errorf("writing the status: %w", err)
	}
	for _, d := range s.Days {
		switch {
		case d.Refused > 0:
			fmt.Fprintf(w, "%s: %d rows are refused, its key is gone: tailgate refresh … --backfill %s takes them\n", d.Day, d.Refused, d.Day)
		case d.Waiting > 0:
			fmt.Fprintf(w, "%s: %d late rows are in no build\n", d.Day, d.Waiting)
		case !d.Complete && d.Rows > 0:
			fmt.Fprintf(w, "%s: open until the log has come to %s\n", d.Day, d.OpenUntil)
		}
	}
	if d := s.Drift; d != nil && len(d.Drifted) > 0 {
		fmt.Fprintf(w, "drifted from %s: %s\n", d.Against, strings.Join(d.Drifted, ", "))
	}
	for _, n := range s.Notes {
		fmt.Fprintf(w, "note: %s\n", n)
	}
	_, err := fmt.Fprintf(w, "last good day: %s\n", orNone(s.LastGoodDay))
	if err != nil {
		return fmt.Errorf("writing the status: %w", err)
	}
	return nil
}

func orNone(s string) string {
	if s == "" {
		return "none yet"
	}
	return s
}
