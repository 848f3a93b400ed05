package ingest

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"tailgate/internal/objstore"
)

// Folders of a lake, beside its day=… folders.
const (
	segmentsFolder = "_segments"
	deadFolder     = "_dead"
	buildsFolder   = "_builds"
)

// objects reads a lake.
type objects interface {
	objstore.Opener
	// List returns the objects below a folder in the order of their keys.
	List(ctx context.Context, folder string) ([]objstore.Object, error)
	// String names the store.
	String() string
}

// drafts makes new objects of a lake.
type drafts interface {
	Draft(key string) (*objstore.Draft, error)
	// Publish makes a draft durable under a name that nobody has; else the error is fs.ErrExist.
	Publish(ctx context.Context, d *objstore.Draft, key string) error
	// Scratch is a folder of the file system that takes drafts.
	Scratch() string
}

// notes changes objects that nothing depends on.
type notes interface {
	Replace(ctx context.Context, key string, data []byte) error
	Remove(ctx context.Context, key string) error
}

// streams reads whole objects.
type streams interface {
	objects
	// Stream reads an object from its start.
	Stream(ctx context.Context, key string) (io.ReadCloser, error)
	// Far tells whether reading takes requests.
	Far() bool
}

// store is where segments are kept: a folder or a bucket.
type store interface {
	objects
	drafts
	notes
}

// dayStore is where days are kept, which are replaced whole.
type dayStore interface {
	store
	streams
	// Lock keeps others out of a folder, where the store can; fs.ErrExist when somebody is in.
	Lock(ctx context.Context, folder string) (unlock func(), err error)
	// Tag tells one content of an object from the next, "" = there is none.
	Tag(ctx context.Context, key string) (string, error)
	// Swap puts a draft in the place of an object with this tag, and returns the new tag; the error is fs.ErrExist
	// when the object is not that one any more.
	Swap(ctx context.Context, d *objstore.Draft, key, tag string) (string, error)
	// Copy gives an object with this tag a second name.
	Copy(ctx context.Context, key, to, tag string) error
}

// storeOf is the store of a lake in a folder or, where there is one, in a bucket.
func storeOf(lake string, bucket *objstore.S3) dayStore {
	if bucket != nil {
		return bucket
	}
	return objstore.NewDir(lake)
}

// locate names an object for people, and for readers of local files.
func locate(s objects, key string) string {
	if b, ok := s.(*objstore.S3); ok {
		return b.String() + key
	}
	return filepath.Join(s.String(), filepath.FromSlash(key))
}

// logID names one partition's segment log.
type logID struct {
	topic      string // token
	generation int
	partition  int32
}

// folder is the key of the log's folder below one of the lake's folders.
func (id logID) folder(of string) string {
	return path.Join(of, id.topic, fmt.Sprintf("g%d", id.generation), fmt.Sprintf("p%05d", id.partition))
}

func (id logID) String() string {
	return fmt.Sprintf("%s generation %d partition %d", id.topic, id.generation, id.partition)
}

func segmentName(first int64) string { return fmt.Sprintf("%020d.parquet", first) }

// proveStore shows that the store can publish without replacing: of two writes of one name the first must win
// and the second be refused. A store that lies about this would lose rows silently.
func proveStore(ctx context.Context, s store) error {
	ctx, cancel := context.WithTimeout(ctx, provePatience)
	defer cancel()
	key := path.Join(segmentsFolder, ".probe-"+rand.Text())
	defer func() { _ = s.Remove(context.WithoutCancel(ctx), key) }()
	for _, want := range []error{nil, fs.ErrExist} {
		err := publishProbe(ctx, s, key)
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("proving the store: %w", err)
		}
		if !errors.Is(err, want) {
			return fmt.Errorf("proving the store: %s replaces an object where it must refuse to", s)
		}
	}
	return nil
}

func publishProbe(ctx context.Context, s store, key string) error {
	d, err := s.Draft(key)
	if err != nil {
		return err
	}
	defer d.Discard()
	if _, err := d.Write([]byte("probe\n")); err != nil {
		return err
	}
	return s.Publish(ctx, d, key)
}

var (
	topicPattern = regexp.MustCompile(`^[a-z]_[a-z2-7]{13}$`)
	logPattern   = regexp.MustCompile(`^g(\d{1,9})/p(\d{1,9})/`)
)

// logOf reads the log's name from a key below the segments folder.
func logOf(key string) (id logID, ok bool) {
	rest, ok := strings.CutPrefix(key, segmentsFolder+"/")
	if !ok {
		return id, false
	}
	topic, rest, _ := strings.Cut(rest, "/")
	m := logPattern.FindStringSubmatch(rest)
	if !topicPattern.MatchString(topic) || m == nil {
		return id, false
	}
	id.topic = topic
	id.generation, _ = strconv.Atoi(m[1])
	partition, err := strconv.ParseInt(m[2], 10, 32)
	id.partition = int32(partition)
	return id, err == nil
}

// logsIn lists every segment log of a lake, in the order of topic, generation and partition.
func logsIn(ctx context.Context, s objects) ([]logID, error) {
	list, err := s.List(ctx, segmentsFolder)
	if err != nil {
		return nil, err
	}
	seen := map[logID]bool{}
	var logs []logID
	for _, o := range list {
		if id, ok := logOf(o.Key); ok && !seen[id] {
			seen[id] = true
			logs = append(logs, id)
		}
	}
	slices.SortFunc(logs, compareLogs)
	return logs, nil
}

func compareLogs(a, b logID) int {
	return cmp.Or(strings.Compare(a.topic, b.topic), cmp.Compare(a.generation, b.generation), cmp.Compare(a.partition, b.partition))
}
