package refresh

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"tailgate/anonymize"
	"tailgate/ingest"
	"tailgate/internal/atomicfile"
	"tailgate/internal/fault"
)

// Plan is what a night will take. Nothing of it was measured now: rates and sizes are those of the last night.
type Plan struct {
	Day        string          `json:"day"`
	Mark       time.Time       `json:"mark"` // the log is read up to here
	Partitions []PlanPartition `json:"partitions"`
	Waiting    int64           `json:"waiting_records"`
	From       string          `json:"rates_of,omitempty"` // day whose run the rates are of; "" = there was none
	Stages     []PlanStage     `json:"stages"`
	CPUHours   *float64        `json:"cpu_hours"`  // of all stages; null without rates
	NeedHours  *float64        `json:"need_hours"` // until the log is read; null without rates
	DiskNeed   *int64          `json:"disk_need_bytes"`
	DiskFree   *int64          `json:"disk_free_bytes"` // null for a bucket
	Retention  *RetainStatus   `json:"retention"`       // what would be removed and destroyed now; nothing was
	Warnings   []string        `json:"warnings"`        // less than twice of what is needed is left
	Refused    []string        `json:"refused"`         // less than what is needed
}

// PlanPartition is one partition of the log.
type PlanPartition struct {
	Topic         string   `json:"topic"` // token
	Partition     int32    `json:"partition"`
	Next          int64    `json:"next"`
	Mark          int64    `json:"mark"` // -1 when not known before reading
	Waiting       int64    `json:"waiting"`
	Lost          int64    `json:"lost"`                 // deleted before they were read
	RetentionLeft *float64 `json:"retention_left_hours"` // until the oldest unread record may be deleted; null when not told
}

// PlanStage is one stage.
type PlanStage struct {
	Step     Step    `json:"step"`
	CPUHours float64 `json:"cpu_hours"`
}

// margin is how much more than needed there should be.
const margin = 2

// MakePlan tells what [Run] would have to do. It takes no lease and changes nothing.
func MakePlan(ctx context.Context, o Options) (*Plan, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	n := &Night{Config: o.Config, Root: o.Root, Keys: o.Keys, Day: o.Day, Tool: o.Tool, Now: o.Now, Log: o.Logger, o: &o, crash: o.Crash, Status: &Status{}}
	mark, err := n.mark(o.Day)
	if err != nil {
		return nil, err
	}
	p := &Plan{Day: o.Day, Mark: mark, Partitions: []PlanPartition{}, Stages: []PlanStage{}, Warnings: []string{}, Refused: []string{}}
	left, err := n.planLog(ctx, p)
	if err != nil {
		return nil, err
	}
	if err := n.planWork(ctx, p); err != nil {
		return nil, err
	}
	if err := n.previous(ctx, n.Now().UTC()); err != nil {
		return nil, err
	}
	if p.Retention, err = PlanRetention(ctx, n); err != nil {
		return nil, err
	}
	p.judge(left)
	return p, nil
}

// planLog asks the log, and tells the shortest time that its retention leaves; nil when not told.
func (n *Night) planLog(ctx context.Context, p *Plan) (left *float64, err error) {
	keys, err := n.Keys.Load(ctx, "") // any epoch names topics
	if err != nil {
		return nil, err
	}
	x, err := anonymize.NewHasher(keys, anonymize.Options{Memo: -1})
	if err != nil {
		return nil, err
	}
	defer x.Close()
	src, err := n.o.Open(ctx)
	if err != nil {
		return nil, err
	}
	if c, ok := src.(interface{ Close() }); ok {
		defer c.Close()
	}
	io := n.ingestOptions()
	io.Anonymizer, io.OnProgress = x, nil
	if _, ok := src.(timed); ok && !p.Mark.After(n.Now()) {
		io.Until, io.Proof = p.Mark, true
	}
	waiting, err := ingest.LookAhead(ctx, src, io)
	if err != nil {
		return nil, err
	}
	keeps, told := time.Duration(0), false
	if k, ok := src.(interface {
		Retention(context.Context) (time.Duration, bool)
	}); ok {
		keeps, told = k.Retention(ctx)
	}
	for _, w := range waiting {
		pp := PlanPartition{Topic: w.Topic, Partition: w.Partition, Next: w.Next, Mark: w.Mark}
		if from := max(w.Next, w.First); w.Mark > from {
			pp.Waiting = w.Mark - from
		}
		if w.Next > 0 && w.First > w.Next {
			pp.Lost = w.First - w.Next
		}
		if told && !w.Oldest.IsZero() {
			h := w.Oldest.Add(keeps).Sub(n.Now()).Hours()
			pp.RetentionLeft = &h
			if left == nil || h < *left {
				left = &h
			}
		}
		p.Waiting += pp.Waiting
		p.Partitions = append(p.Partitions, pp)
	}
	return left, nil
}

