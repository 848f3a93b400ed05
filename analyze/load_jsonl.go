package analyze

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"tailgate/internal/fault"
	"tailgate/schemas"
)

// maxLine bounds one line of JSONL in bytes.
const maxLine = 64 << 20

// aliases are the short names that JSONL may use for columns of the results table, without the unit suffix.
var aliases = map[string]string{"first_token": "first", "last_token": "last", "streamed": "stream"}

// loadJSONL appends the rows of r as one input. The layout is that of the results table: one object a line,
// times as NAME_us, NAME_ms or NAME (ms), the aliases above, unknown keys ignored; or that of a tool in foreignTools.
func (d *Data) loadJSONL(ctx context.Context, r io.Reader, name string) error {
	plain, closer, err := decompressed(r)
	if err != nil {
		return fault.Mark(fmt.Errorf("reading %s: %w", name, err), fault.Data, "")
	}
	defer closer()
	head := bufio.NewReaderSize(plain, sniffBytes)
	if tool := sniff(head); tool != nil {
		return d.loadForeign(ctx, head, name, tool)
	}
	lines := bufio.NewScanner(head)
	lines.Buffer(make([]byte, 64<<10), maxLine)
	sink := jsonSink{d: d, times: d.times(), counts: d.counts(), labels: d.labels()}
	unscheduled, line := 0, 0
	for lines.Scan() {
		line++
		if line%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		text := lines.Bytes()
		if len(strings.TrimSpace(string(text))) == 0 {
			continue
		}
		row, err := parseRow(text)
		if err != nil {
			return fault.Mark(fmt.Errorf("reading results %s:%d: %w", name, line, err), fault.Data, "")
		}
		if row.unscheduled {
			unscheduled++
		}
		sink.append(row)
	}
	if err := lines.Err(); err != nil {
		return fault.Mark(fmt.Errorf("reading results %s:%d: %w", name, line+1, err), fault.Data, "")
	}
	d.noSchedule(unscheduled, name)
	d.endInput(Input{Path: name, unscheduled: unscheduled}, "")
	return nil
}

// decompressed looks at the first bytes for gzip and zstd.
func decompressed(r io.Reader) (io.Reader, func(), error) {
	b := bufio.NewReaderSize(r, 64<<10)
	magic, err := b.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, nil, err
	}
	switch {
	case len(magic) >= 2 && magic[0] == 0x1f && magic[1] == 0x8b:
		z, err := gzip.NewReader(b)
		if err != nil {
			return nil, nil, err
		}
		return z, func() { z.Close() }, nil
	case string(magic) == "\x28\xb5\x2f\xfd":
		z, err := zstd.NewReader(b, zstd.WithDecoderConcurrency(1))
		if err != nil {
			return nil, nil, err
		}
		return z, z.Close, nil
	case string(magic) == "PAR1":
		return nil, nil, errors.New("parquet cannot be read from a stream, give its path")
	}
	return b, func() {}, nil
}

// jsonRow is one line, with the nulls of Data for what it does not tell.
type jsonRow struct {
	times              map[string]int64
	counts             map[string]int32
	labels             map[string]string
	gaps               []int32
	streamed, perToken bool
	row                int64
	unscheduled        bool
	warm, drain        bool
}

func parseRow(text []byte) (*jsonRow, error) {
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(text, &raw); err != nil {
		return nil, fmt.Errorf("not a JSON object: %w", err)
	}
	if raw == nil {
		return nil, errors.New("not a JSON object: null")
	}
	p := rowParser{raw: raw}
	row := &jsonRow{times: map[string]int64{}, counts: map[string]int32{}, labels: map[string]string{}}
	for _, name := range timeNames {
		row.times[name] = p.time(strings.TrimSuffix(name, "_us"))
	}
	for _, name := range countNames {
		row.counts[name] = p.count(name)
	}
	for _, name := range labelNames {
		if name == "status" {
			row.labels[name] = p.status()
		} else if s, ok := p.text(name); ok && s != "" {
			row.labels[name] = s
		}
	}
	row.streamed = p.flag("streamed", true)
	row.perToken = p.flag("itl_is_token", false)
	row.gaps = p.gaps()
	phase, _ := p.text("phase")
	row.row = p.number("row")
	row.warm, row.drain = phase == schemas.PhaseWarmup, phase == schemas.PhaseDrain
	if p.err != nil {
		return nil, p.err
	}
	return row, row.check()
}

// The columns that a line may fill, in a fixed order so that the first fault named is always the same.
var (
	timeNames  = slices.Sorted(maps.Keys(newDataOf(true).times()))
	countNames = slices.Sorted(maps.Keys(newDataOf(true).counts()))
	labelNames = slices.Sorted(maps.Keys(newData().labels()))
)

// check holds a line against time's arrow and fills in a missing schedule.
func (r *jsonRow) check() error {
	sent, first, last := r.times["sent_us"], r.times["first_token_us"], r.times["last_token_us"]
	if r.times["scheduled_us"] == noTime {
		if sent == noTime {
			return errors.New("neither scheduled nor sent is told")
		}
		r.times["scheduled_us"], r.unscheduled = sent, true
	}
	if first != noTime && sent != noTime && first < sent {
		return errors.New("first lies before sent")
	}
	if first != noTime && last != noTime && last < first {
		return errors.New("last lies before first")
	}
	if last != noTime && sent != noTime && last < sent {
		return errors.New("last lies before sent")
	}
	return nil
}

