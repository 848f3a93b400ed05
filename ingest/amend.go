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

func (a *amendment) write(ctx context.Context, s notes, dir string) error {
	data, err := json.Marshal(a)
	if err == nil {
		err = s.Replace(ctx, path.Join(dir, amendName), append(data, '\n'))
	}
	if err != nil {
		return fmt.Errorf("noting what is amended: %w", err)
	}
	return nil
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
