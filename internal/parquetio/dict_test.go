package parquetio_test

import (
	"strconv"
	"strings"
	"testing"

	"tailgate/internal/parquetio"
)

func TestDictGivesCodesInOrderOfFirstSight(t *testing.T) {
	var d parquetio.Dict
	word := func(i int) []byte {
		if i == 7 {
			return []byte{}
		}
		return []byte(strings.Repeat(strconv.Itoa(i)+" ", 1+i%50))
	}
	const n = 20_000
	for range 2 {
		for i := range n {
			w := word(i)
			if code := d.Code(w); int(code) != i {
				t.Fatalf("word %d has code %d", i, code)
			}
			clear(w) // the words are the dictionary's own
		}
	}
	if len(d.Words) != n {
		t.Fatalf("%d words", len(d.Words))
	}
	for i, w := range d.Words {
		if w != string(word(i)) {
			t.Fatalf("word %d is %q", i, w)
		}
	}
}
