package ingest

import "time"

// Bounds of the pieces that wait for the rest of their request: beyond them, the request that waits longest becomes a
// row of what is there.
const (
	joinBytes    = 16 << 20
	joinRequests = 20_000
)

// joiner holds the pieces of requests that a log spreads over several records, until their segment is published. It
// belongs to one worker, and what it holds to the open segment: nothing waits beyond it. Requests whose pieces lie
// on both sides of a segment's border become two rows with one request key, of which publish keeps the richer one.
type joiner struct {
	reader reader
	open   map[string]*waiting
	order  []*waiting
	bytes  int64
}

// waiting is a request of which more may come.
type waiting struct {
	pieces      []*piece
	bytes       int64
	from        *origin
	index       int32
	size        int64
	fingerprint string
}

// origin is a message, and what has become of its records. A message counts as skipped as long as the requests that
// began in it wait.
type origin struct {
	offset     int64
	time       time.Time
	open       bool // more of its records come
	rows, dead bool // some ended so
}

// count says what the message ended as, now that all of its records have been seen.
func (o *origin) count(facts *segmentFacts) {
	o.open = false
	switch {
	case o.rows:
		facts.Messages++
	case o.dead:
		facts.DeadMessages++
	default:
		facts.SkippedMessages++
	}
}

// hold takes a piece of message r. Of a request, the first piece ends as its row, and every other one as a skip.
func (w *worker) hold(r *Record, from *origin, index int32, it *item) error {
	j := w.join
	p := it.piece.clone()
	g := j.open[string(p.key)]
	if g == nil {
		g = &waiting{from: from, index: index, size: int64(len(it.raw)), fingerprint: w.fingerprint(it.raw)}
		j.open[string(p.key)] = g
		j.order = append(j.order, g)
	} else {
		w.seg.facts.Skips[SkipJoined]++
	}
	g.pieces = append(g.pieces, p)
	size := int64(len(p.request)+len(p.response)) + 200
	g.bytes += size
	j.bytes += size
	for len(j.order) > joinRequests || j.bytes > joinBytes {
		if err := w.settleFirst(); err != nil {
			return err
		}
	}
	return nil
}

// settle ends all requests that wait.
func (w *worker) settle() error {
	if w.join == nil {
		return nil
	}
	rows, dead := w.seg.facts.Rows, len(w.seg.dead)
	for len(w.join.order) > 0 {
		if err := w.settleFirst(); err != nil {
			return err
		}
	}
	w.meter.rows.Add(w.seg.facts.Rows - rows)
	w.meter.dead.Add(int64(len(w.seg.dead) - dead))
	return nil
}

// settleFirst ends the request that waits longest.
func (w *worker) settleFirst() error {
	j := w.join
	g := j.order[0]
	j.order[0], j.order = nil, j.order[1:]
	delete(j.open, string(g.pieces[0].key))
	j.bytes -= g.bytes
	defer g.clear()
	j.reader.reset(int(g.bytes))
	it := j.reader.joined(g.pieces, nil)
	facts := &w.seg.facts
	rows, dead := facts.Rows, len(w.seg.dead)
	r := &Record{Offset: g.from.offset, Time: g.from.time, Size: g.size}
	err := w.record(r, g.index, &it)
	if it.rec != nil {
		it.rec.clear()
	}
	if err != nil {
		return err
	}
	if n := len(w.seg.dead); n > dead {
		w.seg.dead[n-1].Fingerprint = g.fingerprint
	}
	g.from.ended(facts, facts.Rows > rows, len(w.seg.dead) > dead)
	return nil
}

// ended moves the message to what it counts as now that one of its requests has ended: rows go before dead letters,
// and both before skips.
func (o *origin) ended(facts *segmentFacts, row, dead bool) {
	switch {
	case o.open: // it is counted later
	case row && !o.rows && o.dead:
		facts.DeadMessages--
		facts.Messages++
	case row && !o.rows:
		facts.SkippedMessages--
		facts.Messages++
	case dead && !o.rows && !o.dead:
		facts.SkippedMessages--
		facts.DeadMessages++
	}
	o.rows, o.dead = o.rows || row, o.dead || dead
}

// drop forgets everything: the segment is given up.
func (j *joiner) drop() {
	if j == nil {
		return
	}
	for _, g := range j.order {
		g.clear()
	}
	clear(j.open)
	j.order, j.bytes = nil, 0
}

func (g *waiting) clear() {
	for _, p := range g.pieces {
		clear(p.request)
		clear(p.response)
	}
}

// clone copies what points into a message.
func (p *piece) clone() *piece {
	c := *p
	for _, b := range [...]*[]byte{&c.key, &c.asked, &c.served, &c.op, &c.route, &c.tenant, &c.clock, &c.request, &c.response, &c.code, &c.cache} {
		*b = append([]byte(nil), *b...)
	}
	return &c
}
