package audit

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// WriteText writes the report for people.
func (r *Report) WriteText(w io.Writer) error {
	var tables []string
	for _, name := range slices.Sorted(maps.Keys(r.Tables)) {
		tables = append(tables, fmt.Sprintf("%s %d", name, r.Tables[name]))
	}
	fmt.Fprintf(w, "%d files, %d bytes, %d Parquet pages, %d strings held to the allow-list\n", r.Files, r.Bytes, r.Pages, r.Values)
	if len(tables) > 0 {
		fmt.Fprintf(w, "tables: %s\n", strings.Join(tables, ", "))
	}
	if r.Canaries > 0 {
		fmt.Fprintf(w, "%d canaries in %d spellings\n", r.Canaries, r.Spellings)
	}
	for _, u := range r.Unreadable {
		fmt.Fprintf(w, "unreadable: %s: %s\n", u.File, u.Reason)
	}
	if r.Found > 0 {
		tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		fmt.Fprintln(tw, "found\tin\tplace\tcolumn\tcanary\tspelling\tcount")
		for _, f := range r.Findings {
			canary := ""
			if f.Canary > 0 {
				canary = fmt.Sprint(f.Canary)
			}
			fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\t%s\t%d\n", f.What, f.File, f.Place, f.Column, canary, f.Variant, f.Count)
		}
		if err := tw.Flush(); err != nil {
			return fmt.Errorf("writing the report: %w", err)
		}
	}
	verdict := "nothing was found"
	switch {
	case r.Found > 0:
		verdict = fmt.Sprintf("%d things were found that should not be there", r.Found)
	case len(r.Unreadable) > 0:
		verdict = "nothing was found in what could be read"
	}
	if _, err := fmt.Fprintln(w, verdict); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}
