package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"tailgate/ingest"
)

// deep is a value with n levels of brackets.
func deep(n int) string {
	return strings.Repeat(`{"a":[`, n/2) + "1" + strings.Repeat(`]}`, n/2)
}

// values are what stands in place of each value of a record in turn.
func hostileValues() []string {
	n := size(5_000, 100_000)
	return []string{
		deep(n), strings.Repeat("[", n), `{"a":` + strings.Repeat(`{"b":`, n/2),
		`1e999999`, `-1e999999`, `1e-999999`, `123456789012345678901234567890123456789012345678901234567890`, `0x7f`, `NaN`, `-0`, `-`,
		`"` + strings.Repeat("9", n) + `"`, strings.Repeat("9", n), `"1e999999999"`, `-9223372036854775808`, `18446744073709551615`,
		"\"\xff\xfe\xed\xa0\x80\"", `"\ud800\udc00\ud800\u0000\u0000"`, "\"\x00\x00\"", `"\u`, "\x00", "\xff", `"`, `\`, `{`, `null`, `true`, `[]`, `{}`, `""`, `[[[]]]`, `{"":{"":{"":null}}}`,
		`{` + strings.Repeat(`"k":1,`, n/5) + `"k":2}`, `[` + strings.Repeat(`{},`, n/2) + `{}]`, `[` + strings.Repeat(`{"role":"user","content":""},`, n/20) + `0]`,
		`"` + strings.Repeat("{\\\"messages\\\":", n/20) + `"`, `"` + strings.Repeat("\\", n/2) + `"`, `"data:image/png;base64,` + strings.Repeat("AAAA", n/2) + `"`,
		`"\u001b]0;x\u0007"`, `"9999-99-99T99:99:99Z"`, `"0000-00-00T00:00:00.` + strings.Repeat("0", n/10) + `Z"`, `"` + strings.Repeat("a", n) + `"`,
	}
}

// spoilt writes the record with each of its values replaced by v in turn, wherever it stands.
func spoilt(w *bytes.Buffer, record []byte, v string) (n int) {
	for _, at := range valuesIn(record) {
		w.Write(record[:at.from])
		w.WriteString(v)
		w.Write(record[at.to:])
		w.WriteByte('\n')
		n++
	}
	return n
}

type span struct{ from, to int }

// valuesIn finds every value of a JSON text, the outer ones too; those after the twentieth of a kind of key are left out.
func valuesIn(text []byte) (spans []span) {
	d := json.NewDecoder(bytes.NewReader(text))
	var walk func()
	seen := map[string]int{}
	walk = func() {
		from := int(d.InputOffset())
		tok, err := d.Token()
		if err != nil {
			return
		}
		if delim, ok := tok.(json.Delim); ok {
			for d.More() {
				if delim == '{' {
					key, err := d.Token()
					if err != nil {
						return
					}
					if seen[fmt.Sprint(key)]++; seen[fmt.Sprint(key)] > 2 {
						var skip json.RawMessage
						if d.Decode(&skip) != nil {
							return
						}
						continue
					}
				}
				walk()
			}
			if _, err := d.Token(); err != nil {
				return
			}
		}
		to := int(d.InputOffset())
		for from < to && strings.IndexByte(": ,\n\t", text[from]) >= 0 {
			from++
		}
		spans = append(spans, span{from, to})
	}
	walk()
	return spans
}

// goodRecord is the first record of a format's sample that gives rows, on one line.
func goodRecord(t *testing.T, s ingest.Sample) []byte {
	t.Helper()
	var v json.RawMessage
	if err := json.NewDecoder(bytes.NewReader(s.Data)).Decode(&v); err != nil {
		t.Fatalf("%s: %v", s.Format, err)
	}
	var line bytes.Buffer
	if err := json.Compact(&line, v); err != nil {
		t.Fatal(err)
	}
	return line.Bytes()
}

// newKeys makes keys that all cases of a test share.
func newKeys(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "keys")
	end := startLimiter(t).run(t, &limited{Dir: ".", Args: []string{"keys", "init", "--keys", dir}, MiB: 256, CPU: 10 * time.Second})
	if end.Exit != 0 {
		t.Fatalf("exit %d\n%s", end.Exit, end.Stderr)
	}
	return dir
}

