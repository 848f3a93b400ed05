package parquetio

import (
	"bytes"
	"errors"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding"
)

var errLevels = errors.New("another number of values than its levels say")

// values counts the values that the levels of a page announce.
func (c *column) values(page parquet.Page) int {
	if defs := page.DefinitionLevels(); defs != nil {
		return bytes.Count(defs, []byte{c.full})
	}
	return int(page.NumValues())
}

// Number is a type of which Parquet has columns.
type Number interface{ int32 | int64 | float64 }

// Numbers is the cursor of a flat column of numbers.
type Numbers[T Number] struct {
	col  *column
	list []T
	at   int
}

// Next returns the value of the next row; false = null.
func (n *Numbers[T]) Next() (v T, ok bool) {
	if !n.col.step() {
		return 0, false
	}
	v = n.list[n.at]
	n.at++
	return v, true
}

// Int64s returns the cursor of a flat INT64 column.
func (c *Cells) Int64s(name string) *Numbers[int64] {
	return numbers(c, name, parquet.Int64, (*encoding.Values).Int64)
}

// Int32s returns the cursor of a flat INT32 column.
func (c *Cells) Int32s(name string) *Numbers[int32] {
	return numbers(c, name, parquet.Int32, (*encoding.Values).Int32)
}

// Float64s returns the cursor of a flat DOUBLE column.
func (c *Cells) Float64s(name string) *Numbers[float64] {
	return numbers(c, name, parquet.Double, (*encoding.Values).Double)
}

func numbers[T Number](c *Cells, name string, kind parquet.Kind, of func(*encoding.Values) []T) *Numbers[T] {
	n := &Numbers[T]{}
	n.col = c.add(name, kind, []string{name}, func(page parquet.Page) error {
		data := page.Data()
		if page.Dictionary() != nil {
			return errors.New("numbers in a dictionary")
		}
		if n.list, n.at = of(&data), 0; len(n.list) != n.col.values(page) {
			return errLevels
		}
		return nil
	})
	return n
}

// Bools is the cursor of a flat BOOLEAN column.
type Bools struct {
	col  *column
	bits []byte
	at   int
}

// Next returns the value of the next row; false = null.
func (b *Bools) Next() (v, ok bool) {
	if !b.col.step() {
		return false, false
	}
	v = b.bits[b.at>>3]>>(b.at&7)&1 == 1
	b.at++
	return v, true
}

// Bools returns the cursor of a flat BOOLEAN column.
func (c *Cells) Bools(name string) *Bools {
	b := &Bools{}
	b.col = c.add(name, parquet.Boolean, []string{name}, func(page parquet.Page) error {
		data := page.Data()
		if b.bits, b.at = data.Boolean(), 0; 8*len(b.bits) < b.col.values(page) {
			return errLevels
		}
		return nil
	})
	return b
}

// Texts is the cursor of a flat column of strings.
type Texts struct {
	col *column
	texts
	codes []int32 // of the page, where it has a dictionary
	at    int
}

// texts are strings one behind the other: number i lies between offsets i and i+1.
type texts struct {
	data    []byte
	offsets []uint32
}

func (t *texts) text(i int) []byte { return t.data[t.offsets[i]:t.offsets[i+1]] }

// Next returns the value of the next row, valid until the cursor is asked again; false = null.
func (t *Texts) Next() (text []byte, ok bool) {
	if !t.col.step() {
		return nil, false
	}
	i := t.at
	t.at++
	if t.codes != nil {
		i = int(t.codes[i])
	}
	return t.text(i), true
}

// Texts returns the cursor of a flat column of strings.
func (c *Cells) Texts(name string) *Texts {
	t := &Texts{}
	var last parquet.Dictionary
	t.col = c.add(name, parquet.ByteArray, []string{name}, func(page parquet.Page) (err error) {
		t.at = 0
		if dict := page.Dictionary(); dict == nil || dict != last {
			t.codes, last = nil, dict
			if dict != nil {
				t.texts = textsOf(dict.Page().Data())
			}
		}
		if last == nil {
			t.texts = textsOf(page.Data())
			return holds(t.len(), t.col.values(page))
		}
		t.codes, err = codesOf(page.Data(), t.col.values(page), t.len())
		return err
	})
	return t
}

