package ingest

import (
	"encoding/binary"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"tailgate/prompt"
	"tailgate/schemas"
)

// place is where a record came from. Its parts key the ids that only this record may have.
type place struct {
	topic      string // token
	generation int
	partition  int32
	offset     int64
	index      int32
}

// parts returns the place as parts of a key, with room for one more number.
func (p place) parts(extra int64) [][]byte {
	nums := make([]byte, 0, 5*8)
	for _, v := range []int64{int64(p.generation), int64(p.partition), p.offset, int64(p.index), extra} {
		nums = binary.BigEndian.AppendUint64(nums, uint64(v))
	}
	return [][]byte{[]byte(p.topic), nums}
}

// rowMaker turns records into rows: the only place where raw fields become columns.
type rowMaker struct {
	anon    Anonymizer
	gateway string
	models  map[string]bool
	classes *ClassRules
	scratch []int64 // ids of one prompt
	log     *slog.Logger

	byDay      func(day string) (DayKeys, error) // nil = anon for all days
	day, epoch string                            // that anon is of, where there is byDay
}

func newRowMaker(o *Options) *rowMaker {
	m := &rowMaker{anon: o.Anonymizer, gateway: o.gateway(), classes: o.Classes, log: o.Logger, models: map[string]bool{}, byDay: o.ByDay}
	for _, name := range o.Models {
		m.models[name] = true
	}
	return m
}

// row makes the row of rec. Only the hashing of the prompt can fail: errHash, or errFault for a panic; and the keys of
// its day may be missing: errDayKeys.
func (m *rowMaker) row(rec *record, at place) (row schemas.Request, err error) {
	if err := m.useDay(dayOf(rec.arrived)); err != nil {
		return schemas.Request{}, err
	}
	defer guard(m.log, &err)
	return m.build(rec, at)
}

func (m *rowMaker) build(rec *record, at place) (schemas.Request, error) {
	arrived := rec.arrived.Truncate(time.Microsecond)
	row := schemas.Request{
		ArrivedAt: arrived, TimeResolutionUs: rec.resolutionUs, TQuality: or(rec.quality, schemas.TimeStart),
		RequestKey: m.requestKey(rec, arrived, at),
		RequestID:  m.token("request", rec.requestID), ClockID: m.token("clock", rec.clock),
		Attempt: rec.attempt, ParentRequestID: m.token("request", rec.parent),
		Tenant: m.token("tenant", rec.tenant), Session: m.token("session", rec.session),
		Model: m.model(rec.model), Gateway: m.gateway,
		Op: rec.op, Status: rec.status, ReachedEngine: rec.reached, IsProbe: rec.probe,
		SampledFraction: or(rec.sampled, 1), Stream: rec.stream,
		InputTokens: rec.in.n, InputTokensSource: rec.in.source,
		OutputTokens: rec.out.n, OutputTokensSource: rec.out.source,
		CachedTokens: rec.cached.n, CachedTokensSource: rec.cached.source,
		ReasoningTokens: rec.reasoning.n, ReasoningTokensSource: rec.reasoning.source,
		TTFTUs: micros(rec.ttft), DurationUs: micros(rec.duration),
		PromptState: rec.prompt.State,
		Topic:       at.topic, Partition: at.partition, Offset: at.offset, Index: at.index,
	}
	ownValues(&row)
	if rec.httpStatus != 0 {
		row.HTTPStatus = new(rec.httpStatus)
	}
	if err := m.hash(&row, rec, at); err != nil {
		return schemas.Request{}, err
	}
	if err := m.countAnswer(&row, rec); err != nil {
		return schemas.Request{}, err
	}
	row.Class = new(m.classes.classify(rec, row.InputTokens))
	return row, nil
}

// requestKey identifies the request for deduplication: by id, session and start, or, without an id, by the
// place of the record alone, so that such rows never merge.
func (m *rowMaker) requestKey(rec *record, arrived time.Time, at place) int64 {
	if len(rec.requestID) == 0 {
		return m.anon.Key("record", at.parts(0)...)
	}
	start := strconv.AppendInt(nil, arrived.UnixMicro(), 10)
	return m.anon.Key("request", rec.requestID, rec.session, start)
}

// countAnswer counts the text of an answer that broke off before anybody told its length.
func (m *rowMaker) countAnswer(row *schemas.Request, rec *record) error {
	if row.OutputTokens != nil || row.Status != schemas.StatusCancelled || len(rec.answer) == 0 {
		return nil
	}
	answer := prompt.Prompt{State: schemas.PromptFull, Intact: 1, Model: rec.prompt.Model, Messages: []prompt.Message{plainMessage(rec.answer)}}
	_, tokens, err := m.anon.Blocks(m.scratch[:0], &answer)
	if err != nil {
		return errHash
	}
	row.OutputTokens, row.OutputTokensSource = new(int32(tokens)), schemas.TokensTokenizer
	return nil
}

func (m *rowMaker) token(kind string, value []byte) *string {
	if len(value) == 0 {
		return nil
	}
	return new(m.anon.Token(kind, value))
}

func (m *rowMaker) model(name string) string {
	if name == "" || m.models[name] {
		return name
	}
	return m.anon.Token("model", []byte(name))
}

// ownValues gives row copies of what it points to in its record, which is used again.
func ownValues(row *schemas.Request) {
	if row.Stream != nil {
		row.Stream = new(*row.Stream)
	}
	for _, n := range [...]**int32{&row.InputTokens, &row.OutputTokens, &row.CachedTokens, &row.ReasoningTokens} {
		if *n != nil {
			*n = new(**n)
		}
	}
}

func micros(d *time.Duration) *int64 {
	if d == nil {
		return nil
	}
	return new(d.Microseconds())
}

// errHash is the error of a prompt that the anonymizer refused; its own words may quote the prompt.
var errHash = fmt.Errorf("hashing a prompt")