// planWork scales what the last night took.
func (n *Night) planWork(ctx context.Context, p *Plan) error {
	if dir, ok := n.Root.Folder(); ok {
		if free, err := atomicfile.Free(dir); err == nil && free >= 0 {
			p.DiskFree = &free
		} else if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	r, err := n.lastRates(ctx)
	if err != nil || r == nil {
		return err
	}
	p.From = r.Day
	rows := float64(p.Waiting) * r.RowsPerRecord
	all, need := 0.0, 0.0
	var disk float64
	for _, s := range Steps() {
		rate, ok := r.Steps[s]
		if !ok {
			continue
		}
		if s == StepIngest {
			need = float64(p.Waiting) * r.SecondsPerRecord / 3600
		}
		h := rows * rate.CPUSecondsPerRow / 3600
		all += h
		disk += rows * rate.BytesPerRow
		p.Stages = append(p.Stages, PlanStage{Step: s, CPUHours: h})
	}
	bytes := int64(disk)
	p.CPUHours, p.NeedHours, p.DiskNeed = &all, &need, &bytes
	return nil
}

// judge warns and refuses.
func (p *Plan) judge(left *float64) {
	say := func(have, need float64, what string) {
		switch {
		case have < need:
			p.Refused = append(p.Refused, what)
		case have < margin*need:
			p.Warnings = append(p.Warnings, what+": less than twice that")
		}
	}
	if p.DiskFree != nil && p.DiskNeed != nil {
		say(float64(*p.DiskFree), float64(*p.DiskNeed), fmt.Sprintf("the disk has %s free, the night needs about %s", sizeText(*p.DiskFree), sizeText(*p.DiskNeed)))
	}
	if left != nil && p.NeedHours != nil && p.Waiting > 0 {
		say(*left, *p.NeedHours, fmt.Sprintf("retention leaves %.1f h for the oldest unread record, reading what waits takes about %.1f h", *left, *p.NeedHours))
	} else if left != nil && *left <= 0 {
		p.Refused = append(p.Refused, "retention may delete the oldest unread record at any moment")
	}
	for _, part := range p.Partitions {
		if part.Lost > 0 {
			p.Refused = append(p.Refused, fmt.Sprintf("partition %d: retention has deleted %d records that were not read", part.Partition, part.Lost))
		}
	}
}

// Refusal is the error of a night that cannot be done; nil when it can.
func (p *Plan) Refusal() error {
	if len(p.Refused) == 0 {
		return nil
	}
	return fault.Mark(fmt.Errorf("planning %s: %s", p.Day, strings.Join(p.Refused, "; ")), fault.Failure,
		"make room, keep the topic for longer, or read it with several workers (tailgate ingest --worker i/n)")
}

// WriteText writes the plan for people.
func (p *Plan) WriteText(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(tw, "%s: %d records wait up to %s\n", p.Day, p.Waiting, p.Mark.Format(time.RFC3339))
	fmt.Fprintln(tw, "topic\tpartition\tnext\tmark\twaiting\tretention left")
	for _, part := range p.Partitions {
		left := "not told"
		if part.RetentionLeft != nil {
			left = fmt.Sprintf("%.1f h", *part.RetentionLeft)
		}
		fmt.Fprintf(tw, "%s\t%d\t%d\t%d\t%d\t%s\n", part.Topic, part.Partition, part.Next, part.Mark, part.Waiting, left)
	}
	if err := tw.Flush(); err != nil {
		return fmt.Errorf("writing the plan: %w", err)
	}
	if p.CPUHours == nil {
		fmt.Fprintln(w, "no night was done yet: there are no rates to tell time and disk by")
	} else {
		fmt.Fprintf(w, "at the rates of %s:\n", p.From)
		for _, s := range p.Stages {
			fmt.Fprintf(w, "  %-10s %.3f CPU hours\n", s.Step, s.CPUHours)
		}
		fmt.Fprintf(w, "  all        %.3f CPU hours; reading the log takes %.2f h; %s of disk\n", *p.CPUHours, *p.NeedHours, sizeText(*p.DiskNeed))
	}
	if p.DiskFree != nil {
		fmt.Fprintf(w, "disk free: %s\n", sizeText(*p.DiskFree))
	}
	for _, what := range p.Retention.Removed {
		fmt.Fprintf(w, "will be removed: %s\n", what)
	}
	for _, epoch := range p.Retention.DestroyedKeys {
		fmt.Fprintf(w, "key to be destroyed: %s\n", epoch)
	}
	for _, text := range p.Warnings {
		fmt.Fprintf(w, "warning: %s\n", text)
	}
	return nil
}
