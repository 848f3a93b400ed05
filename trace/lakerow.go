package trace

import (
	"encoding/binary"
	"fmt"

	"tailgate/internal/fault"
	"tailgate/internal/rng"
	"tailgate/schemas"
)

// lakeRow is a trace row in the making; ScheduledUs is wall time until it is given out.
type lakeRow struct {
	schemas.TraceRow
	key          uint64 // of the request and attempt
	resolutionUs int64
	turn         *int32
	noInput      bool
}

// takeGroup takes the rows of the view from a row group whose first row has a number in the file. A row that breaks a
// promise of the lake is fault.Data; other errors are those of the disk.
func (e *exporter) takeGroup(r *groupReader, first int64, path string) error {
	ids, rows := r.ids, len(r.arrived)
	var l lakeRow
	var derived []int64
	for i := range rows {
		own := ids[:max(r.counts[i], 0)]
		ids = ids[len(own):]
		if !e.wants(r, i) {
			continue
		}
		l = lakeRow{key: rng.Hash(uint64(r.key[i]), uint64(r.attempt[i])), resolutionUs: r.step[i]}
		r.labels(&l, i)
		l.SourceRow, l.ScheduledUs = first+int64(i), r.arrived[i]
		if r.turn[i] != noNumber {
			l.turn = &r.turn[i]
		}
		if r.output[i] > 0 && !Failed(&l.TraceRow) {
			l.OutputTokens = &r.output[i]
		}
		if r.share[i] > 0 && r.share[i] < 1 {
			e.sampled++
		}
		if l.noInput = r.input[i] == noNumber; l.noInput {
			e.medianInputs++
		} else {
			l.InputTokens = r.input[i]
			e.inputs.add(l.Class, l.InputTokens)
		}
		if r.counts[i] >= 0 {
			if err := checkLakePrompt(r.input[i], len(own), r.private[i], r.tail[i]); err != nil {
				return fault.Mark(fmt.Errorf("reading %s: row %d: %w", path, l.SourceRow, err), fault.Data, "")
			}
			derived = e.privates.derive(derived[:0], l.InputTokens, own)
			if l.HashIDs = derived; derived == nil {
				l.HashIDs = []int64{}
			}
			if state := r.state.text(i); state == schemas.PromptTruncated || state == schemas.PromptRedacted {
				l.Damaged = true
				e.damaged++
			}
		}
		if err := e.put(&l); err != nil {
			return err
		}
	}
	return nil
}

// wants tells whether the view has a row, and counts what it leaves out.
func (e *exporter) wants(r *groupReader, row int) bool {
	op := r.op.text(row)
	switch {
	case r.probe[row]:
		e.probes++
	case op != schemas.OpChat && op != schemas.OpCompletion && op != schemas.OpResponses:
		e.otherOps++
	case e.o.View == ViewEngine && !r.reached[row]:
		e.unreached++
	case e.o.View == ViewClient && r.attempt[row] != 0:
		e.retries++
	default:
		return true
	}
	return false
}

// labels gives a row its words.
func (r *groupReader) labels(l *lakeRow, row int) {
	l.Tenant, l.Class, l.Session = r.tenant.at(row), r.class.at(row), r.session.at(row)
	if r.model.text(row) != "" {
		l.Model = r.model.at(row)
	}
	if status := r.status.at(row); label(status) != schemas.StatusOK {
		if l.Status = status; status == nil {
			l.Status = new(string)
		}
	}
	if v := r.streamed[row]; v >= 0 {
		if l.Stream = &notStreamed; v == 1 {
			l.Stream = &streamed
		}
	}
}

// What stands before a row of the lake on a tape: flags, key and resolution, then the turn where it is told.
const (
	lakeNoInput = 1 << iota
	lakeTurn
)

// addLake adds a row to the frame.
func (w *frameWriter) addLake(l *lakeRow) error {
	if w.n == 0 {
		w.rows.start()
	}
	w.blob = w.rows.lakeRow(w.blob, l)
	if w.n++; w.n < frameRows {
		return nil
	}
	return w.flush()
}

func (e *rowEncoder) lakeRow(out []byte, l *lakeRow) []byte {
	flags := byte(0)
	if l.noInput {
		flags |= lakeNoInput
	}
	if l.turn != nil {
		flags |= lakeTurn
	}
	out = binary.LittleEndian.AppendUint64(append(out, flags), l.key)
	out = binary.AppendVarint(out, l.resolutionUs)
	if l.turn != nil {
		out = binary.AppendVarint(out, int64(*l.turn))
	}
	return e.row(out, &l.TraceRow, 0, false, nil)
}

// nextLake reads a row that lakeRow wrote. Its ids may be changed until the next one is read.
func (d *rowDecoder) nextLake() (lakeRow, error) {
	var flags byte
	if b := d.in.Take(1); b != nil {
		flags = b[0]
	}
	l := lakeRow{key: d.in.Fixed64(), noInput: flags&lakeNoInput != 0, resolutionUs: d.in.Varint()}
	if flags&lakeTurn != 0 {
		d.turn = int32(d.in.Varint())
		l.turn = &d.turn
	}
	if err := d.next(); err != nil {
		return l, err
	}
	l.TraceRow = d.row
	return l, nil
}
