package trace

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"os"

	"github.com/zeebo/xxh3"

	"tailgate/internal/fault"
	"tailgate/internal/spill"
	"tailgate/schemas"
)

// SessionIndex tells the session of each row, as Sessions does.
type SessionIndex struct {
	Of    []int32 // session of each row, numbered by their first row
	Turns []int32 // rows of each session
	// How many sessions the file named, how many come from chains of parents, and how many from shared prefixes.
	Named, Chained, Inferred int
}

// Sessions tells which rows belong together, as Trace.Sessions does. It keeps 4 bytes for each row and session, 48
// for each named session, and 12 for each row of which only the prompt tells the session; those are sorted on disk.
func (s *Stream) Sessions(ctx context.Context) (SessionIndex, error) {
	if s.rows > math.MaxInt32 {
		return SessionIndex{}, fault.Mark(errors.New("telling sessions: more than 2^31 rows"), fault.Data, "cut the trace with --window")
	}
	g := streamGrouping{of: make([]int32, s.rows), total: s.rows, byName: map[xxh3.Uint128]int32{}}
	defer g.close()
	if err := g.told(ctx, s); err != nil {
		return SessionIndex{}, err
	}
	if err := g.split(); err != nil {
		return SessionIndex{}, err
	}
	return g.result(), nil
}

// streamGrouping gives each row a provisional session number, as grouping does with rows in memory.
type streamGrouping struct {
	of                       []int32
	total                    int64
	n                        int32
	byName                   map[xxh3.Uint128]int32
	isParent                 []uint64 // a bit for each row: a row without a session follows it
	named, chained, inferred int

	loose *spill.Sorter // rows that only their prompt ties to others, ordered by it
	rec   []byte
}

func (g *streamGrouping) open() int32 {
	g.n++
	return g.n - 1
}

func (g *streamGrouping) close() {
	if g.loose != nil {
		g.loose.Close()
	}
}

// told groups the rows that the file ties together, and collects the others that have a prompt.
func (g *streamGrouping) told(ctx context.Context, s *Stream) error {
	at := int64(0)
	err := s.Each(ctx, func(row *schemas.TraceRow) error {
		i := at
		at++
		if p := row.Parent; p != nil && *p >= 0 && *p < i && row.Session == nil {
			if g.isParent == nil {
				g.isParent = make([]uint64, s.rows/64+1)
			}
			g.isParent[*p/64] |= 1 << (*p % 64)
		}
		return nil
	})
	if err != nil {
		return err
	}
	at = 0
	return s.Each(ctx, func(row *schemas.TraceRow) error {
		i := at
		at++
		switch {
		case row.Session != nil:
			key := xxh3.HashString128(*row.Session)
			n, ok := g.byName[key]
			if !ok {
				n = g.open()
				g.byName[key] = n
				g.named++
			}
			g.of[i] = n
		case row.Parent != nil && *row.Parent >= 0 && *row.Parent < i:
			g.of[i] = g.of[*row.Parent]
		case g.isParent != nil && g.isParent[i/64]&(1<<(i%64)) != 0:
			g.of[i] = g.open()
			g.chained++
		case len(row.HashIDs) == 0:
			g.of[i] = g.open()
		default:
			return g.collect(row, i)
		}
		return nil
	})
}

// collect takes a loose row: its ids, each after a 1, then a 0, so that rows with the same first ids stand together,
// those that end there first; then the row and the number of ids.
func (g *streamGrouping) collect(row *schemas.TraceRow, i int64) error {
	if g.loose == nil {
		g.loose = spill.NewSorter(os.TempDir(), sortBudget)
	}
	g.rec = g.rec[:0]
	for _, id := range row.HashIDs {
		g.rec = binary.BigEndian.AppendUint64(append(g.rec, 1), uint64(id))
	}
	g.rec = binary.BigEndian.AppendUint32(append(g.rec, 0), uint32(i))
	g.rec = binary.BigEndian.AppendUint32(g.rec, uint32(len(row.HashIDs)))
	return g.loose.Add(g.rec)
}

// sorted are the loose rows in the order of their prompts.
type sorted struct {
	row, ids, common []int32 // common: how many first ids the row shares with the one before
}

// order sorts the loose rows.
func (g *streamGrouping) order() (s sorted, err error) {
	if err := g.loose.Seal(); err != nil {
		return s, err
	}
	m, err := spill.Merge(g.loose)
	if err != nil {
		return s, err
	}
	var before []byte
	for {
		rec, err := m.Next()
		if errors.Is(err, io.EOF) {
			return s, nil
		}
		if err != nil {
			return s, err
		}
		end := len(rec) - 8
		n := int(binary.BigEndian.Uint32(rec[end+4:]))
		common := 0
		for common < n && len(before) > 9*(common+1) && string(before[9*common:9*common+9]) == string(rec[9*common:9*common+9]) {
			common++
		}
		s.row = append(s.row, int32(binary.BigEndian.Uint32(rec[end:])))
		s.ids = append(s.ids, int32(n))
		s.common = append(s.common, int32(common))
		before = append(before[:0], rec[:end]...)
	}
}

// stretch is rows of a sorted that agree on their first depth ids.
type stretch struct {
	from, to int
	depth    int32
}

// split groups the loose rows as grouping.split does.
func (g *streamGrouping) split() error {
	if g.loose == nil {
		return nil
	}
	s, err := g.order()
	if err != nil {
		return err
	}
	g.loose.Close()
	for open := []stretch{{to: len(s.row)}}; len(open) > 0; {
		p := open[len(open)-1]
		open = open[:len(open)-1]
		at := p.from
		for ; at < p.to && s.ids[at] == p.depth; at++ {
			g.of[s.row[at]] = g.open()
		}
		for at < p.to {
			end := at + 1
			for end < p.to && s.common[end] > p.depth {
				end++
			}
			group := stretch{at, end, p.depth + 1}
			if g.common(s, group) {
				open = append(open, group)
			} else {
				g.session(s, group)
			}
			at = end
		}
	}
	return nil
}

func (g *streamGrouping) session(s sorted, p stretch) {
	n := g.open()
	if p.to-p.from > 1 {
		g.inferred++
	}
	for _, row := range s.row[p.from:p.to] {
		g.of[row] = n
	}
}

// common tells a system prompt from a session, as grouping.common does.
func (g *streamGrouping) common(s sorted, p stretch) bool {
	members, next := p.to-p.from, 0
	if byShare, _ := CommonPrefix(members, 0, int(g.total)); byShare {
		return true
	}
	for i := p.from; i < p.to; i++ {
		if s.ids[i] > p.depth && (i == p.from || s.ids[i-1] <= p.depth || s.common[i] <= p.depth) {
			next++
		}
	}
	_, common := CommonPrefix(members, next, int(g.total))
	return common
}

// result numbers sessions by their first row.
func (g *streamGrouping) result() SessionIndex {
	s := SessionIndex{Of: g.of, Named: g.named, Chained: g.chained, Inferred: g.inferred}
	final := make([]int32, g.n)
	for i := range final {
		final[i] = -1
	}
	for i, provisional := range g.of {
		if final[provisional] < 0 {
			final[provisional] = int32(len(s.Turns))
			s.Turns = append(s.Turns, 0)
		}
		s.Of[i] = final[provisional]
		s.Turns[s.Of[i]]++
	}
	return s
}
