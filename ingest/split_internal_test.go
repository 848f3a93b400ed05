package ingest

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func splitAll(t testing.TB, text string, limit int) (records []string, tooBig int) {
	t.Helper()
	s := newSplitter(strings.NewReader(text), limit)
	for {
		rec, err := s.next()
		if errors.Is(err, io.EOF) {
			return records, tooBig
		}
		if err != nil {
			t.Fatal(err)
		}
		if rec.data == nil {
			tooBig++
		} else {
			records = append(records, string(rec.data))
		}
	}
}

func TestSplitLists(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"list over lines":        {"[\n{\"a\":1},\n{\"a\":2}\n]\n", []string{`{"a":1}`, `{"a":2}`}},
		"elements over lines":    {"[{\"a\":\n1}, {\"a\":[\n2]}]", []string{"{\"a\":\n1}", "{\"a\":[\n2]}"}},
		"byte order mark":        {"\ufeff [\n{\"a\":1}]", []string{`{"a":1}`}},
		"list on one line":       {`[{"a":1},{"a":2}]` + "\n", []string{`[{"a":1},{"a":2}]`}},
		"lists, one a line":      {"[1]\n[2]\n", []string{"[1]", "[2]"}},
		"two lists over lines":   {"[\n{\"a\":1}\n]\n[{\"a\":2}]\n", []string{`{"a":1}`, `[{"a":2}]`}},
		"brackets inside text":   {"[\n{\"a\":\"]}\"},\n{\"b\":\"[\"}]", []string{`{"a":"]}"}`, `{"b":"["}`}},
		"empty list over lines":  {"[\n]\n", nil},
		"objects over lines":     {"{\n\"a\":1}\n{\n\"a\":2}", []string{"{\n\"a\":1}", "{\n\"a\":2}"}},
		"lines":                  {"{\"a\":1}\n\n{\"a\":2}", []string{`{"a":1}`, `{"a":2}`}},
		"list cut in an element": {"[\n{\"a\":1},\n{\"a\":", []string{`{"a":1}`, `{"a":`}},
	} {
		t.Run(name, func(t *testing.T) {
			got, _ := splitAll(t, c.text, 1<<20)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A list far larger than the limit of a record, on one line and on many, is as many records as it has elements.
func TestSplitLongList(t *testing.T) {
	element := `{"text":"` + strings.Repeat("gull ", 200) + `"}`
	for _, comma := range []string{",", ",\n"} {
		text := "[" + strings.Repeat(element+comma, 2999) + element + "]"
		if got, tooBig := splitAll(t, text, 4096); len(got) != 3000 || tooBig != 0 || got[2999] != element {
			t.Errorf("%q: %d records, %d too big", comma, len(got), tooBig)
		}
	}
}
