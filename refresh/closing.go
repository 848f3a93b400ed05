package refresh

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"time"

	"tailgate/capacity"
	"tailgate/profile"
	"tailgate/schemas"
)

// closing does the steps behind those of the days: headroom of the run's day, what has expired, and the rates by which
// the next night is planned.
func (n *Night) closing(ctx context.Context) error {
	if err := n.privacy(ctx); err != nil {
		return err
	}
	if err := n.headroom(ctx); err != nil {
		return err
	}
	n.crash("step-" + string(StepRetention))
	n.o.Progress(StepRetention, n.Status.Day)
	r := StepReport{Step: StepRetention, Day: n.Status.Day, State: StepDone}
	began, cpu := time.Now(), cpuSeconds()
	err := Retain(ctx, n)
	r.Seconds, r.CPUSeconds = time.Since(began).Seconds(), cpuSeconds()-cpu
	switch kept := n.Status.Retained; {
	case err != nil:
		r.State, r.Reason = StepFailed, err.Error()
	case kept != nil && len(kept.Removed)+len(kept.DestroyedKeys) == 0:
		r.State, r.Reason = StepSkipped, "nothing was due"
	}
	n.Status.Steps = append(n.Status.Steps, r)
	if err != nil {
		return err
	}
	return n.keepRates(ctx)
}

// privacy tells what was kept of the run's day, and whether this binary lets a planted text through.
func (n *Night) privacy(ctx context.Context) error {
	day := n.Status.Day
	live, err := n.published(ctx, day)
	if err != nil || live == nil {
		return err
	}
	j, err := n.journal(ctx, day)
	if err != nil {
		return err
	}
	_, err = n.run(ctx, j, work{day: day, step: StepPrivacy, inputs: digestOf(live, n.Tool),
		output: func() (string, error) { return n.fileDigest(ctx, path.Join(ReportFolder(day), PrivacyName)) },
		do: func(*StepReport) (any, error) {
			err := WritePrivacy(ctx, n)
			return n.Status.Privacy, err
		}})
	if err != nil {
		return err
	}
	n.Status.Privacy = &PrivacyStatus{}
	if !j.result(StepPrivacy, n.Status.Privacy) {
		n.Status.Privacy = nil
	}
	return nil
}

// trendDays are the profiles that a trend comes from.
const trendDays = 56

// headroom holds the day's profile, and the trend of eight weeks, against the capacity envelope.
func (n *Night) headroom(ctx context.Context) error {
	c, day := n.Config, n.Status.Day
	mine, err := n.folderDigest(ctx, ProfileFolder(day))
	if err != nil || c.Envelope == "" || mine == "" {
		return err
	}
	envelope, err := os.ReadFile(c.Envelope)
	if err != nil {
		return fmt.Errorf("reading the envelope: %w", err)
	}
	days, digests, err := n.profiledDays(ctx, day)
	if err != nil {
		return err
	}
	j, err := n.journal(ctx, day)
	if err != nil {
		return err
	}
	key := path.Join(ReportFolder(day), HeadroomName)
	_, err = n.run(ctx, j, work{day: day, step: StepHeadroom, inputs: digestOf(string(envelope), digests, n.Tool),
		output: func() (string, error) { return n.fileDigest(ctx, key) },
		do: func(r *StepReport) (any, error) {
			h, err := n.makeHeadroom(ctx, days)
			if err != nil {
				return nil, err
			}
			r.Rows = int64(len(h.Rows))
			return headroomStatus(&h.Headroom), n.writeHeadroom(ctx, h, key)
		}})
	if err != nil {
		return err
	}
	n.Status.Headroom = &HeadroomStatus{}
	if !j.result(StepHeadroom, n.Status.Headroom) {
		n.Status.Headroom = nil
	}
	return nil
}

