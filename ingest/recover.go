package ingest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"

	"tailgate/internal/atomicfile"
	"tailgate/internal/fault"
	"tailgate/internal/parquetio"
	"tailgate/schemas"
)

// keySegment is the footer key that holds a segment's facts as JSON.
const keySegment = "tailgate.segment"

// segmentFacts is what a segment says of itself in its footer.
type segmentFacts struct {
	First int64 `json:"first"` // first offset covered
	Last  int64 `json:"last"`  // last offset that held a message, -1 when none did
	Next  int64 `json:"next"`  // first offset of the next segment
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
	// Resolved are the dead letters of the segment First … Next that a reprocessed file has read.
	Resolved []letterPlace `json:"resolved,omitempty"`
}

// segmentFile is one published segment.
type segmentFile struct {
	id     logID
	path   string
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

// recoverLog reads the segments of a log from their footers and proves that they follow one another without a
// gap. It changes nothing; what does not fit is fault.Data. While another writer publishes, one listing may
// show a file and miss the one before it, so a fault must show three times.
func recoverLog(lake string, id logID) (segments []segmentFile, err error) {
	for range 3 {
		if segments, err = readLog(lake, id); fault.Of(err) != fault.Data {
			break
		}
	}
	return segments, err
}

func readLog(lake string, id logID) ([]segmentFile, error) {
	dir := id.path(lake, segmentsFolder)
	noted, err := readHead(dir) // before listing: a segment is linked before it is noted
	if err != nil {
		return nil, err
	}
	names, err := listNames(dir)
	if err != nil {
		return nil, err
	}
	var segments []segmentFile
	for _, name := range names {
		if !segmentPattern.MatchString(name) {
			continue
		}
		s, err := readSegment(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		if n := len(segments); n > 0 && segments[n-1].facts.Next != s.facts.First {
			return nil, brokenLog(id, fmt.Sprintf("%s should begin at offset %d", name, segments[n-1].facts.Next))
		}
		segments = append(segments, s)
	}
	if noted == nil {
		return segments, nil
	}
	if len(segments) == 0 {
		return nil, brokenLog(id, "its segments are gone")
	}
	if first := segments[0].facts.First; first != noted.First {
		return nil, brokenLog(id, fmt.Sprintf("it begins at offset %d instead of %d", first, noted.First))
	}
	if next := segments[len(segments)-1].facts.Next; next < noted.Next {
		return nil, brokenLog(id, fmt.Sprintf("it ends before offset %d instead of %d", next, noted.Next))
	}
	return segments, nil
}

func brokenLog(id logID, what string) error {
	return fault.Mark(fmt.Errorf("reading the segment log of %v: a segment is missing: %s", id, what), fault.Data,
		"restore the file from a copy of the lake, or move the folder of this topic away to ingest it anew")
}

// readSegment reads a segment's footer and compares it with the file's name.
func readSegment(path string) (segmentFile, error) {
	footer, rows, err := parquetio.Footer(path)
	if err != nil {
		return segmentFile{}, fault.Mark(err, fault.Data, "")
	}
	s := segmentFile{path: path, footer: footer}
	if footer[schemas.KeySchema] != schemas.TableSegment || json.Unmarshal([]byte(footer[keySegment]), &s.facts) != nil {
		return s, fault.Mark(fmt.Errorf("reading %s: not a segment", path), fault.Data, "")
	}
	first, _ := strconv.ParseInt(filepath.Base(path)[:20], 10, 64)
	if s.facts.First != first || s.facts.Next <= first || s.facts.Rows != rows {
		return s, fault.Mark(fmt.Errorf("reading %s: footer and file disagree", path), fault.Data, "")
	}
	return s, nil
}

func readHead(dir string) (*head, error) {
	data, err := os.ReadFile(filepath.Join(dir, headName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the log's bounds: %w", err)
	}
	var h head
	if json.Unmarshal(data, &h) != nil {
		return nil, fault.Mark(fmt.Errorf("reading %s: broken", filepath.Join(dir, headName)), fault.Data, "")
	}
	return &h, nil
}

// writeHead notes the log's bounds. Of two writers the slower one may note less than there is; that only
// weakens the note.
func writeHead(dir string, h head) error {
	data, err := json.Marshal(h)
	if err != nil {
		return fmt.Errorf("noting the log's bounds: %w", err)
	}
	return atomicfile.WriteFile(filepath.Join(dir, headName), append(data, '\n'))
}

// currentGeneration returns the newest generation of a topic; known is false for a new topic.
func currentGeneration(lake, topic string) (generation int, known bool, err error) {
	generations, err := numbered(filepath.Join(lake, segmentsFolder, topic), "g")
	if err != nil || len(generations) == 0 {
		return 0, false, err
	}
	return slices.Max(generations), true, nil
}

// claimGeneration makes a generation that no other run has: what was read once from a pipe cannot be read on.
func claimGeneration(lake, topic string, newest int, known bool) (int, error) {
	dir := filepath.Join(lake, segmentsFolder, topic)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return 0, fmt.Errorf("making the topic's folder: %w", err)
	}
	g := newest
	if known {
		g++
	}
	for ; ; g++ {
		err := os.Mkdir(filepath.Join(dir, fmt.Sprintf("g%d", g)), 0o755)
		if err == nil {
			return g, nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return 0, fmt.Errorf("making a generation: %w", err)
		}
	}
}
