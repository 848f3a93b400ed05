package ingest

import (
	"context"
	"fmt"
	"path"

	"tailgate/internal/fault"
	"tailgate/internal/objstore"
)

// logBefore is what lies before a segment in its log. By it the last footer and a listing show whether a segment
// is missing, cut or too many, without opening the others.
type logBefore struct {
	Segments int64 `json:"segments"`
	Bytes    int64 `json:"bytes"`
}

// next is the offset after the log's last, 0 when it has none.
func (t *logTip) next() int64 {
	if t.last == nil {
		return 0
	}
	return t.last.Next
}

func (b *logBefore) add(size int64) {
	b.Segments++
	b.Bytes += size
}

// logTip is where a log ends.
type logTip struct {
	first  int64         // where the log begins, -1 when it has no segment
	last   *segmentFacts // nil when it has none
	before logBefore     // what lies before the next segment
}

// readTip finds where a log ends. It opens the last segment only, which says how many there are before it and how
// large they are; with deep, or when the last one is of a version that did not say it, all of them. It changes
// nothing; what does not fit is fault.Data, when it shows three times: see recoverIn.
func readTip(ctx context.Context, s objects, id logID, deep bool) (tip logTip, err error) {
	for range 3 {
		if tip, err = lookAtTip(ctx, s, id, deep); fault.Of(err) != fault.Data {
			break
		}
	}
	return tip, err
}

func lookAtTip(ctx context.Context, s objects, id logID, deep bool) (logTip, error) {
	tip, dir := logTip{first: -1}, id.folder(segmentsFolder)
	noted, err := readHead(ctx, s, dir) // before listing: a segment is published before it is noted
	if err != nil {
		return tip, err
	}
	amended, err := readAmendment(ctx, s, dir)
	if err != nil {
		return tip, err
	}
	noted = noted.amended(&amended)
	found, err := listSegments(ctx, s, dir, &amended)
	if err != nil {
		return tip, err
	}
	if len(found) == 0 {
		return tip, noted.check(id, nil)
	}
	tip.before = amended.before()
	for _, o := range found {
		tip.before.add(o.Size)
	}
	newest := found[len(found)-1]
	last, err := readSegment(ctx, s, newest.Key)
	if err != nil {
		return tip, err
	}
	tip.first, tip.last = firstOffset(found[0].Key), &last.facts
	want := logBefore{Segments: tip.before.Segments - 1, Bytes: tip.before.Bytes - newest.Size}
	if deep || last.facts.Before == nil || *last.facts.Before != want {
		if _, err := readLog(ctx, s, id); err != nil {
			return tip, err
		}
	}
	if b := last.facts.Before; b != nil && *b != want {
		return tip, brokenLog(id, fmt.Sprintf("%d segments of %d bytes lie before %s instead of %d of %d",
			want.Segments, want.Bytes, path.Base(newest.Key), b.Segments, b.Bytes))
	}
	return tip, noted.check(id, &tip)
}

// check holds a log to its noted bounds; a nil tip is a log without segments.
func (h *head) check(id logID, tip *logTip) error {
	switch {
	case h == nil:
		return nil
	case tip == nil:
		return brokenLog(id, "its segments are gone")
	case tip.first != h.First:
		return brokenLog(id, fmt.Sprintf("it begins at offset %d instead of %d", tip.first, h.First))
	case tip.last.Next < h.Next:
		return brokenLog(id, fmt.Sprintf("it ends before offset %d instead of %d", tip.last.Next, h.Next))
	}
	return nil
}

// listSegments lists the segments in a log's folder, in the order of their offsets, with the sizes that count.
func listSegments(ctx context.Context, s objects, dir string, a *amendment) ([]objstore.Object, error) {
	list, err := s.List(ctx, dir)
	if err != nil {
		return nil, err
	}
	var found []objstore.Object
	for _, o := range list {
		if path.Dir(o.Key) == dir && segmentPattern.MatchString(path.Base(o.Key)) {
			found = append(found, o)
		}
	}
	return a.counted(found), nil
}