// profiledDays are the days of the trend up to one, oldest first, with the digests of their profiles.
func (n *Night) profiledDays(ctx context.Context, upTo string) (days, digests []string, err error) {
	to, err := time.Parse(time.DateOnly, upTo)
	if err != nil {
		return nil, nil, fmt.Errorf("listing days: %w", err)
	}
	for i := trendDays - 1; i >= 0; i-- {
		day := to.AddDate(0, 0, -i).Format(time.DateOnly)
		whole, err := n.folderDigest(ctx, ProfileFolder(day))
		if err != nil {
			return nil, nil, err
		}
		if whole != "" {
			days, digests = append(days, day), append(digests, whole)
		}
	}
	return days, digests, nil
}

func (n *Night) makeHeadroom(ctx context.Context, days []string) (*capacity.Headroom, error) {
	e, err := capacity.ReadEnvelope(n.Config.Envelope)
	if err != nil {
		return nil, err
	}
	var lists [][]*capacity.Day
	for _, day := range days {
		list, err := n.headroomDay(ctx, day)
		if err != nil {
			return nil, err
		}
		lists = append(lists, list)
	}
	all, err := capacity.MergeDays(lists...)
	if err != nil {
		return nil, err
	}
	return capacity.NewHeadroom(capacity.HeadroomOptions{Envelope: e, Days: all})
}

// headroomDay reads one profile: memory is that of one.
func (n *Night) headroomDay(ctx context.Context, day string) ([]*capacity.Day, error) {
	dir, drop, err := n.Root.Local(ctx, ProfileFolder(day))
	if err != nil {
		return nil, err
	}
	defer drop()
	p, err := profile.ReadTables(dir, schemas.TableProfileRate, schemas.TableProfileLength, schemas.TableProfileHitCurve)
	if err != nil {
		return nil, fmt.Errorf("reading the profile of %s: %w", day, err)
	}
	return capacity.NewDays(capacity.ProfileTables{Name: ProfileFolder(day), Meta: p.Meta[0], Rate: p.Rate, Lengths: p.Lengths, Hits: p.HitCurve})
}

// writeHeadroom writes it for people, for queries and for autoscalers; the file that the step is known by comes last.
func (n *Night) writeHeadroom(ctx context.Context, h *capacity.Headroom, key string) error {
	text, err := json.MarshalIndent(&h.Headroom, "", " ")
	if err != nil {
		return fmt.Errorf("encoding the headroom: %w", err)
	}
	var csv, prom bytes.Buffer
	if err := h.WriteCSV(&csv); err != nil {
		return err
	}
	if err := h.WritePrometheus(&prom); err != nil {
		return err
	}
	folder := path.Dir(key)
	for _, f := range []struct {
		key  string
		data []byte
	}{{path.Join(folder, headroomCSV), csv.Bytes()}, {path.Join(folder, headroomProm), prom.Bytes()}, {key, append(text, '\n')}} {
		if err := n.Replace(ctx, f.key, f.data); err != nil {
			return err
		}
	}
	return nil
}

// headroomStatus sums up the rows that decide.
func headroomStatus(h *schemas.Headroom) *HeadroomStatus {
	s := &HeadroomStatus{Over: h.OverSafe, Stale: []string{}}
	for _, again := range h.Again {
		s.Stale = append(s.Stale, "test "+again+" again")
	}
	for i := range h.Rows {
		row := &h.Rows[i]
		if !row.Decides {
			continue
		}
		for _, p := range row.Peaks {
			if p.WidthS != h.DecidesS {
				continue
			}
			if p.Used != nil {
				s.UsedShare = max(s.UsedShare, *p.Used)
			}
			if p.UsedNMinus1 != nil {
				s.UsedShareMinus1 = max(s.UsedShareMinus1, *p.UsedNMinus1)
			}
		}
		if t := row.Trend; t != nil && t.Breach != nil && (s.DaysLeft == nil || *t.Breach < *s.DaysLeft) {
			s.DaysLeft = t.Breach
		}
	}
	return s
}
