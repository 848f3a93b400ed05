package analyze

import (
	"iter"

	"tailgate/schemas"
)

// FromResults takes the rows of one run from memory, as Load takes those of a run folder; m is the run's manifest. A row
// is read when it comes and not kept.
func FromResults(rows iter.Seq[*schemas.Result], m *schemas.Manifest) *Data {
	d := newData()
	for r := range rows {
		d.appendResult(r, 0)
	}
	d.endInput(Input{Path: m.RunID, Manifest: m, Folder: true}, m.RunID)
	d.finish()
	return d
}

// appendResult appends r to every column; room is how many rows will come in all.
func (d *Data) appendResult(r *schemas.Result, room int) {
	d.row.append(r.Row, room)
	d.scheduled.append(r.ScheduledUs, room)
	d.sent.append(orNoTime(r.SentUs), room)
	d.first.append(orNoTime(r.FirstTokenUs), room)
	d.firstOutput.append(orNoTime(r.FirstOutputUs), room)
	d.last.append(orNoTime(r.LastTokenUs), room)
	d.closed.append(orNoTime(r.ClosedUs), room)
	d.queue.append(orNoTime(r.ServerQueueUs), room)
	d.inputLength.append(r.InputLength, room)
	d.outputLength.append(orNoCount(r.OutputLength), room)
	d.inputTokens.append(orNoCount(r.InputTokens), room)
	d.outputTokens.append(orNoCount(r.OutputTokens), room)
	d.firstTokens.append(orNoCount(r.FirstEventTokens), room)
	d.events.append(r.Events, room)
	d.streamed.append(r.Streamed, room)
	d.tokenGaps.append(r.ITLIsToken, room)
	d.warm.append(r.Phase == schemas.PhaseWarmup, room)
	d.drain.append(r.Phase == schemas.PhaseDrain, room)
	d.status.append(d.status.dict.Code([]byte(r.Status)), room)
	d.target.append(d.target.code(&r.Target), room)
	d.tenant.append(d.tenant.code(r.Tenant), room)
	d.class.append(d.class.code(r.Class), room)
	d.model.append(d.model.code(r.Model), room)
	d.session.append(d.session.code(r.Session), room)
	d.gapCount.append(int32(len(r.ITLUs)), room)
	d.gaps = append(d.gaps, r.ITLUs...)
}

func orNoTime(us *int64) int64 {
	if us == nil {
		return noTime
	}
	return *us
}

func orNoCount(n *int32) int32 {
	if n == nil {
		return noCount
	}
	return *n
}
