//go:build unix

package ingest_test

import (
	"context"
	"path"
	"strings"
	"syscall"
	"testing"

	"tailgate/ingest"
	"tailgate/internal/objstore"
)

// killSteps are the steps of a segment at which a writer may die.
var killSteps = []string{"before write", "mid page", "after close", "after fsync", "before link", "after link", "after note", "after commit"}

// dieAt lets the process kill itself at a step of its third segment.
func dieAt(o *ingest.Options, step string) {
	d := &dying{step: step, left: 3}
	ingest.SetStore(o, func(s ingest.Store) ingest.Store { d.Store = s; return d })
	ingest.SetHook(o, func(point string) error {
		d.reach(map[string]string{"before-link": "before link", "after-commit": "after commit"}[point])
		return nil
	})
	o.Workers, o.Group = 1, "steps" // one lake, and a group that is told
}

// dying is a store whose process kills itself.
type dying struct {
	ingest.Store
	step string
	left int
}

func (d *dying) reach(step string) {
	if step != d.step {
		return
	}
	if d.left--; d.left == 0 {
		_ = syscall.Kill(syscall.Getpid(), syscall.SIGKILL)
		select {} // it comes in a moment
	}
}

func isSegment(key string) bool {
	return strings.HasSuffix(key, ".parquet") && !strings.Contains(key, "_dead")
}

func (d *dying) Draft(key string) (*objstore.Draft, error) {
	draft, err := d.Store.Draft(key)
	if err != nil || !isSegment(key) {
		return draft, err
	}
	d.reach("before write")
	return objstore.NewDraft(&dyingFile{linked: draft.File.(linked), d: d}, draft.Discard), nil
}

func (d *dying) Publish(ctx context.Context, draft *objstore.Draft, key string) error {
	err := d.Store.Publish(ctx, draft, key)
	if isSegment(key) {
		d.reach("after link")
	}
	return err
}

func (d *dying) Replace(ctx context.Context, key string, data []byte) error {
	err := d.Store.Replace(ctx, key, data)
	if path.Base(key) == "head.json" {
		d.reach("after note")
	}
	return err
}

type dyingFile struct {
	linked
	d *dying
}

func (f *dyingFile) Write(p []byte) (int, error) {
	if f.d.step == "mid page" && len(p) > 100 {
		n, err := f.linked.Write(p[:len(p)/2])
		f.d.reach("mid page")
		if err != nil {
			return n, err
		}
		m, err := f.linked.Write(p[n:])
		return n + m, err
	}
	return f.linked.Write(p)
}

func (f *dyingFile) Sync() error {
	f.d.reach("after close")
	err := f.linked.Sync()
	f.d.reach("after fsync")
	return err
}

// T2: kill -9 at each step of a segment by name. Nothing half-written has a name, and the next run completes.
func TestKafkaKilledAtEachStep(t *testing.T) {
	b := newBroker(t, 1)
	const n = 150
	b.produceRange(0, n, 1)
	for _, step := range killSteps {
		t.Run(step, func(t *testing.T) {
			lake := t.TempDir()
			w := startWriter(t, b, lake, envDie+"="+step)
			if out, err := w.finish(); !w.killed() {
				t.Fatalf("it did not die: %v: %s", err, out)
			}
			checkWholeFiles(t, lake)
			before := len(segmentRows(t, lake))
			if before >= n {
				t.Errorf("%d rows before the end", before)
			}
			o := options(lake)
			o.Group = "steps"
			r := run(t, b.open(), o)
			checkComplete(t, segmentRows(t, lake), n)
			if int(r.Total.Rows) != n-before {
				t.Errorf("%d rows after %d", r.Total.Rows, before)
			}
			figures(t, "T2", b, "kill -9 %s: %d of %d rows were published, %d after the next run, 0 duplicates", step, before, n, n)
		})
	}
}
