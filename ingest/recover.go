package ingest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"tailgate/internal/fault"
	"tailgate/internal/objstore"
	"tailgate/internal/parquetio"
	"tailgate/schemas"
)

// Time limits of an object store that does not answer.
const (
	provePatience   = 15 * time.Second
	publishPatience = 5 * time.Minute
)

// segmentFacts is what a segment says of itself in its footer, as JSON under schemas.KeySegment.
type segmentFacts struct {
	First int64 `json:"first"` // first offset covered
	Last  int64 `json:"last"`  // last offset that held a message, -1 when none did
	Next  int64 `json:"next"`  // first offset of the next segment
	// LastAt is the log's time of the message at Last in unix milliseconds, 0 when not known: by it a log is
	// known again.
	LastAt int64 `json:"last_at,omitempty"`
	Counts
	HoleRanges []Range          `json:"hole_ranges,omitempty"`
	Days       map[string]int64 `json:"days"` // rows per UTC day of arrival
	LogStart   int64            `json:"log_start_seen"`
	High       int64            `json:"hw_seen"`
	Format     string           `json:"format"`
	Identity   string           `json:"identity,omitempty"` // token of Partition.Identity
	// LoggedUs is the newest time at which the log took a record, EndedUs the newest end of a request; unix µs,
	// 0 = not known.
	LoggedUs int64 `json:"logged_us,omitempty"`
	EndedUs  int64 `json:"ended_us,omitempty"`
	// Before is what lay before the segment; nil in segments of earlier versions.
	Before *logBefore `json:"before,omitempty"`
	// Epochs are those of the rows by day of arrival, where they are not all the footer's.
	Epochs map[string]string `json:"epochs,omitempty"`
	// Only is the one day whose rows the log has: a second reading, which says nothing of how far the source was read.
	Only string `json:"only_day,omitempty"`
	// Resolved are the dead letters of the segment First … Next that a reprocessed file has read.
	Resolved []letterPlace `json:"resolved,omitempty"`
}

// segmentFile is one published segment.
type segmentFile struct {
	id     logID
	key    string
	path   string // file, or URL on an object store: for people
	facts  segmentFacts
	footer map[string]string
}

// head is LOG/head.json: an advisory note of the log's bounds, written after each segment, by which the loss
// of the first or last files shows. It may lag behind, never run ahead.
type head struct {
	First int64 `json:"first"`
	Next  int64 `json:"next"`
}

const headName = "head.json"

var segmentPattern = regexp.MustCompile(`^\d{20}\.parquet$`)

// recoverIn reads the segments of a log from their footers and proves that they follow one another without a
// gap. It changes nothing; what does not fit is fault.Data. While another writer publishes, one listing may
// show a file and miss the one before it, so a fault must show three times.
func recoverIn(ctx context.Context, s objects, id logID) (segments []segmentFile, err error) {
	for range 3 {
		if segments, err = readLog(ctx, s, id); fault.Of(err) != fault.Data {
			break
		}
	}
	return segments, err
}

func readLog(ctx context.Context, s objects, id logID) ([]segmentFile, error) {
	dir := id.folder(segmentsFolder)
	noted, err := readHead(ctx, s, dir) // before listing: a segment is published before it is noted
	if err != nil {
		return nil, err
	}
	amended, err := readAmendment(ctx, s, dir)
	if err != nil {
		return nil, err
	}
	noted = noted.amended(&amended)
	segments, err := readSegments(ctx, s, dir, &amended)
	if err != nil {
		return nil, err
	}
	for i := range segments {
		segments[i].id = id
	}
	for i := 1; i < len(segments); i++ {
		if want := segments[i-1].facts.Next; segments[i].facts.First != want {
			return nil, brokenLog(id, fmt.Sprintf("%s should begin at offset %d", path.Base(segments[i].path), want))
		}
	}
	if len(segments) == 0 {
		return nil, noted.check(id, nil)
	}
	tip := logTip{first: segments[0].facts.First, last: &segments[len(segments)-1].facts}
	if err := noted.check(id, &tip); err != nil {
		return nil, err
	}
	return segments, nil
}

// footersAtOnce is how many footers are asked for at a time; a bucket answers slowly, but many.
const footersAtOnce = 8

// readSegments reads the footers of the segments in a folder, in the order of their offsets.
func readSegments(ctx context.Context, s objects, dir string, a *amendment) ([]segmentFile, error) {
	found, err := listSegments(ctx, s, dir, a)
	if err != nil {
		return nil, err
	}
	segments := make([]segmentFile, len(found))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(footersAtOnce)
	for i, o := range found {
		group.Go(func() (err error) {
			segments[i], err = readSegment(ctx, s, o.Key)
			return err
		})
	}
	return segments, group.Wait()
}

func brokenLog(id logID, what string) error {
	return fault.Mark(fmt.Errorf("reading the segment log of %v: a segment is missing: %s", id, what), fault.Data,
		"restore the file from a copy of the lake, or move the folder of this topic away to ingest it anew")
}

// readSegment reads a segment's footer and compares it with the object's name.
func readSegment(ctx context.Context, s objects, key string) (segmentFile, error) {
	return readFacts(ctx, s, key, func(f *segmentFacts) bool { return f.First == firstOffset(key) && f.Next > f.First })
}

// readFacts reads the footer of a segment, or of later rows of one; fits tells whether its offsets are those that its
// name promises.
func readFacts(ctx context.Context, s objects, key string, fits func(*segmentFacts) bool) (segmentFile, error) {
	seg := segmentFile{key: key, path: locate(s, key)}
	r, err := s.Open(ctx, key)
	if err != nil {
		return seg, err
	}
	defer r.Close()
	footer, rows, err := parquetio.FooterAt(r, r.Size(), seg.path)
	if err != nil {
		return seg, err
	}
	seg.footer = footer
	if footer[schemas.KeySchema] != schemas.TableSegment || json.Unmarshal([]byte(footer[schemas.KeySegment]), &seg.facts) != nil {
		return seg, fault.Mark(fmt.Errorf("reading %s: not a segment", seg.path), fault.Data, "")
	}
	if seg.facts.Rows != rows || !fits(&seg.facts) {
		return seg, fault.Mark(fmt.Errorf("reading %s: footer and file disagree", seg.path), fault.Data, "")
	}
	return seg, nil
}

// firstOffset reads the first offset from a segment's name.
func firstOffset(key string) int64 {
	first, _ := strconv.ParseInt(path.Base(key)[:20], 10, 64)
	return first
}

func readHead(ctx context.Context, s objects, dir string) (*head, error) {
	key := path.Join(dir, headName)
	data, err := objstore.ReadAll(ctx, s, key)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the log's bounds: %w", err)
	}
	var h head
	if json.Unmarshal(data, &h) != nil {
		return nil, fault.Mark(fmt.Errorf("reading %s: broken", locate(s, key)), fault.Data, "")
	}
	return &h, nil
}

// writeHead notes the log's bounds. Of two writers the slower one may note less than there is; that only
// weakens the note.
func writeHead(ctx context.Context, s notes, dir string, h head) error {
	data, err := json.Marshal(h)
	if err != nil {
		return fmt.Errorf("noting the log's bounds: %w", err)
	}
	return s.Replace(ctx, path.Join(dir, headName), append(data, '\n'))
}
