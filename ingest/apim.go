package ingest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"tailgate/internal/jsonscan"
	"tailgate/schemas"
)

// formatAPIM is Azure API Management's log of language models, ApiManagementGatewayLlmLog, with the gateway's own
// log, ApiManagementGatewayLogs, beside it where both go to one topic. A request is spread over rows that share a
// CorrelationId: numbered pieces of its texts, and the row with its duration.
const formatAPIM = "apim"

// piece is one row.
type piece struct {
	key        []byte // CorrelationId
	sequence   int64
	llm        bool // a row of the log of language models, not of the gateway's
	at         time.Time
	resolution int64

	asked, served, op, route, tenant, clock []byte
	stream                                  *bool
	in, out                                 number
	request, response                       []byte // what of the texts is in this row
	duration                                number // ms
	code, cache                             []byte
}

// apimPieces is a decoder whose items are pieces.
func (r *reader) apimPieces(value []byte) []item { return r.records(r.apimRecord)(value) }

// apim is a decoder that joins the pieces within one message.
func (r *reader) apim(value []byte) []item {
	items := r.apimPieces(value)
	var all []item
	at := map[string]int{}
	groups := map[int][]*piece{}
	for _, it := range items {
		if it.piece == nil {
			all = append(all, it)
			continue
		}
		i, known := at[string(it.piece.key)]
		if !known {
			i = len(all)
			at[string(it.piece.key)] = i
			all = append(all, it)
		} else {
			all = append(all, item{skip: SkipJoined})
		}
		groups[i] = append(groups[i], it.piece)
	}
	for i, pieces := range groups {
		all[i] = r.joined(pieces, all[i].raw)
	}
	return all
}

// apimRecord reads a row, or the rows of an export to an event hub, which are the list "records". What is odd about
// a row's JSON does not matter here: names are compared without their case.
func (r *reader) apimRecord(raw []byte) []item {
	if r.unproven {
		return nil
	}
	var rows []item
	batch := false
	eachMember(raw, func(key, value []byte) {
		if string(key) == "records" && value[0] == '[' {
			batch = true
			eachElement(value, func(row []byte) { rows = append(rows, r.apimRow(row)) })
		}
	})
	switch {
	case !batch:
		return r.one(r.apimRow(raw))
	case len(rows) == 0:
		return r.one(item{skip: SkipEmpty})
	}
	return rows
}

func (r *reader) apimRow(raw []byte) item {
	if raw[0] != '{' {
		return item{dead: DeadLayout, raw: raw}
	}
	p := &piece{sequence: -1}
	reason := r.apimFields(raw, p)
	switch {
	case reason != "":
		return item{dead: reason, raw: raw}
	case len(p.key) == 0 || !p.llm && !p.duration.set && len(p.code) == 0:
		return item{dead: DeadLayout, raw: raw}
	case p.at.IsZero():
		return item{dead: DeadMissingTime, raw: raw}
	}
	return item{piece: p, raw: raw}
}

// apimFields reads the fields of a row, also those under "properties".
func (r *reader) apimFields(raw []byte, p *piece) (reason string) {
	eachMember(raw, func(key, value []byte) {
		var err error
		text := func() (l label) {
			if value[0] == '"' {
				return r.unquoted(value)
			}
			err = l.UnmarshalJSON(value)
			return l
		}
		count := func() (n number) {
			err = n.UnmarshalJSON(value)
			return n
		}
		switch string(bytes.ToLower(key)) {
		case "properties":
			if inner, ok := r.inner(value); ok && len(inner) > 0 && inner[0] == '{' {
				reason = r.apimFields(inner, p)
			}
		case "correlationid":
			p.key = firstOf(p.key, text())
		case "timegenerated", "time":
			at := text()
			t, ok := isoTime(at)
			if !ok && len(at) > 0 {
				reason = DeadBadTime
			}
			p.at, p.resolution = t, isoResolution(at)
		case "sequencenumber":
			if n := count(); n.set {
				p.sequence, p.llm = int64(n.v), true
			}
		case "prompttokens":
			p.in, p.llm = count(), true
		case "completiontokens":
			p.out, p.llm = count(), true
		case "requestmessages":
			p.request, p.llm = text(), true
		case "responsemessages":
			p.response, p.llm = text(), true
		case "deploymentname":
			p.asked = text()
		case "modelname":
			p.served = text()
		case "isstreamcompletion":
			p.stream, _ = spelledFlag(value)
		case "operationname":
			p.op = bytes.ToLower(text())
		case "totaltime", "durationms":
			if n := count(); n.set {
				p.duration = n
			}
		case "responsecode":
			p.code = text()
		case "cache":
			p.cache = text()
		case "url":
			p.route = text()
		case "apimsubscriptionid":
			p.tenant = text()
		case "region", "location":
			p.clock = text()
		}
		if err != nil && reason == "" {
			reason = DeadBadField
		}
	})
	return reason
}

