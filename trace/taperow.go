package trace

import (
	"encoding/binary"
	"slices"

	"tailgate/internal/packedrow"
	"tailgate/schemas"
)

// What a row on a tape has, in one bit each.
const (
	onOutput = 1 << iota
	onIDs
	onWide // ids take 8 bytes each
	onClass
	onTenant
	onSession
	onTurn
	onTold
	onParent
	onModel
	onStatus
	onStream
	onStreamed
	onSource
	onCopy
	onBig
	onDamaged
)

// wideID is from where on differences of ids are longer than the ids.
const wideID = 1 << 48

// rowEncoder writes rows for a tape. Labels get a code at first sight, in the frame where they stand.
type rowEncoder struct {
	codes map[*string]uint64 // by the pointer: equal ones are told by the reader of the file
	at    int64              // stamp of the row before
	line  int64
}

// encode appends the rows of b.
func (e *rowEncoder) encode(out []byte, b *raw) []byte {
	e.start()
	big := b.big
	for i := range b.rows {
		row := &b.rows[i]
		n := 0
		for n < len(big) && big[n].row == i {
			n++
		}
		line := int64(0)
		if i < len(b.lines) {
			line = b.lines[i]
		}
		out = e.row(out, row, line, i < len(b.told) && b.told[i], big[:n])
		big = big[n:]
	}
	return out
}

// start begins a frame.
func (e *rowEncoder) start() {
	if e.codes == nil {
		e.codes = map[*string]uint64{}
	}
	clear(e.codes)
	e.at, e.line = 0, 0
}

// row appends one row. A SourceRow below 0 is the row's place in the file.
func (e *rowEncoder) row(out []byte, row *schemas.TraceRow, line int64, told bool, big []bigRef) []byte {
	out = binary.AppendUvarint(out, flagsOf(row, told, len(big) > 0))
	out = binary.AppendVarint(out, row.ScheduledUs-e.at)
	out = binary.AppendVarint(out, line-e.line)
	e.at, e.line = row.ScheduledUs, line
	out = binary.AppendVarint(out, int64(row.InputTokens))
	if row.OutputTokens != nil {
		out = binary.AppendVarint(out, int64(*row.OutputTokens))
	}
	for _, s := range [...]*string{row.Class, row.Tenant, row.Session, row.Model, row.Status} {
		if s != nil {
			out = e.label(out, s)
		}
	}
	if row.Turn != 0 {
		out = binary.AppendVarint(out, int64(row.Turn))
	}
	if row.Parent != nil {
		out = binary.AppendVarint(out, *row.Parent)
	}
	if row.SourceRow >= 0 {
		out = binary.AppendVarint(out, row.SourceRow)
	}
	if row.Copy != 0 {
		out = binary.AppendVarint(out, int64(row.Copy))
	}
	if row.HashIDs != nil {
		out = appendTapeIDs(out, row.HashIDs)
	}
	if len(big) > 0 {
		out = binary.AppendUvarint(out, uint64(len(big)))
		for _, b := range big {
			out = binary.AppendUvarint(out, uint64(b.at))
			out = packedrow.AppendText(out, b.text)
		}
	}
	return out
}

func flagsOf(row *schemas.TraceRow, told, big bool) (flags uint64) {
	for _, f := range [...]struct {
		on   bool
		flag uint64
	}{
		{row.OutputTokens != nil, onOutput}, {row.HashIDs != nil, onIDs}, {wide(row.HashIDs), onWide}, {row.Class != nil, onClass},
		{row.Tenant != nil, onTenant}, {row.Session != nil, onSession}, {row.Turn != 0, onTurn}, {told, onTold},
		{row.Parent != nil, onParent}, {row.Model != nil, onModel}, {row.Status != nil, onStatus}, {row.Stream != nil, onStream},
		{row.Stream != nil && *row.Stream, onStreamed}, {row.SourceRow >= 0, onSource}, {row.Copy != 0, onCopy}, {big, onBig},
		{row.Damaged, onDamaged},
	} {
		if f.on {
			flags |= f.flag
		}
	}
	return flags
}

func wide(ids []int64) bool { return len(ids) > 0 && uint64(ids[0]) >= wideID }

