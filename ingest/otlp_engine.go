package ingest

import (
	"bytes"
	"math"
	"strconv"
	"time"

	"tailgate/schemas"
)

// engineRecord maps vLLM's own span of a request: it has no prompt, but the best arrival times there are.
func (o *otlpReader) engineRecord(s *otlpSpan, a, resource *attributes) (rec *record, reason string) {
	rec, reason = o.arrival(s, a, resource)
	if reason != "" {
		return nil, reason
	}
	if id := a.text("gen_ai.request.id"); len(id) > 0 {
		rec.requestID = id
	}
	rec.op = schemas.OpOther
	if op := engineOp(rec.requestID); op != "" {
		rec.op = op
	}
	model := o.names.text(a.text("gen_ai.response.model", "gen_ai.request.model"))
	rec.model, rec.prompt.Model = model, model
	rec.prompt.State = schemas.PromptAbsent
	if d, ok := seconds(a.number("gen_ai.latency.e2e")); ok {
		rec.setDuration(d)
	}
	if d, ok := seconds(a.number("gen_ai.latency.time_to_first_token")); ok {
		rec.setTTFT(d)
	}
	s.outcome(rec, a)
	if !spanTokens(rec, a, answerState{}) {
		return nil, DeadBadTokens
	}
	return rec, ""
}

// engineOp tells the operation by the prefix that vLLM's API server gives to request ids.
func engineOp(id []byte) string {
	for _, known := range [...]struct{ prefix, op string }{
		{"chatcmpl-", schemas.OpChat}, {"cmpl-", schemas.OpCompletion}, {"resp_", schemas.OpResponses},
		{"embd-", schemas.OpEmbedding}, {"score-", schemas.OpRerank}, {"rerank-", schemas.OpRerank},
	} {
		if bytes.HasPrefix(id, []byte(known.prefix)) {
			return known.op
		}
	}
	return ""
}

func seconds(n number) (time.Duration, bool) {
	if !n.set || n.v <= 0 || n.v > math.MaxInt32 {
		return 0, false
	}
	return time.Duration(n.v * 1e9), true
}

// sampledShare reads which share of requests a tracer kept: the threshold in the W3C trace state
// ("ot=th:…", OpenTelemetry's consistent sampling), or what older samplers wrote into attributes. 0 = not told.
func sampledShare(state []byte, a *attributes) float64 {
	if p := thresholdShare(state); p > 0 {
		return p
	}
	if n := a.number("SampleRate", "sampling.sample_rate"); n.set && n.v >= 1 {
		return 1 / n.v
	}
	if n := a.number("sampler.param"); string(a.text("sampler.type")) == "probabilistic" && n.set && n.v > 0 && n.v <= 1 {
		return n.v
	}
	return 0
}

// thresholdShare turns the rejection threshold th, up to 14 hex digits without its trailing zeros, into the
// share that was kept.
func thresholdShare(state []byte) float64 {
	if len(state) == 0 {
		return 0
	}
	for vendor := range bytes.SplitSeq(state, []byte{','}) {
		fields, ok := bytes.CutPrefix(bytes.TrimSpace(vendor), []byte("ot="))
		if !ok {
			continue
		}
		for field := range bytes.SplitSeq(fields, []byte{';'}) {
			th, ok := bytes.CutPrefix(field, []byte("th:"))
			if !ok || len(th) == 0 || len(th) > 14 {
				continue
			}
			v, err := strconv.ParseUint(string(th), 16, 64)
			if err != nil {
				continue
			}
			return 1 - float64(v)/math.Pow(16, float64(len(th)))
		}
	}
	return 0
}
