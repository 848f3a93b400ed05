package ingest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"tailgate/ingest"
	"tailgate/internal/fault"
	"tailgate/internal/objstore"
	"tailgate/internal/parquetio"
	"tailgate/internal/rng"
	"tailgate/schemas"
)

// disk is a lake on a simulated disk. What was not synced may be lost, in part or whole, when the power goes; the
// power goes at one of its steps.
type disk struct {
	names   map[string]*inode // as a running system sees them
	settled map[string]*inode // names that were synced
	steps   int
	loss    int  // step at which the power goes; 0 = never
	lying   bool // it says that it synced, and did not
	dark    bool // the power is gone
}

type inode struct {
	data   []byte
	synced int // bytes that survive
}

var errDark = errors.New("the power is gone")

func newDisk() *disk { return &disk{names: map[string]*inode{}, settled: map[string]*inode{}} }

func (d *disk) step() error {
	d.steps++
	if d.dark || d.steps == d.loss {
		d.dark = true
		return errDark
	}
	return nil
}

// boot is the disk after the power came back: unsynced names are there or not, unsynced bytes too.
func (d *disk) boot(r *rand.Rand) *disk {
	after := newDisk()
	for _, key := range slices.Sorted(maps.Keys(d.names)) {
		node, settled := d.names[key], d.settled[key]
		if node != settled {
			if r.IntN(2) == 0 {
				node = settled // the old object, or none
			}
		}
		if node == nil {
			continue
		}
		keep := node.synced + r.IntN(len(node.data)-node.synced+1)
		kept := &inode{data: node.data[:keep:keep], synced: keep}
		after.names[key], after.settled[key] = kept, kept
	}
	return after
}

func (d *disk) String() string  { return "disk" }
func (d *disk) Scratch() string { return os.TempDir() }

func (d *disk) List(_ context.Context, folder string) ([]objstore.Object, error) {
	var out []objstore.Object
	for _, key := range slices.Sorted(maps.Keys(d.names)) {
		if strings.HasPrefix(key, folder+"/") && !strings.HasPrefix(path.Base(key), ".") {
			out = append(out, objstore.Object{Key: key, Size: int64(len(d.names[key].data))})
		}
	}
	return out, nil
}

func (d *disk) Open(_ context.Context, key string) (*objstore.Reader, error) {
	node := d.names[key]
	if node == nil {
		return nil, fmt.Errorf("reading %s: %w", key, fs.ErrNotExist)
	}
	return objstore.NewReader(bytes.NewReader(node.data), int64(len(node.data)), nil), nil
}

// diskFile is a draft on the disk.
type diskFile struct {
	d    *disk
	node *inode
}

func (f *diskFile) Write(p []byte) (int, error) {
	if err := f.d.step(); err != nil {
		return 0, err
	}
	f.node.data = append(f.node.data, p...)
	return len(p), nil
}

func (f *diskFile) ReadAt(p []byte, off int64) (int, error) {
	if off >= int64(len(f.node.data)) {
		return 0, io.EOF
	}
	n := copy(p, f.node.data[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (f *diskFile) Sync() error {
	if err := f.d.step(); err != nil {
		return err
	}
	if !f.d.lying {
		f.node.synced = len(f.node.data)
	}
	return nil
}

func (d *disk) Draft(string) (*objstore.Draft, error) {
	if err := d.step(); err != nil {
		return nil, err
	}
	return objstore.NewDraft(&diskFile{d: d, node: &inode{}}, func() {}), nil
}

// name gives a node its name, and settles it a step later: as link and rename with a sync of the folder.
func (d *disk) name(key string, node *inode) error {
	if err := d.step(); err != nil {
		return err
	}
	d.names[key] = node
	if err := d.step(); err != nil {
		return err
	}
	if !d.lying {
		d.settled[key] = node
	}
	return nil
}

func (d *disk) Publish(_ context.Context, draft *objstore.Draft, key string) error {
	if d.names[key] != nil {
		return fs.ErrExist
	}
	if err := draft.Sync(); err != nil {
		return err
	}
	return d.name(key, draft.File.(*diskFile).node)
}

func (d *disk) Replace(_ context.Context, key string, data []byte) error {
	f := &diskFile{d: d, node: &inode{}}
	if _, err := f.Write(data); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	return d.name(key, f.node)
}

func (d *disk) Remove(_ context.Context, key string) error {
	delete(d.names, key)
	delete(d.settled, key)
	return nil
}

// rows reads the segments.
func (d *disk) rows(t testing.TB) []schemas.Request {
	t.Helper()
	var out []schemas.Request
	list, _ := d.List(t.Context(), "_segments")
	for _, o := range list {
		if !strings.HasSuffix(o.Key, ".parquet") {
			continue
		}
		rows, err := parquetio.ReadAllAt[schemas.Request](bytes.NewReader(d.names[o.Key].data), o.Size, o.Key)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, rows...)
	}
	return out
}

// ingestOn runs on the disk; what the power does is no error of the test.
func ingestOn(t testing.TB, d *disk, recs []ingest.Record) error {
	t.Helper()
	o := options("unused")
	o.RotateRows, o.MaxBad = 3, 1
	ingest.SetStore(&o, func(ingest.Store) ingest.Store { return d })
	_, err := ingest.Run(t.Context(), newMemory(recs), o)
	return err
}

// T17: the power goes at any step, sometimes twice. The log that comes back is whole, and the next run completes
// it: every request once.
func TestPowerLoss(t *testing.T) {
	points := 100
	if os.Getenv("TAILGATE_PROVE") == "full" {
		points = 10_000
	}
	recs := hundred(t)[:16] // with a dead letter
	whole := newDisk()
	if err := ingestOn(t, whole, recs); err != nil {
		t.Fatal(err)
	}
	r := rng.New(1, "power")
	lost := 0
	for i := range points {
		d := newDisk()
		for range 1 + i%2 {
			d.loss = 1 + r.IntN(whole.steps)
			if err := ingestOn(t, d, recs); err != nil {
				if !errors.Is(err, errDark) {
					t.Fatalf("point %d: %v", i, err)
				}
				lost++
			}
			d = d.boot(r)
		}
		if err := ingestOn(t, d, recs); err != nil {
			t.Fatalf("point %d, after the power came back: %v", i, err)
		}
		checkComplete(t, d.rows(t), 15)
	}
	figures(t, "T17", nil, "%d crash points over the %d steps of a run, half of them crash twice (%d losses of power): 15 of 15 ids each time, 0 duplicates, 0 gaps",
		points, whole.steps, lost)
}

// The simulation can tell: on a disk that lies about syncing, a loss of power leaves a broken log, which the next
// run refuses.
func TestPowerLossOnALyingDisk(t *testing.T) {
	recs := hundred(t)[:16]
	r := rng.New(1, "lies")
	broken := 0
	for range 20 {
		d := newDisk()
		d.lying = true
		if err := ingestOn(t, d, recs); err != nil {
			t.Fatal(err)
		}
		if err := ingestOn(t, d.boot(r), recs); fault.Of(err) == fault.Data {
			broken++
		}
	}
	if broken == 0 {
		t.Error("nothing was ever broken")
	}
	figures(t, "T17", nil, "control: on a disk that lies about fsync %d of 20 losses of power break the log, and the next run refuses it", broken)
}