func appendTapeIDs(out []byte, ids []int64) []byte {
	out = binary.AppendUvarint(out, uint64(len(ids)))
	if wide(ids) {
		for _, id := range ids {
			out = binary.LittleEndian.AppendUint64(out, uint64(id))
		}
		return out
	}
	before := int64(0)
	for _, id := range ids {
		out = binary.AppendVarint(out, id-before)
		before = id
	}
	return out
}

func (e *rowEncoder) label(out []byte, s *string) []byte {
	code, ok := e.codes[s]
	if !ok {
		code = uint64(len(e.codes))
		e.codes[s] = code
		return packedrow.AppendText(binary.AppendUvarint(out, code), *s)
	}
	return binary.AppendUvarint(out, code)
}

// rowDecoder reads rows of a tape into its own row, which the next one overwrites; only strings stay as they are.
type rowDecoder struct {
	row  schemas.TraceRow
	line int64
	told bool
	big  []bigID

	in      packedrow.Reader
	labels  []*string
	refs    []bigRef
	strings *intern
	output  int32
	parent  int64
	turn    int32
	ids     []int64
	stream  bool
}

func newRowDecoder() *rowDecoder { return &rowDecoder{strings: newIntern(), ids: make([]int64, 0, 64)} }

// start begins a frame.
func (d *rowDecoder) start(f frame, blob []byte) {
	d.in.B, d.labels, d.line, d.row.ScheduledUs = blob, d.labels[:0], f.line0, 0
	d.strings.trim()
}

// next reads a row. SourceRow is −1 where the file did not tell it.
func (d *rowDecoder) next() error {
	flags := d.in.Uvarint()
	has := func(f uint64) bool { return flags&f != 0 }
	d.row = schemas.TraceRow{ScheduledUs: d.row.ScheduledUs + d.in.Varint(), SourceRow: -1, Damaged: has(onDamaged)}
	d.line += d.in.Varint()
	d.row.InputTokens = int32(d.in.Varint())
	if has(onOutput) {
		d.output = int32(d.in.Varint())
		d.row.OutputTokens = &d.output
	}
	for _, l := range [...]struct {
		flag uint64
		to   **string
	}{{onClass, &d.row.Class}, {onTenant, &d.row.Tenant}, {onSession, &d.row.Session}, {onModel, &d.row.Model}, {onStatus, &d.row.Status}} {
		if has(l.flag) {
			*l.to = d.label()
		}
	}
	if has(onTurn) {
		d.row.Turn = int32(d.in.Varint())
	}
	if has(onParent) {
		d.parent = d.in.Varint()
		d.row.Parent = &d.parent
	}
	if has(onSource) {
		d.row.SourceRow = d.in.Varint()
	}
	if has(onCopy) {
		d.row.Copy = int32(d.in.Varint())
	}
	if has(onStream) {
		d.stream = has(onStreamed)
		d.row.Stream = &d.stream
	}
	d.told = has(onTold)
	if has(onIDs) {
		d.hashIDs(has(onWide))
	}
	if d.big = d.big[:0]; has(onBig) {
		for n := d.in.Uvarint(); n > 0 && !d.in.Broken; n-- {
			at := int(d.in.Uvarint())
			d.big = append(d.big, bigID{at: at, text: string(d.in.Text())})
		}
	}
	if d.in.Broken {
		return errTape
	}
	return nil
}

// bigRefs are the row's ids outside int64 as an encoder takes them.
func (d *rowDecoder) bigRefs() []bigRef {
	refs := d.refs[:0]
	for _, b := range d.big {
		refs = append(refs, bigRef{bigID: b})
	}
	d.refs = refs
	return refs
}

func (d *rowDecoder) hashIDs(wide bool) {
	n := int(d.in.Uvarint())
	if n < 0 || n > len(d.in.B) || wide && 8*n > len(d.in.B) {
		d.in.Broken = true
		return
	}
	d.ids = slices.Grow(d.ids[:0], n)[:n]
	d.row.HashIDs = d.ids
	if wide {
		for i := range d.ids {
			d.ids[i] = int64(d.in.Fixed64())
		}
		return
	}
	before := int64(0)
	for i := range d.ids {
		before += d.in.Varint()
		d.ids[i] = before
	}
}

func (d *rowDecoder) label() *string {
	code := d.in.Uvarint()
	if code < uint64(len(d.labels)) {
		return d.labels[code]
	}
	s := d.strings.get(d.in.Text())
	d.labels = append(d.labels, s)
	return s
}
