package trace

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"tailgate/internal/fault"
	"tailgate/internal/rng"
	"tailgate/schemas"
)

// lakeBlock is the block size of the lake, in tokens.
const lakeBlock = 16

// checkLakePrompt holds a row to what the lake promises of a prompt that was hashed.
func checkLakePrompt(r *schemas.Request) error {
	if r.InputTokens == nil || *r.InputTokens < 0 {
		return errors.New("hash_ids without input_tokens")
	}
	have, full, tail := len(r.HashIDs), int(*r.InputTokens)/lakeBlock, *r.InputTokens%lakeBlock
	sharedTail := tail > 0 && have == full+1 && r.PrivateBlocks == 0
	if r.PrivateBlocks < 0 || r.TailTokens != tail || have+int(r.PrivateBlocks) != full && !sharedTail {
		return fmt.Errorf("%d hash_ids, %d private_blocks and %d tail_tokens do not make %d input_tokens", len(r.HashIDs),
			r.PrivateBlocks, r.TailTokens, *r.InputTokens)
	}
	return nil
}

// privateIDs derives the hash ids of a trace from those of the lake. The id of block k of size tokens is the
// lake's id at index size/16·(k+1) − 1, which covers everything before it; the partial tail has the last one.
// Where the lake keeps no id, nobody shares the block, and it gets an id that no other block has.
type privateIDs struct {
	size int
	hash func(keys ...uint64) uint64 // nil = rng.Hash
}

// private marks a block without an id in the lake. Ids of the lake are never negative.
const private = -1

func (p *privateIDs) derive(r *schemas.Request) []int64 {
	n, per := blocks(*r.InputTokens, p.size), p.size/lakeBlock
	last := blocks(*r.InputTokens, lakeBlock) - 1
	ids := make([]int64, n)
	for k := range ids {
		ids[k] = private
		if at := min(per*(k+1)-1, last); at < len(r.HashIDs) {
			ids[k] = r.HashIDs[at]
		}
	}
	return ids
}

// fill gives every private block its id: a hash of request, attempt and index, drawn again where it is taken.
func (p *privateIDs) fill(rows []lakeRow) {
	hash := p.hash
	if hash == nil {
		hash = rng.Hash
	}
	used := map[int64]bool{private: true}
	for i := range rows {
		for _, id := range rows[i].HashIDs {
			used[id] = true
		}
	}
	for i := range rows {
		for k, id := range rows[i].HashIDs {
			for draw := uint64(0); used[id] && rows[i].HashIDs[k] == private; draw++ {
				id = int64(hash(rows[i].key, uint64(k), draw) &^ (1 << 63))
			}
			used[id] = true
			rows[i].HashIDs[k] = id
		}
	}
}

// fillInputs gives rows without a known input length the median of their class, or of all rows.
func (e *exporter) fillInputs() error {
	known := map[string][]int32{}
	const all = "\x00all"
	for i := range e.rows {
		if r := &e.rows[i]; !r.noInput {
			known[label(r.Class)] = append(known[label(r.Class)], r.InputTokens)
			known[all] = append(known[all], r.InputTokens)
		}
	}
	for _, v := range known {
		slices.Sort(v)
	}
	if len(known) == 0 {
		return fault.Mark(errors.New("no request has a known input length"), fault.Data, "")
	}
	for i := range e.rows {
		r := &e.rows[i]
		if !r.noInput {
			continue
		}
		v := known[label(r.Class)]
		if len(v) == 0 {
			v = known[all]
		}
		r.InputTokens = v[(len(v)+1)/2-1]
		e.medianInputs++
	}
	return nil
}

func label(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// schedule sorts the rows by arrival. Rows of a clock too coarse for a trace are spread over its resolution.
func (e *exporter) schedule(t *Trace) {
	byArrival := func(a, b lakeRow) int {
		return cmp.Or(cmp.Compare(a.ScheduledUs, b.ScheduledUs), cmp.Compare(a.resolutionUs, b.resolutionUs))
	}
	slices.SortStableFunc(e.rows, byArrival)
	rnd := rng.New(e.o.Seed, "spread")
	for i := 0; i < len(e.rows); {
		start, step := e.rows[i].ScheduledUs, e.rows[i].resolutionUs
		j := i + 1
		for j < len(e.rows) && e.rows[j].ScheduledUs == start && e.rows[j].resolutionUs == step {
			j++
		}
		if step >= quantumUnits*1000 {
			for k, at := range drawIn(j-i, start, step, rnd) {
				e.rows[i+k].ScheduledUs = at
			}
			t.Meta.QuantumUs = max(t.Meta.QuantumUs, step)
			e.spread += int64(j - i)
		}
		i = j
	}
	if t.Meta.QuantumUs > 0 {
		t.Meta.Spread, t.Meta.Seed = true, e.o.Seed
		slices.SortStableFunc(e.rows, func(a, b lakeRow) int { return cmp.Compare(a.ScheduledUs, b.ScheduledUs) })
	}
}

// link numbers the rows and ties the turns of each session: the parent is the latest earlier row of a lower
// turn. A session whose turns the lake does not tell is numbered by arrival.
func (e *exporter) link() {
	type session struct {
		n    int32
		open []*lakeRow // rows that may still become a parent; their turns rise
	}
	sessions := map[string]*session{}
	for i := range e.rows {
		row := &e.rows[i]
		row.Row = int64(i)
		if row.Session == nil {
			continue
		}
		s := sessions[*row.Session]
		if s == nil {
			s = &session{}
			sessions[*row.Session] = s
		}
		if row.Turn = s.n; row.turn != nil {
			row.Turn = *row.turn
		}
		for len(s.open) > 0 && s.open[len(s.open)-1].Turn >= row.Turn {
			s.open = s.open[:len(s.open)-1]
		}
		if len(s.open) > 0 {
			parent := s.open[len(s.open)-1].Row
			row.Parent = &parent
		}
		s.n++
		s.open = append(s.open, row)
	}
}

// notes counts what the view left out or changed.
func (e *exporter) notes() []string {
	var out []string
	for _, n := range []struct {
		n    int64
		what string
	}{
		{e.probes, "probes are left out"},
		{e.otherOps, "requests that are neither chat, completion nor responses are left out"},
		{e.unreached, "requests never reached the engine and are left out of the engine view"},
		{e.retries, "retries are left out of the client view"},
		{e.medianInputs, "requests have no known input length: the median of their class stands for it"},
		{e.sampled, "requests come from logs that hold only a sample of the traffic: the rate is too low by that"},
		{e.damaged, "requests have a prompt that was cut or redacted: behind it they share nothing here, whatever they shared"},
		{e.spread, "requests come from a clock coarser than 10 ms: spread over its resolution"},
	} {
		if n.n > 0 {
			out = append(out, fmt.Sprintf("%d %s", n.n, n.what))
		}
	}
	return out
}
