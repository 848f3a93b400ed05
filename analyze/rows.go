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
		d.appendResult(r)
	}
	d.endInput(Input{Path: m.RunID, Manifest: m, Folder: true}, m.RunID)
	d.finish()
	return d
}

// appendResult appends r to every column.
func (d *Data) appendResult(r *schemas.Result) {
	d.row.append(r.Row, 0)
	d.scheduled.append(r.ScheduledUs, 0)
	d.sent.append(orNoTime(r.SentUs), 0)
	d.first.append(orNoTime(r.FirstTokenUs), 0)
	d.firstOutput.append(orNoTime(r.FirstOutputUs), 0)
	d.last.append(orNoTime(r.LastTokenUs), 0)
	d.closed.append(orNoTime(r.ClosedUs), 0)
	d.queue.append(orNoTime(r.ServerQueueUs), 0)
	d.inputLength.append(r.InputLength, 0)
	d.outputLength.append(orNoCount(r.OutputLength), 0)
	d.inputTokens.append(orNoCount(r.InputTokens), 0)
	d.outputTokens.append(orNoCount(r.OutputTokens), 0)
	d.firstTokens.append(orNoCount(r.FirstEventTokens), 0)
	d.events.append(r.Events, 0)
	d.streamed.append(r.Streamed, 0)
	d.tokenGaps.append(r.ITLIsToken, 0)
	d.warm.append(r.Phase == schemas.PhaseWarmup, 0)
	d.drain.append(r.Phase == schemas.PhaseDrain, 0)
	d.status.append(d.status.dict.Code([]byte(r.Status)), 0)
	d.target.append(d.target.code(&r.Target), 0)
	d.tenant.append(d.tenant.code(r.Tenant), 0)
	d.class.append(d.class.code(r.Class), 0)
	d.model.append(d.model.code(r.Model), 0)
	d.session.append(d.session.code(r.Session), 0)
	d.gapCount.append(int32(len(r.ITLUs)), 0)
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
