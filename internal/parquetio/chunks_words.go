package parquetio

import (
	"github.com/parquet-go/parquet-go"
)

// Labels are the values of a flat column of strings of which there are few.
type Labels struct {
	Words []string // different words, in order of first sight
	Codes []int32  // by row: the place of its word; −1 = null

	codes map[string]int32
	own   []int32 // of the words of a dictionary
}

// Labels puts the values of a flat column of strings into l, in place of what it had.
func (c *Chunks) Labels(group int, name string, l *Labels) error {
	l.Words, l.Codes, l.own = l.Words[:0], l.Codes[:0], nil
	clear(l.codes)
	return c.each(group, name, false, []parquet.Kind{parquet.ByteArray}, func(p chunkPage, _ parquet.Kind) (err error) {
		codes := l.own[:0:0]
		if p.dict == nil {
			words := textsOf(p.data)
			if err := holds(words.len(), p.values); err != nil {
				return err
			}
			for i := range p.values {
				codes = append(codes, l.code(words.text(i)))
			}
			l.Codes = placed(l.Codes, p, codes, -1, func(v int32) int32 { return v })
			return nil
		}
		if l.own == nil {
			words := textsOf(p.dict.Page().Data())
			for i := range words.len() {
				l.own = append(l.own, l.code(words.text(i)))
			}
		}
		if codes, err = codesOf(p.data, p.values, len(l.own)); err == nil {
			l.Codes = placed(l.Codes, p, codes, -1, func(v int32) int32 { return l.own[v] })
		}
		return err
	})
}

func (l *Labels) code(word []byte) int32 {
	code, ok := l.codes[string(word)]
	if !ok {
		if l.codes == nil {
			l.codes = map[string]int32{}
		}
		code = int32(len(l.Words))
		l.Words = append(l.Words, string(word))
		l.codes[l.Words[code]] = code
	}
	return code
}

// Hashes appends the hashes of the values of a flat column of strings, null where a row has none.
func (c *Chunks) Hashes(group int, name string, hash func(value []byte) uint64, null uint64, to []uint64) ([]uint64, error) {
	var words, plain []uint64
	err := c.each(group, name, false, []parquet.Kind{parquet.ByteArray}, func(p chunkPage, _ parquet.Kind) error {
		if p.dict == nil {
			list := textsOf(p.data)
			if err := holds(list.len(), p.values); err != nil {
				return err
			}
			plain = plain[:0]
			for i := range p.values {
				plain = append(plain, hash(list.text(i)))
			}
			to = placed(to, p, plain, null, func(v uint64) uint64 { return v })
			return nil
		}
		if words == nil {
			list := textsOf(p.dict.Page().Data())
			for i := range list.len() {
				words = append(words, hash(list.text(i)))
			}
		}
		codes, err := codesOf(p.data, p.values, len(words))
		if err == nil {
			to = placed(to, p, codes, null, func(v int32) uint64 { return words[v] })
		}
		return err
	})
	return to, err
}