// joined makes the item of all pieces of a request that are there; raw is the first one's.
func (r *reader) joined(pieces []*piece, raw []byte) item {
	llm := slices.DeleteFunc(slices.Clone(pieces), func(p *piece) bool { return !p.llm })
	if len(llm) == 0 {
		return item{skip: SkipNotGeneration} // the gateway serves other APIs too
	}
	slices.SortStableFunc(llm, func(a, b *piece) int { return cmp.Compare(a.sequence, b.sequence) })
	llm = slices.CompactFunc(llm, func(a, b *piece) bool { return a.sequence == b.sequence })
	if llm[0].sequence > 0 && !slices.ContainsFunc(llm, func(p *piece) bool { return p.in.set }) {
		return item{skip: SkipJoined} // its first row, which has the counts, is elsewhere
	}
	rec := r.record()
	rec.requestID, rec.op = llm[0].key, schemas.OpChat
	rec.arrived, rec.resolutionUs = llm[0].at, llm[0].resolution
	var u usage
	var code int
	var asked, served, op, cache []byte
	for _, p := range append(llm, pieces...) {
		if p.llm && p.at.Before(rec.arrived) {
			rec.arrived = p.at
		}
		asked, served, op, cache = firstOf(asked, p.asked), firstOf(served, p.served), firstOf(op, p.op), firstOf(cache, p.cache)
		rec.route, rec.tenant, rec.clock = firstOf(rec.route, p.route), firstOf(rec.tenant, p.tenant), firstOf(rec.clock, p.clock)
		u.in, u.out = firstNumber(u.in, p.in), firstNumber(u.out, p.out)
		code = cmp.Or(code, httpCode(p.code))
		if rec.stream == nil {
			rec.stream = p.stream
		}
		if d := p.duration; !p.llm && d.set && d.v >= 0 && d.v < 1e12 {
			rec.setDuration(time.Duration(d.v * 1e6))
		}
	}
	rec.model, rec.prompt.Model = r.names.text(firstOf(asked, served)), r.names.text(firstOf(served, asked))
	if known := apimOp(op); known != "" {
		rec.op = known
	} else if o := opOfPath(rec.route); o != schemas.OpOther {
		rec.op = o
	}
	answer := r.apimTexts(rec, llm)
	settleOutcome(rec, code, nil, false)
	switch {
	case string(bytes.ToLower(cache)) == "hit":
		rec.status, rec.reached = schemas.StatusCacheHit, false
	case code == 0 && (!answer.known || answer.empty) && u.out.v == 0:
		rec.status = schemas.StatusUnknown // nothing tells that it was answered
	}
	u.source = schemas.TokensProvider
	if !u.settle(rec, answer) {
		rec.clear()
		return item{dead: DeadBadTokens, raw: raw}
	}
	return item{rec: rec, raw: raw}
}

// apimTexts puts prompt and answer together. A prompt of which a piece is missing is no JSON any more, and counts as
// truncated.
func (r *reader) apimTexts(rec *record, llm []*piece) answerState {
	var request, response []byte
	whole := true
	for i, p := range llm {
		request, response = append(request, p.request...), append(response, p.response...)
		whole = whole && (p.sequence < 0 || p.sequence == int64(i))
	}
	defer clear(request)
	defer clear(response)
	request = trimJSON(request)
	valid := jsonscan.Valid(request)
	if valid && whole && len(request) > 0 {
		if r.prompt(json.RawMessage(request), &rec.prompt) != nil {
			rec.prompt.Clear()
			valid = false
		}
	}
	judge(&rec.prompt)
	if len(request) > 0 && (!valid || !whole) {
		rec.prompt.State, rec.prompt.Intact = schemas.PromptTruncated, 0
	}
	rec.prompt.Model = r.names.text(firstOf(llm[0].served, []byte(rec.model)))
	if len(response) == 0 {
		return answerState{}
	}
	quoted := appendQuoted(nil, response)
	defer clear(quoted)
	_, answer := r.responseBody(quoted)
	rec.answer = answer.text
	return answer
}

// apimOp tells the operation by the name of the API's operation, "" when it does not.
func apimOp(name []byte) string {
	for _, known := range [...]struct{ part, op string }{
		{"embedding", schemas.OpEmbedding}, {"chat", schemas.OpChat}, {"response", schemas.OpResponses}, {"completion", schemas.OpCompletion},
	} {
		if bytes.Contains(name, []byte(known.part)) {
			return known.op
		}
	}
	return ""
}
