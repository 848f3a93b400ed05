package ingest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"tailgate/internal/fault"
	"tailgate/internal/objstore"
)

// amendment is LOG/amended.json: what was changed in a segment log on purpose. It is written before the change, so
// that a log is whole for every reader before, during and after it, and a crash in between changes nothing: what is
// noted as dropped does not count any more, whether or not it still lies there, and a segment counts with the size
// that it was published with, whichever of its sizes it has now.
type amendment struct {
	Dropped dropped          `json:"dropped"`
	Sizes   map[int64]resize `json:"sizes,omitempty"` // rewritten segments by their first offset
}

// dropped is the start of a log that retention took away.
type dropped struct {
	Next     int64 `json:"next"` // the log counts as beginning here; 0 = nothing was dropped
	Segments int64 `json:"segments"`
	Bytes    int64 `json:"bytes"`
}

// resize is how large a segment was when it was published, and how large it may be now.
type resize struct {
	Counts int64   `json:"counts"`
	Now    []int64 `json:"now"`
}

const amendName = "amended.json"

// readAmendment reads a log's amendment; the zero value when nothing was amended.
func readAmendment(ctx context.Context, s objects, dir string) (amendment, error) {
	var a amendment
	key := path.Join(dir, amendName)
	data, err := objstore.ReadAll(ctx, s, key)
	if errors.Is(err, fs.ErrNotExist) {
		return a, nil
	}
	if err != nil {
		return a, fmt.Errorf("reading what was amended: %w", err)
	}
	if json.Unmarshal(data, &a) != nil {
		return a, fault.Mark(fmt.Errorf("reading %s: broken", locate(s, key)), fault.Data, "")
	}
	return a, nil
}

// amend changes a log's amendment. Of two that change it at the same time the slower one sees what the other wrote.
func amend(ctx context.Context, s dayStore, dir string, change func(*amendment)) error {
	for range 5 {
		tag, err := s.Tag(ctx, path.Join(dir, amendName))
		if err != nil {
			return fmt.Errorf("noting what is amended: %w", err)
		}
		a, err := readAmendment(ctx, s, dir)
		if err != nil {
			return err
		}
		change(&a)
		if err = a.swap(ctx, s, dir, tag); !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return errors.New("noting what is amended: it changes all the time")
}

func (a *amendment) swap(ctx context.Context, s dayStore, dir, tag string) error {
	key := path.Join(dir, amendName)
	data, err := json.Marshal(a)
	if err != nil {
		return fmt.Errorf("noting what is amended: %w", err)
	}
	d, err := s.Draft(key)
	if err != nil {
		return fmt.Errorf("noting what is amended: %w", err)
	}
	defer d.Discard()
	if _, err := d.Write(append(data, '\n')); err != nil {
		return fmt.Errorf("noting what is amended: %w", err)
	}
	if _, err := s.Swap(ctx, d, key, tag); err != nil {
		return fmt.Errorf("noting what is amended: %w", err)
	}
	return nil
}

// lockAmendments keeps others from amending the logs of a lake, where the store has locks.
func lockAmendments(ctx context.Context, s dayStore) (unlock func(), err error) {
	unlock, err = s.Lock(ctx, path.Join(buildsFolder, "amend"))
	if errors.Is(err, fs.ErrExist) {
		return nil, fault.Mark(fmt.Errorf("amending the segment logs: another one does, too: %w", err), fault.Failure, "run it again when that has ended")
	}
	return unlock, err
}

// counted is a listing of segments as the log counts them.
func (a *amendment) counted(found []objstore.Object) []objstore.Object {
	found = slices.DeleteFunc(found, func(o objstore.Object) bool { return firstOffset(o.Key) < a.Dropped.Next })
	for i := range found {
		if r, ok := a.Sizes[firstOffset(found[i].Key)]; ok && slices.Contains(r.Now, found[i].Size) {
			found[i].Size = r.Counts
		}
	}
	return found
}

// before is what counts before the first segment that is left.
func (a *amendment) before() logBefore {
	return logBefore{Segments: a.Dropped.Segments, Bytes: a.Dropped.Bytes}
}

// amended moves the noted start of the log to where it begins now.
func (h *head) amended(a *amendment) *head {
	if h == nil || h.First >= a.Dropped.Next {
		return h
	}
	return &head{First: a.Dropped.Next, Next: h.Next}
}

// resized notes that the segment that begins at first, and has size now, is going to have the size next.
func (a *amendment) resized(first, now, next int64) {
	if a.Sizes == nil {
		a.Sizes = map[int64]resize{}
	}
	r, ok := a.Sizes[first]
	if !ok {
		r.Counts = now
	}
	for _, size := range []int64{now, next} {
		if !slices.Contains(r.Now, size) {
			r.Now = append(r.Now, size)
		}
	}
	a.Sizes[first] = r
}
