package analyze

import (
	"bytes"
	"fmt"
	"io"
)

// WriteMarkdown writes the head of WriteText for a merge request: the verdict, the rules, the tails of all buckets; the
// metrics of each bucket are folded away. Explanations, the course of the run and the truth are in the text alone.
func (r *Report) WriteMarkdown(w io.Writer) error {
	var b bytes.Buffer
	switch {
	case r.Gate != nil:
		fmt.Fprintf(&b, "## Verdict: %s\n\n", r.headline())
	case len(r.Invalid) > 0:
		b.WriteString("## Invalid run\n\n")
	default:
		b.WriteString("## Analysis\n\n")
	}
	for _, s := range r.summary() {
		if s[0] == ' ' {
			b.WriteString("  ")
			s = s[2:]
		}
		fmt.Fprintf(&b, "- %s\n", markdownEscapes.Replace(s))
	}
	if r.Gate != nil {
		fmt.Fprintf(&b, "\nGate: %s.\n\n", r.gateText())
		r.ruleTable().markdown(&b)
	}
	fmt.Fprintf(&b, "\nT%s:\n\n", tailsText[1:])
	tails, few := r.tailTable()
	tails.markdown(&b)
	markdownFew(&b, few)
	if r.hasOverRuns() {
		fmt.Fprintf(&b, "\nO%s.\n", overText[1:])
	}
	for _, bucket := range r.detailed() {
		if bucket.Scheduled == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n<details><summary>%s</summary>\n\n", markdownEscapes.Replace(bucketText(bucket)))
		t, few := metricTable(bucket)
		t.markdown(&b)
		markdownFew(&b, few)
		b.WriteString("\n</details>\n")
	}
	if more := r.undetailed(); more != "" {
		fmt.Fprintf(&b, "\n%s\n", more)
	}
	if len(r.Unchecked) > 0 {
		b.WriteString("\nNot checked:\n\n")
		for _, s := range r.Unchecked {
			fmt.Fprintf(&b, "- %s\n", markdownEscapes.Replace(s))
		}
	}
	return writeText(w, "the report", &b)
}

func markdownFew(b *bytes.Buffer, few map[string]int) {
	if s := fewText(few); s != "" {
		fmt.Fprintf(b, "\n%s\n", markdownEscapes.Replace(s))
	}
}