func (t *texts) len() int { return max(len(t.offsets)-1, 0) }

func textsOf(values encoding.Values) (t texts) {
	t.data, t.offsets = values.ByteArray()
	return t
}

func holds(have, want int) error {
	if have != want {
		return errLevels
	}
	return nil
}

// codesOf returns the places in a dictionary of so many words that the values of a page are: n of them.
func codesOf(data encoding.Values, n, words int) ([]int32, error) {
	codes := data.Int32()
	if len(codes) != n {
		return nil, errLevels
	}
	worst := uint32(0)
	for _, code := range codes {
		worst = max(worst, uint32(code))
	}
	if len(codes) > 0 && uint64(worst) >= uint64(words) {
		return nil, errors.New("a value that its dictionary lacks")
	}
	return codes, nil
}

// Words is the cursor of a flat column of strings of which there are few: it hands out the numbers that intern
// gave to them.
type Words struct {
	col    *column
	intern func([]byte) uint32
	known  []uint32 // numbers of the dictionary's words
	texts
	codes []int32
	at    int
}

// Next returns the number of the value of the next row; false = null.
func (w *Words) Next() (code uint32, ok bool) {
	if !w.col.step() {
		return 0, false
	}
	i := w.at
	w.at++
	if w.codes == nil {
		return w.intern(w.text(i)), true
	}
	return w.known[w.codes[i]], true
}

// Words returns the cursor of a flat column of strings. Intern is asked once for each word of a dictionary; it must
// not keep the word.
func (c *Cells) Words(name string, intern func(word []byte) uint32) *Words {
	w := &Words{intern: intern}
	var last parquet.Dictionary
	w.col = c.add(name, parquet.ByteArray, []string{name}, func(page parquet.Page) (err error) {
		w.at, w.codes = 0, nil
		dict := page.Dictionary()
		if dict == nil {
			w.texts = textsOf(page.Data())
			return holds(w.len(), w.col.values(page))
		}
		if dict != last {
			last, w.known = dict, w.known[:0]
			words := textsOf(dict.Page().Data())
			for i := range words.len() {
				w.known = append(w.known, intern(words.text(i)))
			}
		}
		w.codes, err = codesOf(page.Data(), w.col.values(page), len(w.known))
		return err
	})
	return w
}

// Lists is the cursor of a column of lists of INT64.
type Lists struct {
	col  *column
	reps []byte
	list []int64
	at   int
}

// Next returns the list of the next row, valid until the cursor is asked again; nil = null.
func (l *Lists) Next() []int64 {
	c := l.col
	if c.left == 0 {
		c.turn()
	}
	if c.absent() || c.err != nil {
		c.left--
		return nil
	}
	at, n := c.next, 1
	if more := bytes.IndexByte(l.reps[at+1:], 0); more >= 0 {
		n += more
	} else {
		n = c.left
	}
	c.next += n
	c.left -= n
	switch c.defs[at] {
	case c.full:
		l.at += n
		return l.list[l.at-n : l.at : l.at]
	case c.full - 1:
		return []int64{}
	default:
		return nil
	}
}

// check holds the levels of a page to what the schema has: rows begin in it, and only an empty or null list has no
// value.
func (l *Lists) check(page parquet.Page) error {
	defs := page.DefinitionLevels()
	if len(l.reps) != len(defs) || len(defs) == 0 || l.reps[0] != 0 {
		return errLevels
	}
	values := 0
	for i, def := range defs {
		if def == l.col.full {
			values++
		} else if l.reps[i] != 0 || i+1 < len(defs) && l.reps[i+1] != 0 {
			return errors.New("a list with nulls")
		}
	}
	return holds(len(l.list), values)
}

// Lists returns the cursor of a column of lists of INT64 without nulls in them.
func (c *Cells) Lists(name string) *Lists {
	l := &Lists{}
	l.col = c.add(name, parquet.Int64, []string{name, "list", "element"}, func(page parquet.Page) error {
		data := page.Data()
		l.reps, l.list, l.at = page.RepetitionLevels(), data.Int64(), 0
		return l.check(page)
	})
	return l
}
