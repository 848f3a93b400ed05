package ingest

import (
	"tailgate/schemas"
)

// answerState is what a log tells of an answer's text.
type answerState struct {
	known bool   // the answer was logged
	text  []byte // its text where it is plain; nil when empty or not plain
	empty bool   // known, and nothing in it
}

// usage are the token counts as a log gives them.
type usage struct {
	in, out, cached, cacheWrite, reasoning number

	source        string // of the counts that are there
	outSource     string // of the output count; "" = source
	excludesCache bool   // in leaves out what came from or went into the provider's cache
	// emptyUnlessText takes an output count of 0 for true although the answer was not logged.
	emptyUnlessText bool
}

// settle puts the counts into rec. A count of 0 stands for "not known", unless a successful answer is known to
// be empty. It returns false when a count is no count.
func (u usage) settle(rec *record, answer answerState) bool {
	in, inSet, err1 := u.in.tokens()
	out, outSet, err2 := u.out.tokens()
	cached, cachedSet, err3 := u.cached.tokens()
	reasoning, reasoningSet, err4 := u.reasoning.tokens()
	written, _, err5 := u.cacheWrite.tokens()
	if err1 != nil || err2 != nil || err3 != nil || err4 != nil || err5 != nil {
		return false
	}
	if u.excludesCache && inSet {
		in += cached + written
	}
	if in > maxTokens {
		return false
	}
	rec.in, rec.out, rec.cached, rec.reasoning = absent(), absent(), absent(), absent()
	if in > 0 {
		rec.in.set(in, u.source)
	}
	empty := answer.known && answer.empty || u.emptyUnlessText && !answer.known
	if out > 0 || outSet && rec.status == schemas.StatusOK && empty {
		rec.out.set(out, or(u.outSource, u.source))
	}
	if cachedSet && in > 0 && cached <= in {
		rec.cached.set(cached, u.source)
	}
	if reasoningSet && out > 0 && reasoning <= out {
		rec.reasoning.set(reasoning, u.source)
	}
	return true
}

// settleOutcome puts what an HTTP status (0 = none), an error class ("" = none) and a mark of failure say into
// rec.
func settleOutcome(rec *record, code int, class []byte, failed bool) {
	o := outcome{status: schemas.StatusOK, http: int32(code), reached: true}
	if failed || len(class) > 0 || code >= 400 {
		if code == 0 {
			code = httpCode(class)
		}
		o = failure(code, class)
	}
	rec.status, rec.httpStatus, rec.reached = o.status, o.http, o.reached && !rec.probe
}
