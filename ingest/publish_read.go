package ingest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"tailgate/internal/fault"
	"tailgate/internal/objstore"
	"tailgate/schemas"
)

// dayInput is what the segments hold of one day.
type dayInput struct {
	segments []*segmentFile
	inputs   []schemas.FileDigest // of the segments, filled while they are read
	footer   schemas.Footer       // of the file to come
	topics   map[string]uint32    // rank of each topic
	rows     int64                // before duplicates are merged
	ids      int64                // block ids of these rows, known when they were read
	seen     int64                // how far all logs were read, unix µs; see seenUs
	late     int64
	refused  int64

	forgotten forgotten
}

// Days lists the UTC days on which requests of the segments of a lake in a folder arrived, in order.
func Days(lake string) ([]string, error) {
	return daysIn(context.Background(), objstore.NewDir(lake))
}

// DaysIn lists the days of a lake in a bucket, as [Days] does.
func DaysIn(ctx context.Context, lake *objstore.S3) ([]string, error) { return daysIn(ctx, lake) }

func daysIn(ctx context.Context, lake objects) ([]string, error) {
	days := map[string]bool{}
	err := eachSegment(ctx, lake, func(s *segmentFile) error {
		for day, n := range s.facts.Days {
			if n > 0 {
				days[day] = true
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(days)), nil
}

// eachSegment calls f for every segment of the lake, in the order of topic, generation, partition and offset,
// after their contiguity was proved; behind a segment come the files with its reprocessed dead letters.
func eachSegment(ctx context.Context, lake objects, f func(*segmentFile) error) error {
	logs, err := logsIn(ctx, lake)
	if err != nil {
		return err
	}
	for _, id := range logs {
		segments, err := recoverIn(ctx, lake, id)
		if err != nil {
			return err
		}
		for i := range segments {
			segments[i].id = id
			if err := f(&segments[i]); err != nil {
				return err
			}
			if segments[i].facts.deadRecords() == 0 {
				continue
			}
			later, err := reprocessedFiles(ctx, lake, id, &segments[i].facts)
			if err != nil {
				return err
			}
			for j := range later {
				if err := f(&later[j]); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// ErrNoRequests is wrapped by the error of a day on which nothing arrived.
var ErrNoRequests = errors.New("no request of this lake arrived on that day")

// segmentsOf are all segments of a lake, and how far its logs were read.
type segmentsOf struct {
	all  []*segmentFile
	logs logBounds
	have map[string]bool // keys
}

func gather(ctx context.Context, s objects) (*segmentsOf, error) {
	g := &segmentsOf{have: map[string]bool{}}
	err := eachSegment(ctx, s, func(f *segmentFile) error {
		g.logs.add(f)
		g.have[f.key] = true
		g.all = append(g.all, f)
		return nil
	})
	return g, err
}

// selectDay finds the segments that the day is built from.
func selectDay(ctx context.Context, at *site) (*dayInput, error) {
	g, err := gather(ctx, at.s)
	if err != nil {
		return nil, err
	}
	live, err := at.readManifest(ctx)
	if err != nil {
		return nil, err
	}
	in, err := g.day(at.o, live)
	if err != nil {
		return nil, err
	}
	in.forgotten, err = readForgotten(ctx, at.s)
	return in, err
}

// day takes the segments of the day and of its epoch.
func (g *segmentsOf) day(o *PublishOptions, live *schemas.Manifest) (*dayInput, error) {
	in := &dayInput{topics: map[string]uint32{}}
	for _, s := range g.all {
		if s.facts.Days[o.Day] > 0 {
			in.segments = append(in.segments, s)
		}
	}
	if len(in.segments) == 0 {
		return nil, fmt.Errorf("publishing %s: %w", o.Day, ErrNoRequests)
	}
	if live != nil && !o.Backfill {
		if err := errors.Join(checkReprocessed(live, g.have), checkDropped(o.Day, live, g.have)); err != nil {
			return nil, err
		}
	}
	if err := in.chooseEpoch(o, live); err != nil {
		return nil, err
	}
	var err error
	if in.footer, err = commonFooter(o.Day, in.segments); err != nil {
		return nil, err
	}
	in.seen, in.inputs = g.logs.seenUs(), make([]schemas.FileDigest, len(in.segments))
	in.count(o, live)
	return in, nil
}

// checkReprocessed wants the reprocessed rows of the live build: no log has a gap where such a file is lost.
func checkReprocessed(live *schemas.Manifest, have map[string]bool) error {
	for _, f := range live.Inputs {
		if strings.HasPrefix(f.Name, reprocessedFolder+"/") && !have[f.Name] {
			return fault.Mark(fmt.Errorf("publishing: %s is missing, the live build has its rows", f.Name), fault.Data,
				"restore the file from a copy of the lake, or run `tailgate reprocess` again and publish with --backfill")
		}
	}
	return nil
}

// ErrDropped is wrapped by the error of a day whose live build cannot be made again.
var ErrDropped = errors.New("the segments of the live build were removed by retention")

// checkDropped wants the segments of the live build: where retention took them away, what came late cannot be added
// to rows that are only in the build.
func checkDropped(day string, live *schemas.Manifest, have map[string]bool) error {
	for _, f := range live.Inputs {
		if strings.HasPrefix(f.Name, segmentsFolder+"/") && !have[f.Name] {
			return fault.Mark(fmt.Errorf("publishing %s: %w: rows that came later are left out", day, ErrDropped), fault.Data,
				"ingest the whole day again under a new epoch and publish with --backfill")
		}
	}
	return nil
}

// lateSetting is the setting of a day's manifest that tells how many rows of the build came after the one before it.
const lateSetting = "late_rows"

// count adds up the rows and ranks the topics.
func (in *dayInput) count(o *PublishOptions, live *schemas.Manifest) {
	known := map[string]bool{}
	if live != nil {
		for _, f := range live.Inputs {
			known[f.Name] = true
		}
		if late, ok := live.Settings[lateSetting].(float64); ok && o.Unnoted {
			in.late = int64(late)
		}
	}
	for _, s := range in.segments {
		n := s.facts.Days[o.Day]
		in.rows += n
		if live != nil && !known[s.key] {
			in.late += n
		}
		if _, ok := in.topics[s.id.topic]; !ok {
			in.topics[s.id.topic] = uint32(len(in.topics)) // segments come in the order of topics
		}
	}
}

// chooseEpoch keeps the segments of one epoch: that of the live build, so that a day keeps its ids; the only
// one; or, with Backfill, the newest.
func (in *dayInput) chooseEpoch(o *PublishOptions, live *schemas.Manifest) error {
	rows := map[string]int64{}
	for _, s := range in.segments {
		rows[s.epochOf(o.Day)] += s.facts.Days[o.Day]
	}
	epochs := slices.Sorted(maps.Keys(rows)) // an epoch's id begins with its time
	newest := epochs[len(epochs)-1]
	if o.Backfill && o.Epoch != "" {
		newest = o.Epoch
	}
	epoch := newest
	switch {
	case o.Backfill:
		if live != nil && live.Epoch != newest && liveRows(live) > rows[newest] {
			return fault.Mark(fmt.Errorf("publishing %s: epoch %s holds %d rows of the day, the live build has %d",
				o.Day, newest, rows[newest], liveRows(live)), fault.Data, "ingest the whole day again under the new epoch first")
		}
	case live != nil && rows[live.Epoch] > 0:
		epoch = live.Epoch
	case live != nil:
		return fault.Mark(fmt.Errorf("publishing %s: the live build has epoch %s, of which no segment is left", o.Day, live.Epoch),
			fault.Data, "--backfill replaces the build by one of the newest epoch")
	case len(epochs) > 1:
		_, err := commonFooter(o.Day, in.segments)
		return err
	}
	if rows[epoch] == 0 {
		return fault.Mark(fmt.Errorf("publishing %s: epoch %s holds no row of the day", o.Day, epoch), fault.Data,
			"the segments have rows of "+strings.Join(epochs, ", "))
	}
	kept := in.segments[:0]
	for _, s := range in.segments {
		if s.epochOf(o.Day) == epoch {
			kept = append(kept, s)
		} else {
			in.refused += s.facts.Days[o.Day]
		}
	}
	in.segments = kept
	return nil
}

func liveRows(m *schemas.Manifest) (n int64) {
	for _, f := range m.Files {
		n += f.Rows
	}
	return n
}

// commonFooter is the footer that all segments of the day agree on. Ids of two epochs, or of two tokenizers or
// templates of one model, do not meet, so a day that mixes them would look as if it shared less. Segments that
// differ in the choices by model are taken: ids of different models do not meet anyway; models_mixed tells.
func commonFooter(day string, segments []*segmentFile) (schemas.Footer, error) {
	first := segments[0].footer
	models := first[schemas.KeyModels]
	for _, s := range segments[1:] {
		for _, key := range []string{schemas.KeyEpoch, schemas.KeyTokenizer, schemas.KeyTemplate, schemas.KeyBlockSize} {
			a, b := first[key], s.footer[key]
			if key == schemas.KeyEpoch {
				a, b = segments[0].epochOf(day), s.epochOf(day)
			}
			if key == schemas.KeyTemplate && (a == "" || b == "") { // older segments do not tell
				continue
			}
			if a != b {
				return schemas.Footer{}, fault.Mark(
					fmt.Errorf("publishing %s: %s and %s differ in %s", day, segments[0].path, s.path, key),
					fault.Data, "ids of two epochs, tokenizers or templates cannot be compared: ingest the day again under a new epoch, then --backfill")
			}
		}
		if s.footer[schemas.KeyModels] != models {
			models = modelsMixed
		}
	}
	return schemas.Footer{
		Schema: schemas.TableRequests, Epoch: segments[0].epochOf(day), Tokenizer: first[schemas.KeyTokenizer],
		Template: first[schemas.KeyTemplate], Models: models, BlockSize: first[schemas.KeyBlockSize],
	}, nil
}

// modelsMixed stands in the footer of a day whose segments have different choices by model.
const modelsMixed = "mixed"

// report begins the report with what is known before any row is read.
func (in *dayInput) report(o *PublishOptions) *PublishReport {
	r := &PublishReport{Day: o.Day, Segments: len(in.segments), Epoch: in.footer.Epoch, ModelsMixed: in.footer.Models == modelsMixed, Read: in.rows, Late: in.late,
		Refused: in.refused, Suspicious: Suspicious{Worst: []OddID{}}}
	midnight, err := time.Parse(time.DateOnly, o.Day)
	if err != nil {
		return r // Validate has parsed it
	}
	until := midnight.Add(24*time.Hour + o.MaxDuration)
	r.OpenUntil, r.IsComplete = until.Format(time.RFC3339), in.seen >= until.UnixMicro()
	return r
}

// logBounds tells how far the logs of the lake were read.
type logBounds struct {
	logged map[logID]int64 // newest time that the log itself gave, by partition
	ended  int64           // newest end of a request in logs that give no times: files
}

func (l *logBounds) add(s *segmentFile) {
	if l.logged == nil {
		l.logged = map[logID]int64{}
	}
	if s.facts.Only != "" {
		return // a second reading of one day
	}
	if s.facts.LoggedUs > 0 {
		id := logID{topic: s.id.topic, partition: s.id.partition} // the newest generation goes on where one ended
		l.logged[id] = max(l.logged[id], s.facts.LoggedUs)
	} else {
		l.ended = max(l.ended, s.facts.EndedUs)
	}
}

// seenUs is the time up to which every log was read. A partition goes as far as its newest record; of files,
// which are written one after the other, the newest counts.
func (l *logBounds) seenUs() int64 {
	if len(l.logged) == 0 {
		return l.ended
	}
	seen := int64(math.MaxInt64)
	for _, t := range l.logged {
		seen = min(seen, t)
	}
	if l.ended > 0 {
		seen = min(seen, l.ended)
	}
	return seen
}