// ingesting is the command for a log in the file log.
func ingesting(format, keys string, more ...string) []string {
	return append([]string{"ingest", "log", "--format", format, "--out", "lake", "--keys", keys, "--max-bad", "100%", "--json", "-q", "--tokenizer", "chars4"}, more...)
}

// TestHostileGatewayRecords: a good record, each of its values replaced by each hostile one, and the good one again. For
// every format; none of the records costs more than itself, and inspect can look at them.
func TestHostileGatewayRecords(t *testing.T) {
	samples, err := ingest.Samples()
	if err != nil {
		t.Fatal(err)
	}
	keys := newKeys(t)
	var cases []hostile
	values := hostileValues()
	for i, s := range samples {
		if s.Binary {
			continue
		}
		good := goodRecord(t, s)
		var log bytes.Buffer
		log.Write(append(good, '\n'))
		n := 2
		for _, v := range values {
			n += spoilt(&log, good, v)
		}
		log.Write(append(good, '\n'))
		cases = append(cases, hostile{
			name: fmt.Sprintf("%s %d", s.Format, i), files: map[string]any{"log": log.Bytes()}, args: ingesting(s.Format, keys), leaves: []string{"lake"},
			prints: fmt.Sprintf(`"next": %d,`, n), mib: 384, cpu: time.Duration(size(3, 10)) * time.Second,
		}, hostile{
			name: fmt.Sprintf("inspect, %s %d", s.Format, i), files: map[string]any{"log": log.Bytes()}, args: []string{"inspect", "log", "--sample", "1000000"},
			prints: `FIELD`, mib: 384, cpu: time.Duration(size(10, 60)) * time.Second, // every format is tried on every record
		})
		t.Logf("%s: %d records, %d MB", s.Format, n, log.Len()>>20)
	}
	survives(t, cases)
}

// repeated writes text n times between before and after.
func repeated(before, text string, n int, after string) func(io.Writer) error {
	return func(w io.Writer) error {
		b := bufio.NewWriterSize(w, 1<<20)
		b.WriteString(before)
		for range n {
			b.WriteString(text)
		}
		b.WriteString(after)
		return b.Flush()
	}
}

// between puts a good record before what write writes, and one after it.
func between(good string, write func(io.Writer) error) func(io.Writer) error {
	return func(w io.Writer) error {
		if _, err := io.WriteString(w, good+"\n"); err != nil {
			return err
		}
		if err := write(w); err != nil {
			return err
		}
		_, err := io.WriteString(w, "\n"+good+"\n")
		return err
	}
}

// packed compresses what write writes.
func packed(codec string, write func(io.Writer) error) func(io.Writer) error {
	return func(w io.Writer) error {
		var z io.WriteCloser = gzip.NewWriter(w)
		if codec == "zstd" {
			var err error
			if z, err = zstd.NewWriter(w, zstd.WithEncoderLevel(zstd.SpeedFastest)); err != nil {
				return err
			}
		}
		if err := write(z); err != nil {
			return err
		}
		return z.Close()
	}
}

const goodLiteLLM = `{"id":"a","call_type":"acompletion","startTime":1795000000.5,"endTime":1795000001.5,"completionStartTime":1795000000.9,"model":"m","messages":[{"role":"user","content":"hello"}],"prompt_tokens":9,"completion_tokens":3,"total_tokens":12,"status":"success","stream":true}`

