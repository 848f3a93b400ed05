package ingest

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// Range is a run of offsets, both ends included.
type Range struct {
	From int64 `json:"from"`
	To   int64 `json:"to"`
}

// maxRanges bounds the hole ranges that a report or footer lists; the count stays exact.
const maxRanges = 100

// Counts say what became of the offsets of a range. In offsets: Messages + SkippedMessages + DeadMessages +
// Holes is the length of the range. In records, of which a message may hold many: Rows, Skips and Dead.
type Counts struct {
	Messages        int64            `json:"messages"` // offsets that gave at least one row
	SkippedMessages int64            `json:"skipped_messages"`
	DeadMessages    int64            `json:"dead_messages"`
	Holes           int64            `json:"holes"` // offsets without a message: compacted, transactional, lost
	Lost            int64            `json:"lost"`  // the holes that retention made before they were read
	Rows            int64            `json:"rows"`
	Skips           map[string]int64 `json:"skips"` // records by Skip… reason
	Dead            map[string]int64 `json:"dead"`  // records by Dead… reason
}

func newCounts() Counts { return Counts{Skips: map[string]int64{}, Dead: map[string]int64{}} }

func (c *Counts) offsets() int64 { return c.Messages + c.SkippedMessages + c.DeadMessages + c.Holes }

// deadRecords and records count records over all reasons.
func (c *Counts) deadRecords() int64 { return sum(c.Dead) }
func (c *Counts) records() int64     { return c.Rows + sum(c.Skips) + sum(c.Dead) }

func (c *Counts) add(o Counts) {
	c.Messages += o.Messages
	c.SkippedMessages += o.SkippedMessages
	c.DeadMessages += o.DeadMessages
	c.Holes += o.Holes
	c.Lost += o.Lost
	c.Rows += o.Rows
	for k, n := range o.Skips {
		c.Skips[k] += n
	}
	for k, n := range o.Dead {
		c.Dead[k] += n
	}
}

func sum(m map[string]int64) (n int64) {
	for _, v := range m {
		n += v
	}
	return n
}

// PartitionReport is what one run did with one partition.
type PartitionReport struct {
	Topic      string `json:"topic"` // token
	Partition  int32  `json:"partition"`
	Generation int    `json:"generation"`
	First      int64  `json:"first"` // position at the start of the run
	Last       int64  `json:"last"`  // last offset that held a message, -1 when none did
	Next       int64  `json:"next"`  // position at the end
	Mark       int64  `json:"mark"`  // where the run was to end, -1 when not known beforehand
	Segments   int    `json:"segments"`
	Conflicts  int    `json:"conflicts"` // segments given up because another writer had them
	Counts
	HoleRanges []Range `json:"hole_ranges,omitempty"` // the first 100
}

// Report is what one run did. Only published segments count.
type Report struct {
	Format     string            `json:"format"`
	Partitions []PartitionReport `json:"partitions"`
	Segments   int               `json:"segments"`
	Total      Counts            `json:"total"`
	Clocks     []ClockLag        `json:"clocks"` // of sources that tell when they took a record
	Quality    Quality           `json:"quality"`
	Notes      []string          `json:"notes"`
}

func newReport(format string, partitions []PartitionReport, clocks []ClockLag, notes []string) *Report {
	r := &Report{Format: format, Partitions: partitions, Total: newCounts(), Clocks: clocks, Notes: append(notes, skewNotes(clocks)...)}
	if r.Notes == nil {
		r.Notes = []string{}
	}
	for i := range partitions {
		r.Segments += partitions[i].Segments
		r.Total.add(partitions[i].Counts)
	}
	return r
}

// WriteText writes the report for people.
func (r *Report) WriteText(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "topic\tpartition\tfirst\tnext\tmessages\trows\tskipped\tdead\tholes\tsegments")
	for i := range r.Partitions {
		p := &r.Partitions[i]
		fmt.Fprintf(tw, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\n", p.Topic, p.Partition, p.First, p.Next,
			p.Messages, p.Rows, sum(p.Skips), sum(p.Dead), p.Holes, p.Segments)
	}
	t := &r.Total
	fmt.Fprintf(tw, "total\t\t\t\t%d\t%d\t%d\t%d\t%d\t%d\n",
		t.Messages, t.Rows, sum(t.Skips), sum(t.Dead), t.Holes, r.Segments)
	if err := tw.Flush(); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	for i := range r.Partitions {
		if p := &r.Partitions[i]; len(p.HoleRanges) > 0 {
			fmt.Fprintf(w, "holes in partition %d: %s\n", p.Partition, rangesText(p.HoleRanges))
		}
	}
	writeReasons(w, "skipped", t.Skips)
	writeReasons(w, "dead letters", t.Dead)
	for _, n := range r.Notes {
		fmt.Fprintf(w, "note: %s\n", n)
	}
	return r.Quality.writeText(w)
}

func rangesText(ranges []Range) string {
	parts := make([]string, len(ranges))
	for i, r := range ranges {
		parts[i] = fmt.Sprintf("%d-%d", r.From, r.To)
	}
	return strings.Join(parts, ", ")
}

func writeReasons(w io.Writer, what string, counts map[string]int64) {
	for _, reason := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(w, "%s: %s %d\n", what, reason, counts[reason])
	}
}

func reasonsText(counts map[string]int64) string {
	parts := make([]string, 0, len(counts))
	for _, reason := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%s %d", reason, counts[reason]))
	}
	return strings.Join(parts, ", ")
}
