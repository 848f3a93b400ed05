package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"

	"tailgate/internal/parquetio"
	"tailgate/schemas"
	"tailgate/trace"
)

// badTrace is a file that a reader of traces must answer plainly. The exit code is that of every command, unless
// only names others.
type badTrace struct {
	name string
	data []byte
	code int
	only map[string]int
	says string // a part of the first line on stderr of every command that refuses it
}

// soundRow is a row at a stamp that breaks no rule.
func soundRow(at any) string {
	return fmt.Sprintf(`{"timestamp":%v,"input_length":600,"output_length":3,"hash_ids":[1,%v]}`, at, fmt.Sprint("1000", at))
}

func soundRows(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(soundRow(100*i) + "\n")
	}
	return b.String()
}

func badTraces(t *testing.T) []badTrace {
	good := soundRows(40)
	line := func(s string) []byte { return []byte(good + s + "\n" + soundRow(99999) + "\n") }
	packed := packTrace(t, good)
	tell := map[string]int{"info": 0, "compare": 0} // they describe what there is, rules or not
	return []badTrace{
		{name: "empty", code: 6, says: "empty"},
		{name: "blank", data: []byte("\n\n \n"), code: 6, says: "empty"},
		{name: "header only", data: []byte("TIMESTAMP,ContextTokens,GeneratedTokens\n"), code: 6, says: "no rows"},
		{name: "one row", data: []byte(soundRow(5) + "\n")},
		{name: "one instant", data: []byte(strings.ReplaceAll(good, `"timestamp":`, `"x":1,"timestamp":7,"y":`))},
		{name: "only failures", data: []byte(strings.ReplaceAll(good, `"output_length":3`, `"status":"server_error"`))},
		{name: "big ids", data: []byte(strings.ReplaceAll(good, `[1,`, `[18446744073709551615,9223372036854775808`))},
		{name: "crlf", data: []byte(strings.ReplaceAll(good, "\n", "\r\n"))},
		{name: "bom", data: []byte("\ufeff" + good)},
		{name: "duplicate keys", data: line(`{"timestamp":1,"input_length":-1,"input_length":600,"timestamp":4000,"hash_ids":[],"hash_ids":[1,5]}`)},
		{name: "negative stamp", data: line(`{"timestamp":-1e3,"input_length":600,"hash_ids":[1,5]}`)},

		{name: "cut", data: []byte(good[:len(good)-20]), code: 6, says: "cut.jsonl:40"},
		{name: "cut gzip", data: packed["gz"][:len(packed["gz"])-9], code: 6, says: "cut or broken"},
		{name: "cut zstd", data: packed["zst"][:len(packed["zst"])-9], code: 6, says: "cut or broken"},
		{name: "cut parquet", data: packed["parquet"][:len(packed["parquet"])-99], code: 6, says: "its end is missing"},
		{name: "parquet head", data: packed["parquet"][:9], code: 6, says: "too short"},
		{name: "torn parquet", data: slices.Concat(packed["parquet"][:50], make([]byte, 400), packed["parquet"][450:]), code: 6, says: "not a readable Parquet file"},
		{name: "mixed block sizes", data: line(`{"timestamp":9000,"input_length":160,"hash_ids":[1,2,3,4,5,6,7,8,9,10]}`), code: 6, only: tell, says: ":41"},
		{name: "an id of two sizes", data: line(`{"timestamp":9000,"input_length":100,"hash_ids":[1]}`), code: 6, only: tell, says: ":41"},
		{name: "nul", data: line("\x00\x00\x00\x00"), code: 6, says: "NUL"},
		{name: "nul only", data: make([]byte, 5000), code: 6},
		{name: "huge stamp", data: line(`{"timestamp":1e300,"input_length":600,"hash_ids":[1,5]}`), code: 6, says: "out of range"},
		{name: "huge exponent", data: line(`{"timestamp":1e999999999,"input_length":600,"hash_ids":[1,5]}`), code: 6, says: "out of range"},
		{name: "huge length", data: line(`{"timestamp":1,"input_length":99999999999,"hash_ids":[1,5]}`), code: 6, says: "out of range"},
		{name: "huge ids", data: line(`{"timestamp":1,"input_length":600,"hash_ids":[1,1e30]}`), code: 6, says: "hash_ids[1]"},
		{name: "negative length", data: line(`{"timestamp":1,"input_length":-600,"hash_ids":[1,5]}`), code: 6, says: "must be >= 0"},
		{name: "no length", data: line(`{"timestamp":1,"input_length":0}`), code: 6, only: tell, says: "must be > 0"},
		{name: "fraction", data: line(`{"timestamp":1,"input_length":600.5,"hash_ids":[1,5]}`), code: 6, says: "integer"},
		{name: "nan", data: line(`{"timestamp":NaN,"input_length":600,"hash_ids":[1,5]}`), code: 6, says: ":41"},
		{name: "infinity", data: line(`{"timestamp":1,"input_length":Infinity,"hash_ids":[1,5]}`), code: 6, says: ":41"},
		{name: "nested", data: line(`{"x":` + strings.Repeat(`[`, 1<<20) + strings.Repeat(`]`, 1<<20) + `,"timestamp":1,"input_length":600}`), code: 6, says: ":41"},
		{name: "not utf-8", data: line("{\"timestamp\":4000,\"input_length\":600,\"tenant\":\"a\xff\",\"hash_ids\":[1,5]}")},
		{name: "parent beyond", data: line(`{"timestamp":4000,"input_length":600,"parent":99}`), code: 6, says: "parent 99"},
		{name: "a picture", data: []byte("\x89PNG\r\n\x1a\n"), code: 6, says: "not recognised"},
		{name: "html", data: []byte("<html>not found</html>\n"), code: 6, says: "not recognised"},
		{name: "csv of text", data: []byte("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.97,NaN,3\n"), code: 6, says: "ContextTokens must be"},
		{name: "csv cut", data: []byte("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.97,5,3\n2023-11-16 18:1"), code: 6, says: ":3"},
	}
}

