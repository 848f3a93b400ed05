package profile

import (
	"errors"
	"slices"

	"github.com/zeebo/xxh3"

	"tailgate/internal/parquetio"
	"tailgate/schemas"
	"tailgate/trace"
)

// groupReader decodes row groups of a day, one after the other, into columns of the rows that a part has.
type groupReader struct {
	file *parquetio.Chunks
	part *LakePart // what is read; not changed here

	skip    halvings // of the sample
	rows    []int32  // rows of the group that the part has
	all     bool     // these are all of them
	at      []int64
	in, out []int32
	turn    []int32
	steps   []uint32
	flags   []uint8
	session []uint64 // hashes; 0 = none
	tenant  parquetio.Labels
	class   parquetio.Labels
	model   parquetio.Labels
	models  []bool // words of model that rows have

	counts  []int32 // ids by row
	private []int32
	ids     []int64 // of all rows; none of a sample
	firsts  []int64 // by row, where it has ids; of a sample
	kept    []int32 // sampled ids by row
	sample  sampled
	wholes  []int32 // ids by row that are kept whole beside a sample; −1 = not kept
	whole   []int64

	left    leftOut // of the last row group
	latency *latencies
	classes dict // of the latencies

	tails  []int32
	longs  [2][]int64
	bools  []bool
	shares []float64
	words  parquetio.Labels
	big    []int64
}

func newGroupReader(file *parquetio.Chunks, p *LakePart) *groupReader {
	return &groupReader{file: file, part: p, latency: newLatencies()}
}

// read decodes a row group, whose first row has a number in the file.
func (r *groupReader) read(group, first int, skip halvings) error {
	r.skip, r.left = skip, leftOut{}
	if err := r.choose(group); err != nil || len(r.rows) == 0 {
		return err
	}
	if err := errors.Join(r.numbers(group), r.labels(group)); err != nil {
		return err
	}
	if err := r.prompts(group, first); err != nil {
		return err
	}
	if err := r.latencies(group); err != nil {
		return err
	}
	for i, f := range r.flags {
		if f&rowFailed != 0 {
			r.out[i] = none
		}
	}
	return nil
}

// choose tells which rows the view and the hours have, and counts what is left out.
func (r *groupReader) choose(group int) error {
	p := r.part
	const probe, otherOp, unwanted = 1, 2, 4
	var err error
	if r.at, err = r.file.Int64s(group, "arrived_at", 0, r.at[:0]); err != nil {
		return err
	}
	n := len(r.at)
	excluded := make([]uint8, n)
	mark := func(name string, is bool, as uint8) {
		if err != nil {
			return
		}
		r.bools, err = r.file.Bools(group, name, r.bools[:0])
		for i, v := range r.bools {
			if v == is {
				excluded[i] |= as
			}
		}
	}
	mark("is_probe", true, probe)
	if p.view == trace.ViewEngine {
		mark("reached_engine", false, unwanted)
	} else if err == nil {
		r.tails, err = r.file.Int32s(group, "attempt", 0, r.tails[:0])
		for i, attempt := range r.tails {
			if attempt != 0 {
				excluded[i] |= unwanted
			}
		}
	}
	if err = errors.Join(err, r.file.Labels(group, "op", &r.words)); err != nil {
		return err
	}
	for i, code := range r.words.Codes {
		if code < 0 || !slices.Contains([]string{schemas.OpChat, schemas.OpCompletion, schemas.OpResponses}, r.words.Words[code]) {
			excluded[i] |= otherOp
		}
	}
	from, to := p.midnightUs()+int64(p.from)*hourUs, p.midnightUs()+int64(p.to)*hourUs
	r.rows = r.rows[:0]
	for i, us := range r.at {
		switch why := excluded[i]; {
		case !p.Whole() && (us < from || us >= to):
		case why == 0:
			r.rows = append(r.rows, int32(i))
		case why&probe != 0:
			r.left.Probes++
		case why&otherOp != 0:
			r.left.OtherOps++
		case p.view == trace.ViewEngine:
			r.left.Unreached++
		default:
			r.left.Retries++
		}
	}
	r.all = len(r.rows) == n
	r.at = chosen(r, r.at)
	return nil
}

// chosen keeps the values of the rows that the part has.
func chosen[T any](r *groupReader, column []T) []T {
	if r.all {
		return column
	}
	for i, row := range r.rows {
		column[i] = column[row]
	}
	return column[:len(r.rows)]
}

// numbers reads the columns of numbers.
func (r *groupReader) numbers(group int) (err error) {
	read := func(name string, to []int32) []int32 {
		if err == nil {
			to, err = r.file.Int32s(group, name, none, to[:0])
		}
		if err != nil {
			return to
		}
		return chosen(r, to)
	}
	r.in, r.turn, r.out = read("input_tokens", r.in), read("turn", r.turn), read("output_tokens", r.out)
	r.private, r.tails = read("private_blocks", r.private), read("tail_tokens", r.tails)
	if err != nil {
		return err
	}
	for i, v := range r.out {
		if v <= 0 {
			r.out[i] = none
		}
	}
	if r.longs[0], err = r.file.Int64s(group, "time_resolution_us", 0, r.longs[0][:0]); err != nil {
		return err
	}
	r.steps = r.steps[:0]
	for _, us := range chosen(r, r.longs[0]) {
		r.steps = append(r.steps, clampUs(us))
	}
	if r.shares, err = r.file.Float64s(group, "sampled_fraction", 1, r.shares[:0]); err != nil {
		return err
	}
	for _, share := range chosen(r, r.shares) {
		if share > 0 && share < 1 {
			r.left.Sampled++
		}
	}
	return nil
}

// labels reads the columns of words: who asked, and how it ended.
func (r *groupReader) labels(group int) (err error) {
	if err := errors.Join(r.file.Labels(group, "tenant", &r.tenant), r.file.Labels(group, "class", &r.class), r.file.Labels(group, "model", &r.model),
		r.file.Labels(group, "status", &r.words)); err != nil {
		return err
	}
	r.tenant.Codes, r.class.Codes, r.model.Codes = chosen(r, r.tenant.Codes), chosen(r, r.class.Codes), chosen(r, r.model.Codes)
	r.models = append(r.models[:0], make([]bool, len(r.model.Words))...)
	for _, code := range r.model.Codes {
		if code >= 0 {
			r.models[code] = true
		}
	}
	r.flags = append(r.flags[:0], make([]uint8, len(r.rows))...)
	r.flag(rowFailed, func(status string) bool { return trace.Failed(&schemas.TraceRow{Status: &status}) })
	if err := r.file.Labels(group, "prompt_state", &r.words); err != nil {
		return err
	}
	r.flag(rowDamaged, func(state string) bool { return state == schemas.PromptTruncated || state == schemas.PromptRedacted })
	r.session, err = r.file.Hashes(group, "session", func(v []byte) uint64 { return max(xxh3.Hash(v), 1) }, 0, r.session[:0])
	if err == nil {
		r.session = chosen(r, r.session)
	}
	return err
}

// flag sets a flag in the rows that have such a word.
func (r *groupReader) flag(flag uint8, is func(word string) bool) {
	flags := make([]uint8, len(r.words.Words))
	for k, word := range r.words.Words {
		if is(word) {
			flags[k] = flag
		}
	}
	for i, code := range chosen(r, r.words.Codes) {
		if code >= 0 {
			r.flags[i] |= flags[code]
		}
	}
}