// jsonSink holds the columns by name, so that they are looked up once and not at every row.
type jsonSink struct {
	d      *Data
	times  map[string]*column[int64]
	counts map[string]*column[int32]
	labels map[string]*words
}

func (s *jsonSink) append(r *jsonRow) {
	for name, col := range s.times {
		col.append(r.times[name], 0)
	}
	for name, col := range s.counts {
		col.append(r.counts[name], 0)
	}
	for name, col := range s.labels {
		code := int32(noWord)
		if s, ok := r.labels[name]; ok {
			code = col.dict.Code([]byte(s))
		}
		col.append(code, 0)
	}
	d := s.d
	d.streamed.append(r.streamed, 0)
	d.tokenGaps.append(r.perToken, 0)
	d.row.append(r.row, 0)
	d.warm.append(r.warm, 0)
	d.drain.append(r.drain, 0)
	d.gapCount.append(int32(len(r.gaps)), 0)
	d.gaps = append(d.gaps, r.gaps...)
}

// rowParser reads typed values; it keeps the first fault.
type rowParser struct {
	raw map[string]json.RawMessage
	err error
}

// value returns the value under name or its alias; null counts as missing.
func (p *rowParser) value(name, suffix string) (json.RawMessage, bool) {
	for _, key := range []string{name, aliases[name]} {
		if v, ok := p.raw[key+suffix]; ok && key != "" && string(v) != "null" {
			return v, true
		}
	}
	return nil, false
}

func (p *rowParser) decode(name string, v json.RawMessage, to any, want string) {
	if err := json.Unmarshal(v, to); err != nil && p.err == nil {
		p.err = fmt.Errorf("%s must be %s", name, want)
	}
}

// units are the spellings of a time: suffix and µs per unit.
var units = []struct {
	suffix string
	us     float64
}{{"_us", 1}, {"_ms", 1000}, {"", 1000}}

func (p *rowParser) time(name string) int64 {
	for _, u := range units {
		if v, ok := p.value(name, u.suffix); ok {
			var x float64
			p.decode(name+u.suffix, v, &x, "a number")
			return p.micros(name+u.suffix, x*u.us)
		}
	}
	return noTime
}

func (p *rowParser) micros(name string, us float64) int64 {
	if !(math.Abs(us) < 1<<53) && p.err == nil {
		p.err = fmt.Errorf("%s is out of range", name)
		return 0
	}
	return int64(math.Round(us))
}

func (p *rowParser) count(name string) int32 {
	v, ok := p.value(name, "")
	if !ok {
		return noCount
	}
	n := int32(-1)
	p.decode(name, v, &n, "a whole number")
	if n < 0 && p.err == nil {
		p.err = fmt.Errorf("%s must be >= 0", name)
	}
	return n
}

// number is a whole number, noTime where it is missing.
func (p *rowParser) number(name string) int64 {
	v, ok := p.value(name, "")
	if !ok {
		return noTime
	}
	n := int64(noTime)
	p.decode(name, v, &n, "a whole number")
	return n
}

func (p *rowParser) text(name string) (s string, ok bool) {
	v, ok := p.value(name, "")
	if ok {
		p.decode(name, v, &s, "a string")
	}
	return s, ok
}

func (p *rowParser) flag(name string, missing bool) bool {
	v, ok := p.value(name, "")
	if !ok {
		return missing
	}
	var b bool
	p.decode(name, v, &b, "true or false")
	return b
}

func (p *rowParser) gaps() []int32 {
	for _, u := range units {
		v, ok := p.value("itl", u.suffix)
		if !ok {
			continue
		}
		var list []float64
		p.decode("itl"+u.suffix, v, &list, "a list of numbers")
		out := make([]int32, len(list))
		for i, x := range list {
			us := p.micros("itl"+u.suffix, x*u.us)
			if (us < 0 || us > math.MaxInt32) && p.err == nil {
				p.err = fmt.Errorf("itl%s holds a gap out of range", u.suffix)
			}
			out[i] = int32(us)
		}
		return out
	}
	return nil
}

// status reads the word, or an HTTP status as a number or as http_NNN.
func (p *rowParser) status() string {
	v, ok := p.value("status", "")
	if !ok {
		if p.err == nil {
			p.err = errors.New("status is missing")
		}
		return ""
	}
	var code int
	if err := json.Unmarshal(v, &code); err == nil {
		return httpStatus(code)
	}
	s, _ := p.text("status")
	if n, err := fmt.Sscanf(s, "http_%d", &code); n == 1 && err == nil {
		return httpStatus(code)
	}
	if s == "" && p.err == nil {
		p.err = errors.New("status is empty")
	}
	return s
}

func httpStatus(code int) string {
	switch {
	case code >= 200 && code < 300:
		return schemas.ResultOK
	case code == 429:
		return schemas.ResultRateLimited
	}
	return schemas.ResultHTTPError
}
