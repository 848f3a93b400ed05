package replay

import (
	"math/bits"
	"slices"
	"time"

	"tailgate/schemas"
)

// newResult builds the row of the results table from what was seen (definition tailgate/1, schemas.Definition).
// It takes over the outcome's gaps. This is the only place where results are made.
func newResult(runID string, c *Call) schemas.Result {
	o, row := &c.Outcome, c.Row
	r := schemas.Result{
		RunID: runID, Row: row.Row, Session: row.Session, Turn: row.Turn, Tenant: row.Tenant, Class: row.Class,
		Model: row.Model, Phase: c.Phase, ScheduledUs: c.Scheduled.Microseconds(),
		InputLength: row.InputTokens, OutputLength: row.OutputTokens,
		SentUs: micros(o.Sent), FirstByteUs: micros(o.FirstByte), LastTokenUs: micros(o.LastToken),
		ClosedUs: micros(o.Closed),
		Streamed: o.Streamed, Events: o.Events,
		InputTokens: told(o.Usage.Input), OutputTokens: told(o.Usage.Output),
		CachedTokens: told(o.Usage.Cached), ReasoningTokens: told(o.Usage.Reasoning),
		ServerQueueUs: micros(o.ServerQueue), ServerPrefillUs: micros(o.ServerPrefill),
		Status: o.Status, Target: o.Target,
	}
	if r.SentUs != nil {
		lag := *r.SentUs - r.ScheduledUs
		r.LagUs = &lag
	}
	if o.Streamed {
		r.FirstTokenUs, r.FirstOutputUs = micros(o.FirstToken), micros(o.FirstOutput)
		if o.FirstEventTokens > 0 {
			r.FirstEventTokens = told(o.FirstEventTokens)
		}
		fillGaps(&r, o)
	}
	if o.HTTPStatus != 0 {
		code := int32(o.HTTPStatus)
		r.HTTPStatus = &code
	}
	if o.ErrorKind != "" {
		kind := o.ErrorKind
		r.ErrorKind = &kind
	}
	return r
}

// fillGaps sets the itl columns. The list is sorted ascending: it compresses several times better than in order
// of time, and every rank can be read from it. Percentiles and maximum are of the exact gaps.
func fillGaps(r *schemas.Result, o *Outcome) {
	r.ITLIsToken = o.Events > 0 && !o.cut && (!o.guessed || o.Usage.Output == o.Events)
	n := len(o.gaps)
	if n == 0 {
		return
	}
	slices.Sort(o.gaps)
	p50, p99, last := o.gaps[rank(n, 500)], o.gaps[rank(n, 990)], o.gaps[n-1]
	r.ITLN, r.ITLP50Us, r.ITLP99Us, r.ITLMaxUs = int32(n), &p50, &p99, &last
	for i, gap := range o.gaps {
		o.gaps[i] = bucketFloor(gap)
	}
	r.ITLUs = o.gaps
}

// bucketFloor is the lowest value of v's bucket in a histogram of 3 significant decimal digits, as HdrHistogram
// lays it out (2,048 sub-buckets; Tene, hdrhistogram.org): exact below 2,048, within 0.1 % above.
func bucketFloor(v int32) int32 {
	const subBucketBits = 11
	if shift := bits.Len32(uint32(v)) - subBucketBits; shift > 0 {
		return v >> shift << shift
	}
	return v
}

// micros is a stamp in µs, null when it did not happen.
func micros(d time.Duration) *int64 {
	if d == Never {
		return nil
	}
	us := d.Microseconds()
	return &us
}

// told is a count of the target, null when it was not told.
func told(n int32) *int32 {
	if n < 0 {
		return nil
	}
	return &n
}
