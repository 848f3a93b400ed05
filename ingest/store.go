package ingest

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"tailgate/internal/atomicfile"
)

// Folders of a lake, beside its day=… folders.
const (
	segmentsFolder = "_segments"
	deadFolder     = "_dead"
	buildsFolder   = "_builds"
)

// logID names one partition's segment log.
type logID struct {
	topic      string // token
	generation int
	partition  int32
}

func (id logID) path(root, folder string) string {
	return filepath.Join(root, folder, id.topic, fmt.Sprintf("g%d", id.generation), fmt.Sprintf("p%05d", id.partition))
}

func (id logID) String() string {
	return fmt.Sprintf("%s generation %d partition %d", id.topic, id.generation, id.partition)
}

func segmentName(first int64) string { return fmt.Sprintf("%020d.parquet", first) }

// proveStore shows that dir can publish without replacing: of two writes of one name the first must win and
// the second be refused. A file system that lies about this would lose rows silently.
func proveStore(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("making the lake: %w", err)
	}
	name := ".probe-" + rand.Text()
	defer os.Remove(filepath.Join(dir, name))
	for _, want := range []error{nil, fs.ErrExist} {
		f, err := atomicfile.CreateUnnamed(dir)
		if err != nil {
			return fmt.Errorf("proving the store: %w", err)
		}
		err = f.Link(name)
		f.Discard()
		if !errors.Is(err, want) {
			if err != nil {
				return fmt.Errorf("proving the store: %w", err)
			}
			return fmt.Errorf("proving the store: %s replaces a file where it must refuse to", dir)
		}
	}
	return nil
}

// numbered lists the entries of dir named prefix and a number, as numbers in ascending order. A folder that
// does not exist has none.
func numbered(dir, prefix string) ([]int, error) {
	names, err := listNames(dir)
	if err != nil {
		return nil, err
	}
	var out []int
	for _, name := range names {
		if digits, ok := strings.CutPrefix(name, prefix); ok {
			if n, err := strconv.Atoi(digits); err == nil && n >= 0 {
				out = append(out, n)
			}
		}
	}
	slices.Sort(out)
	return out, nil
}

// listNames lists a folder's entries in order; a folder that does not exist has none.
func listNames(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", dir, err)
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, nil
}

var topicPattern = regexp.MustCompile(`^[a-z]_[a-z2-7]{13}$`)

// listLogs lists every segment log of the lake, in the order of their paths.
func listLogs(lake string) ([]logID, error) {
	topics, err := listNames(filepath.Join(lake, segmentsFolder))
	if err != nil {
		return nil, err
	}
	var logs []logID
	for _, topic := range topics {
		if !topicPattern.MatchString(topic) {
			continue
		}
		generations, err := numbered(filepath.Join(lake, segmentsFolder, topic), "g")
		if err != nil {
			return nil, err
		}
		for _, g := range generations {
			id := logID{topic: topic, generation: g}
			partitions, err := numbered(filepath.Dir(id.path(lake, segmentsFolder)), "p")
			if err != nil {
				return nil, err
			}
			for _, p := range partitions {
				id.partition = int32(p)
				logs = append(logs, id)
			}
		}
	}
	return logs, nil
}
