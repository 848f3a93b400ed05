package analyze

import "math"

// metric is one measured quantity of a request, or of the gaps inside it.
type metric int

const (
	ttft metric = iota
	ttfo
	tpot
	itl
	interChunk
	e2e
	ttftSent
	e2eSent
	lag
	queueTime
	outputTokens
	ttfoSent // for gates with origin sent; not in reports
)

type metricName struct {
	metric metric
	json   string
	label  string
}

// metrics lists what reports show, in their order, under the names of the JSON.
var metrics = []metricName{
	{ttft, "ttft_ms", "ttft"}, {ttfo, "ttfo_ms", "ttfo"}, {tpot, "tpot_ms", "tpot"}, {itl, "itl_ms", "itl"},
	{interChunk, "inter_chunk_ms", "inter_chunk"}, {e2e, "e2e_ms", "e2e"}, {ttftSent, "ttft_sent_ms", "ttft_sent"},
	{e2eSent, "e2e_sent_ms", "e2e_sent"}, {lag, "lag_ms", "lag"}, {queueTime, "queue_ms", "queue_time"},
	{outputTokens, "output_tokens", "output_tokens"},
}

// gateMetrics are the names that rules may use.
var gateMetrics = map[string]metric{
	"ttft": ttft, "ttfo": ttfo, "tpot": tpot, "itl": itl, "inter_chunk": interChunk, "e2e": e2e, "ttft_sent": ttftSent,
	"e2e_sent": e2eSent, "lag": lag, "queue": queueTime, "queue_time": queueTime, "output_tokens": outputTokens,
}

// fromSent is the metric with the other origin.
func (m metric) fromSent() metric {
	switch m {
	case ttft:
		return ttftSent
	case ttfo:
		return ttfoSent
	case e2e:
		return e2eSent
	}
	return m
}

// pooled metrics have many values a request.
func (m metric) pooled() bool { return m == itl || m == interChunk }

// scale is what values are divided by for people: µs to ms, tokens stay.
func (m metric) scale() float64 {
	if m == outputTokens {
		return 1
	}
	return 1000
}

// value returns metric m of row i in µs (or tokens), NaN where it is undefined. It does not look at the status.
func (d *Data) value(m metric, i int32) float64 {
	switch m {
	case ttft:
		return d.since(d.scheduled.at(i), d.firstToken(i))
	case ttfo:
		return d.since(d.scheduled.at(i), d.firstOutputToken(i))
	case tpot:
		return d.tpot(i)
	case e2e:
		return d.since(d.scheduled.at(i), d.last.at(i))
	case ttftSent:
		return d.since(d.sent.at(i), d.firstToken(i))
	case ttfoSent:
		return d.since(d.sent.at(i), d.firstOutputToken(i))
	case e2eSent:
		return d.since(d.sent.at(i), d.last.at(i))
	case lag:
		return d.since(d.scheduled.at(i), d.sent.at(i))
	case queueTime:
		return d.since(0, d.queue.at(i))
	}
	if n := d.outputTokens.at(i); n != noCount {
		return float64(n)
	}
	return math.NaN()
}

func (d *Data) since(from, to int64) float64 {
	if from == noTime || to == noTime {
		return math.NaN()
	}
	return float64(to - from)
}

// firstToken is noTime for an answer that was not streamed: it came as a whole.
func (d *Data) firstToken(i int32) int64 {
	if !d.streamed.at(i) {
		return noTime
	}
	return d.first.at(i)
}

func (d *Data) firstOutputToken(i int32) int64 {
	if !d.streamed.at(i) {
		return noTime
	}
	return d.firstOutput.at(i)
}

// tpot is (last − first)/(N − k) with N from usage and k the tokens of the first event, 1 where nothing tells.
// It is undefined when N < 2, when N is unknown, and when the first event held every token.
func (d *Data) tpot(i int32) float64 {
	over := gapsOver(d.outputTokens.at(i), d.firstTokens.at(i), d.events.at(i))
	if over == 0 {
		return math.NaN()
	}
	return d.since(d.firstToken(i), d.last.at(i)) / float64(over)
}

// gapsOver is N − k, 0 where tpot is undefined.
func gapsOver(n, k, events int32) int32 {
	if k == noCount {
		k = 1
		if events == 1 {
			k = n
		}
	}
	if n < 2 || n <= k {
		return 0
	}
	return n - k
}

// gapsOf returns the values of a pooled metric of row i. Chunk gaps are also known where every event held one
// token, for then both are the same.
func (d *Data) gapsOf(m metric, i int32) []int32 {
	gaps := d.rowGaps(i)
	if !tellsGaps(m, d.tokenGaps.at(i), d.events.at(i), len(gaps)) {
		return nil
	}
	return gaps
}

func tellsGaps(m metric, perToken bool, events int32, gaps int) bool {
	if m == itl {
		return perToken
	}
	return !perToken || int(events) == gaps+1
}