// packTrace is text in every packing.
func packTrace(t *testing.T, text string) map[string][]byte {
	t.Helper()
	tr, err := trace.Read(t.Context(), strings.NewReader(text), "good", trace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var gz, zst, pq bytes.Buffer
	z, g := must(zstd.NewWriter(&zst)), gzip.NewWriter(&gz)
	for _, w := range []interface {
		Write([]byte) (int, error)
		Close() error
	}{z, g} {
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := tr.Write(&pq, trace.FormatParquet); err != nil {
		t.Fatal(err)
	}
	return map[string][]byte{"gz": gz.Bytes(), "zst": zst.Bytes(), "parquet": pq.Bytes()}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// TestBadTraces gives every bad trace to every command that reads traces: a plain answer of a few lines, the exit
// code of its kind, no half-written output and no figure that is not a number.
func TestBadTraces(t *testing.T) {
	dir := t.TempDir()
	good := filepath.Join(dir, "good.jsonl")
	if err := os.WriteFile(good, []byte(soundRows(40)), 0o600); err != nil {
		t.Fatal(err)
	}
	commands := map[string]func(in, out string) []string{
		"check":   func(in, _ string) []string { return []string{"trace", "check", in} },
		"info":    func(in, _ string) []string { return []string{"trace", "info", "--json", in} },
		"compare": func(in, _ string) []string { return []string{"trace", "compare", "--json", good, in} },
		"convert": func(in, out string) []string { return []string{"trace", "convert", in, "-o", out + "/o.parquet"} },
		"convert aiperf": func(in, out string) []string {
			return []string{"trace", "convert", in, "--to", "aiperf", "-o", out + "/o.gz"}
		},
		"profile": func(in, out string) []string {
			return []string{"profile", in, "-o", out + "/p", "--html", out + "/p.html"}
		},
		"rescale": func(in, out string) []string {
			return []string{"rescale", in, "--scale", "1.5x", "-o", out + "/o.jsonl"}
		},
		"replay --dry-run": func(in, _ string) []string { return []string{"replay", in, "--dry-run", "--json"} },
	}
	for i, bad := range badTraces(t) {
		in := filepath.Join(dir, strings.ReplaceAll(bad.name, " ", "-")+".jsonl")
		if err := os.WriteFile(in, bad.data, 0o600); err != nil {
			t.Fatal(err)
		}
		for name, args := range commands {
			out := filepath.Join(dir, fmt.Sprint(i, "-", name))
			if err := os.Mkdir(out, 0o700); err != nil {
				t.Fatal(err)
			}
			want, ok := bad.only[name]
			if !ok {
				want = bad.code
			}
			t.Run(bad.name+"/"+name, func(t *testing.T) {
				r := runCLI(t, args(in, out)...)
				r.plain(t, want, bad.says, out)
			})
		}
	}
}

// cliRun is what a command did.
type cliRun struct {
	code           int
	stdout, stderr string
}

func runCLI(t *testing.T, args ...string) cliRun {
	t.Helper()
	var out, err bytes.Buffer
	a := &app{stdin: strings.NewReader(""), stdout: &out, stderr: &err, getenv: func(string) (string, bool) { return "", false }}
	code := a.run(t.Context(), args)
	return cliRun{code, out.String(), err.String()}
}

var notANumber = regexp.MustCompile(`(?i)\b(nan|[+-]?inf|infinity)\b`)

// plain holds an answer to what people and scripts rely on.
func (r cliRun) plain(t *testing.T, want int, says, out string) {
	t.Helper()
	if r.code != want {
		t.Errorf("exit code %d, want %d\nstdout: %.300s\nstderr: %.600s", r.code, want, r.stdout, r.stderr)
		return
	}
	if n := strings.Count(r.stderr, "\n"); n > 25 || len(r.stderr) > 6000 {
		t.Errorf("%d lines, %d bytes on stderr: %.600s", n, len(r.stderr), r.stderr)
	}
	if want != 0 {
		if len(r.stdout)+len(r.stderr) == 0 || says != "" && !strings.Contains(r.stderr+r.stdout, says) {
			t.Errorf("does not say %q: %.600s%.600s", says, r.stderr, r.stdout)
		}
		if left := listFiles(t, out); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
		return
	}
	if bad := notANumber.FindString(r.stdout); bad != "" {
		t.Errorf("%s in %.600s", bad, r.stdout)
	}
	if strings.HasPrefix(r.stdout, "{") && !json.Valid([]byte(r.stdout)) {
		t.Errorf("not JSON: %.600s", r.stdout)
	}
	for _, path := range listFiles(t, out) {
		switch {
		case strings.HasSuffix(path, ".parquet"):
			finite(t, path)
		case strings.HasSuffix(path, ".html"):
			page, err := os.ReadFile(path)
			if bad := notANumber.Find(page); err != nil || bad != nil {
				t.Errorf("%s has %s, %v", path, bad, err)
			}
		}
	}
}

func listFiles(t *testing.T, dir string) (files []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// finite holds every figure of a table to be a number.
func finite(t *testing.T, path string) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	pf, err := parquetio.FileAt(f, st.Size(), path)
	if err != nil {
		t.Fatal(err)
	}
	for _, group := range pf.RowGroups() {
		rows := group.Rows()
		buf := make([]parquet.Row, 64)
		for {
			n, err := rows.ReadRows(buf)
			for _, row := range buf[:n] {
				for _, v := range row {
					if v.Kind() == parquet.Double && (math.IsNaN(v.Double()) || math.IsInf(v.Double(), 0)) {
						t.Errorf("%s: column %d holds %v", path, v.Column(), v.Double())
					}
				}
			}
			if err != nil {
				break
			}
		}
		rows.Close()
	}
}

// TestBadLakes gives broken days to trace export and profile.
func TestBadLakes(t *testing.T) {
	const onlyFailures = "only failures without lengths"
	dir := t.TempDir()
	day := filepath.Join(dir, "lake", "day=2026-03-04")
	if err := os.MkdirAll(day, 0o700); err != nil {
		t.Fatal(err)
	}
	footer := schemas.Footer{Schema: schemas.TableRequests}.Map()
	whole := must(parquetio.Encode(footer, []schemas.Request{{Op: schemas.OpChat, ReachedEngine: true, Status: schemas.StatusServerError}}))
	for _, tc := range []struct {
		name string
		data []byte
		code int
		says string
	}{
		{"no requests", must(parquetio.Encode[schemas.Request](footer, nil)), 6, "no request"},
		{onlyFailures, whole, 6, "no request has a known input length"},
		{"cut", whole[:len(whole)-50], 6, "its end is missing"},
		{"empty", nil, 6, "too short"},
		{"not parquet", []byte(soundRows(3)), 6, "not a readable Parquet file"},
		{"another table", must(parquetio.Encode(schemas.Footer{Schema: schemas.TableTrace}.Map(), []schemas.TraceRow{{}})), 6, "trace"},
	} {
		if err := os.WriteFile(filepath.Join(day, "a.parquet"), tc.data, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{
			{"trace", "export", filepath.Join(dir, "lake"), "--day", "2026-03-04", "-o"}, {"profile", filepath.Join(dir, "lake"), "-o"},
		} {
			t.Run(tc.name+"/"+args[0], func(t *testing.T) {
				out := t.TempDir()
				code, says := tc.code, tc.says
				if tc.name == onlyFailures && args[0] == "profile" {
					code, says = 0, "1 failed (100.00 %)" // arrivals are still arrivals
				}
				r := runCLI(t, append(args, filepath.Join(out, "x"))...)
				r.plain(t, code, says, out)
			})
		}
	}
}