// TestHostileGatewayFiles: single records and files that are large or lie about how large they are.
func TestHostileGatewayFiles(t *testing.T) {
	keys := newKeys(t)
	mib := size(40, 1024)
	head, tail := goodLiteLLM[:len(goodLiteLLM)-1], "}"
	body := func(before, text string, n int, after string) func(io.Writer) error {
		return between(goodLiteLLM, repeated(head+`,"x":`+before, text, n, after+tail))
	}
	messages := func(text string, n int, last string) func(io.Writer) error {
		before, after, _ := strings.Cut(goodLiteLLM, `[{"role":"user","content":"hello"}]`)
		return between(goodLiteLLM, repeated(before+"[", text, n, last+"]"+after))
	}
	type file struct {
		name, prints string
		write        func(io.Writer) error
		more         []string
		exit         []int
		says         string
	}
	files := []file{
		{name: "a line of many MiB", prints: `"rows": 2,`, write: body(`"`, strings.Repeat("a", 1<<20), mib, `"`)},
		{name: "a line without end", prints: `"rows": 1,`, write: repeated(goodLiteLLM+"\n"+head+`,"x":"`, strings.Repeat("a", 1<<20), mib, "")},
		{name: "keys repeated a million times", prints: `"rows": [23],`, write: body(`{`, `"k":1,`, 1_000_000, `"k":1}`)},
		{name: "members repeated a million times", prints: `"rows": [23],`, write: between(goodLiteLLM, repeated(head, `,"model":"m"`, 1_000_000, tail))},
		{name: "a million messages", prints: `"rows": [23],`, write: messages(`{"role":"user","content":"hi"},`, 1_000_000, `{}`)},
		{name: "a million parts", prints: `"rows": [23],`, write: messages(`{"role":"user","content":[`+strings.Repeat(`{"type":"text","text":"a"},`, 999)+`{}]},`, 1000, `{}`)},
		{name: "a picture of 24 MiB", prints: `"rows": 3,`, write: messages(`{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,`+strings.Repeat("iVBO", 6<<20)+`"}}]},`, 1, `{}`)},
		{name: "pictures of 100 MiB", prints: `"rows": 2,`, write: messages(`{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,`+strings.Repeat("iVBO", 1<<20)+`"}}]},`, 25, `{}`)},
		{name: "one text of 24 MiB", prints: `"rows": 3,`, write: messages(`{"role":"user","content":"`+strings.Repeat("a b ", 6<<20)+`"},`, 1, `{}`)},
		{name: "nothing but brackets", prints: `"rows": 2,`, write: between(goodLiteLLM, repeated("", "[", 20<<20, ""))},
		{name: "nothing but newlines", prints: `"rows": 2,`, write: between(goodLiteLLM, repeated("", "\n", mib<<20, ""))},
		{name: "nothing but NULs", prints: `"rows": 2,`, write: between(goodLiteLLM, repeated("", strings.Repeat("\x00", 1<<20), mib, ""))},
		{name: "a million records that are none", prints: `"dead_messages": 1000000`, write: between(goodLiteLLM, repeated("", "{\n", 1_000_000, ""))},
		{name: "a list over lines without end", write: repeated("[\n"+goodLiteLLM+",\n"+head+`,"x":[`, "\n1,", mib<<18, "")},
		{name: "a gzip bomb", prints: `"rows": 2,`, write: packed("gzip", body(`"`, strings.Repeat("a", 1<<20), size(200, 8192), `"`))},
		{name: "a zstd bomb", prints: `"rows": 2,`, write: packed("zstd", body(`"`, strings.Repeat("a", 1<<20), size(200, 8192), `"`))},
		{name: "a gzip bomb of newlines", prints: `"rows": 2,`, write: packed("gzip", between(goodLiteLLM, repeated("", strings.Repeat("\n", 1<<20), size(200, 8192), "")))},
		{name: "a zstd window of 2 GiB", exit: []int{6}, says: `cut or broken`, write: repeated("\x28\xb5\x2f\xfd\x00\xa8", "\x00\x00\x00", 1000, "")},
		{name: "a zstd window of 512 MiB", exit: []int{6}, says: `hint: compress it again`, write: repeated("\x28\xb5\x2f\xfd\x00\x98", "\x00\x00\x00", 1000, "")},
		{name: "a zstd frame that claims 1 GB", exit: []int{0, 6}, write: repeated("\x28\xb5\x2f\xfd\xe0\x00\x00\x00\x40\x00\x00\x00\x00", "\x02\x00\x10a", 10, "")},
		{name: "gzip in gzip", exit: []int{1}, says: `hint: is --format right`, write: packed("gzip", packed("gzip", between(goodLiteLLM, repeated("", "a", 10, ""))))},
		{name: "a file of one byte", prints: `"rows": 0,`, write: repeated("", "{", 1, "")},
	}
	var cases []hostile
	for _, f := range files {
		cases = append(cases, hostile{name: f.name, files: map[string]any{"log": f.write}, args: ingesting("litellm", keys, f.more...),
			exit: f.exit, says: f.says, prints: f.prints, leaves: []string{"lake"}, mib: 512, cpu: time.Duration(size(4, 60)) * time.Second})
	}
	survives(t, cases)
}
