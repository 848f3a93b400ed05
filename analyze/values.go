package analyze

import "math"

// chunkRows is how many rows are read from the columns at a time.
const chunkRows = 1024

// chunk reads what many rows have, column by column.
type chunk struct {
	d                     *Data
	from, to              [chunkRows]int64
	tokens, first, events [chunkRows]int32
	flags                 [chunkRows]bool
	before                [chunkRows]int32 // rows
}

// each gives the values of metric m of rows in order: as Data.value does, and +Inf of those that are not ok. The values
// are valid until visit returns.
func (d *Data) each(m metric, rows []int32, visit func(values []float64)) {
	c, out := &chunk{d: d}, make([]float64, chunkRows)
	for len(rows) > 0 {
		some := rows[:min(chunkRows, len(rows))]
		rows = rows[len(some):]
		c.read(m, some, out[:len(some)])
		status := c.tokens[:len(some)]
		gather(&d.status.column, some, status)
		for k, code := range status {
			if code != statusOK {
				out[k] = math.Inf(1)
			}
		}
		visit(out[:len(some)])
	}
}

func (c *chunk) read(m metric, rows []int32, out []float64) {
	d := c.d
	switch m {
	case ttft:
		c.since(&d.scheduled, &d.first, rows, out)
	case ttfo:
		c.since(&d.scheduled, &d.firstOutput, rows, out)
	case e2e:
		c.since(&d.scheduled, &d.last, rows, out)
	case ttftSent:
		c.since(&d.sent, &d.first, rows, out)
	case ttfoSent:
		c.since(&d.sent, &d.firstOutput, rows, out)
	case e2eSent:
		c.since(&d.sent, &d.last, rows, out)
	case lag:
		c.since(&d.scheduled, &d.sent, rows, out)
	case tpot:
		c.tpot(rows, out)
	default:
		for k, i := range rows {
			out[k] = d.value(m, i)
		}
	}
	switch m {
	case ttft, ttfo, ttftSent, ttfoSent, tpot:
		flags := c.flags[:len(rows)]
		gatherBools(&d.streamed, rows, flags)
		for k, streamed := range flags {
			if !streamed {
				out[k] = math.NaN()
			}
		}
	}
}

func (c *chunk) since(from, to *column[int64], rows []int32, out []float64) {
	froms, tos := c.from[:len(rows)], c.to[:len(rows)]
	gather(from, rows, froms)
	gather(to, rows, tos)
	for k, from := range froms {
		out[k] = c.d.since(from, tos[k])
	}
}

func (c *chunk) tpot(rows []int32, out []float64) {
	d := c.d
	c.since(&d.first, &d.last, rows, out)
	gather(&d.outputTokens, rows, c.tokens[:len(rows)])
	gather(&d.firstTokens, rows, c.first[:len(rows)])
	gather(&d.events, rows, c.events[:len(rows)])
	for k, n := range c.tokens[:len(rows)] {
		if over := gapsOver(n, c.first[k], c.events[k]); over > 0 {
			out[k] /= float64(over)
		} else {
			out[k] = math.NaN()
		}
	}
}

// gapState tells what a row has of a pooled metric.
type gapState int

const (
	gapsKnown  gapState = iota
	gapsFailed          // the request is not ok
	gapsNone            // no gaps
	gapsOther           // gaps of the other kind
)

// eachGaps visits the rows in order with their gaps as Data.gapsOf gives them.
func (d *Data) eachGaps(m metric, rows []int32, visit func(i int32, state gapState, gaps []int32)) {
	c := &chunk{d: d}
	for len(rows) > 0 {
		some := rows[:min(chunkRows, len(rows))]
		rows = rows[len(some):]
		c.gaps(m, some, visit)
	}
}

func (c *chunk) gaps(m metric, rows []int32, visit func(i int32, state gapState, gaps []int32)) {
	d, n := c.d, len(rows)
	for k, i := range rows {
		c.before[k] = max(i-1, 0)
	}
	gather(&d.ends, c.before[:n], c.from[:n])
	gather(&d.ends, rows, c.to[:n])
	gather(&d.status.column, rows, c.tokens[:n])
	gather(&d.events, rows, c.events[:n])
	gatherBools(&d.tokenGaps, rows, c.flags[:n])
	for k, i := range rows {
		from := c.from[k]
		if i == 0 {
			from = 0
		}
		gaps := d.gaps[from:c.to[k]]
		state := gapsKnown
		switch {
		case c.tokens[k] != statusOK:
			state = gapsFailed
		case len(gaps) == 0:
			state = gapsNone
		case !tellsGaps(m, c.flags[k], c.events[k], len(gaps)):
			state = gapsOther
		}
		visit(i, state, gaps)
	}
}
