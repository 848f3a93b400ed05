// Command columns writes the column dictionary, docs/columns.md, from the row types of schemas/: types from the struct
// tags, meanings from the comments.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"time"

	"tailgate/internal/atomicfile"
	"tailgate/schemas"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: columns REPOSITORY")
		os.Exit(2)
	}
	text, err := dictionary(filepath.Join(os.Args[1], "schemas"))
	if err == nil {
		err = atomicfile.WriteFile(filepath.Join(os.Args[1], "docs", "columns.md"), text)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "columns:", err)
		os.Exit(1)
	}
}

// firstVersion is the release that columns are of which say nothing else in a tag `since:"…"`.
const firstVersion = "0.1.0"

// column is one line of the dictionary.
type column struct {
	name, kind, unit, null, since, meaning string
}

const header = `# Every column of every table

Made by ` + "`go run ./tools/columns .`" + ` from ` + "`schemas/`" + `; a test holds it to them. [query.md](query.md) asks the tables questions;
[lake.md](lake.md), [profile.md](profile.md) and [metrics.md](metrics.md) say how the figures come about.

- **type**: that of Arrow and DuckDB. ` + "`timestamp`" + ` is in microseconds, UTC; a list may be null where it says so, its elements never are.
- **unit**: – where a number counts what the meaning names, or has none. A share lies between 0 and 1.
- **null means**: – where a column is never null. An unknown number is null and never 0.
- **since**: the release that first wrote the column. Files of before read as null or zero there.

Fields of the footer, which DuckDB shows by ` + "`parquet_kv_metadata`" + ` and pyarrow by ` + "`schema.metadata`" + `: ` + "`tailgate.schema`" + ` (the table),
` + "`schema_version`" + `, ` + "`tool_version`" + `, ` + "`definition`" + ` (of the metrics), ` + "`seed`" + `, ` + "`block_size`" + `, ` + "`tokenizer`" + `, ` + "`template`" + `, ` + "`models`" + `, ` + "`epoch`" + `, ` + "`inputs_sha256`" + `.
`

// dictionary is the text of docs/columns.md. A column without a meaning is an error.
func dictionary(dir string) ([]byte, error) {
	docs, err := readComments(dir)
	if err != nil {
		return nil, err
	}
	out := []byte(header)
	for _, t := range schemas.Tables() {
		row := reflect.TypeOf(t.Row)
		out = fmt.Appendf(out, "\n## %s\n\n", t.Name)
		if t.Name == schemas.TableSegment {
			out = fmt.Appendf(out, "The columns of [%s](#%s), before publish: ids whole, labels not yet suppressed.\n", schemas.TableRequests, schemas.TableRequests)
			continue
		}
		about, columns, err := docs.table(row)
		if err != nil {
			return nil, fmt.Errorf("table %s: %w", t.Name, err)
		}
		out = fmt.Appendf(out, "%s\n\n| column | type | unit | null means | since | meaning |\n|---|---|---|---|---|---|\n", about)
		for _, c := range columns {
			out = fmt.Appendf(out, "| `%s` | %s | %s | %s | %s | %s |\n", c.name, c.kind, c.unit, c.null, c.since, c.meaning)
		}
	}
	return out, nil
}

// table is what the comments say of a row type and of each of its columns.
func (d comments) table(row reflect.Type) (about string, columns []column, err error) {
	t, ok := d[row.Name()]
	if !ok {
		return "", nil, fmt.Errorf("type %s has no comments", row.Name())
	}
	about = strings.TrimPrefix(t.about, row.Name()+" is ")
	about = strings.TrimPrefix(about, row.Name()+" ")
	columns, err = d.columns(row)
	return strings.ToUpper(about[:1]) + about[1:], columns, err
}

func (d comments) columns(row reflect.Type) ([]column, error) {
	var out []column
	for i := range row.NumField() {
		f := row.Field(i)
		if f.Anonymous {
			inner, err := d.columns(f.Type)
			if err != nil {
				return nil, err
			}
			out = append(out, inner...)
			continue
		}
		name, options, _ := strings.Cut(f.Tag.Get("parquet"), ",")
		if name == "-" { // in memory only
			continue
		}
		text := d[row.Name()].fields[f.Name]
		if text == "" {
			return nil, fmt.Errorf("column %s has no comment that says what it means", name)
		}
		var null string
		c := column{name: name, kind: kindOf(f.Type), unit: unitOf(name, f.Tag.Get("unit")), null: "–", since: f.Tag.Get("since")}
		if c.meaning, null = split(d.named(row, opening(f.Name).ReplaceAllString(text, ""))); c.meaning == "" {
			return nil, fmt.Errorf("column %s: its comment says only what null means", name)
		}
		if c.since == "" {
			c.since = firstVersion
		}
		if strings.Contains(options, "optional") {
			if c.null = null; null == "" {
				c.null = "not known"
			}
		}
		out = append(out, c)
	}
	return out, nil
}

// opening finds how a comment in Go begins with the field's name.
func opening(field string) *regexp.Regexp {
	return regexp.MustCompile("^" + regexp.QuoteMeta(field) + " (is |are |has |tells |counts )?")
}

// named writes columns by their own names where a comment has those of Go.
func (d comments) named(row reflect.Type, text string) string {
	for i := range row.NumField() {
		f := row.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("parquet"), ",")
		if len(f.Name) > 5 { // shorter ones are words
			text = regexp.MustCompile(`\b`+f.Name+`\b`).ReplaceAllString(text, name)
		}
	}
	return text
}

func kindOf(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return "timestamp"
	case t == reflect.TypeFor[schemas.HistBin]():
		return "struct(upper_us int64, n int64)"
	case t.Kind() == reflect.Pointer:
		return kindOf(t.Elem())
	case t.Kind() == reflect.Slice:
		return "list of " + kindOf(t.Elem())
	case t.Kind() == reflect.Map:
		return "map of string to string"
	case t.Kind() == reflect.Float64:
		return "double"
	}
	return t.Kind().String()
}

// units are told by the ends of names.
var units = []struct{ suffix, unit string }{
	{"_us", "µs"}, {"_s", "s"}, {"_per_s", "1/s"}, {"_rate", "1/s"}, {"_tokens", "tokens"}, {"_bytes", "bytes"}, {"_minutes", "min"}, {"_blocks", "blocks"},
	{"_share", "share"}, {"success_rate", "share"}, {"sample_rate", "share"}, {"_fraction", "share"}, {"attainment", "share"}, {"_nats", "nats"},
	{"output_tokens_per_s", "tokens/s"}, {"total_tokens_per_s", "tokens/s"}, {"_log2", "exponent of 2"},
}

// unitOf is the unit of a column: that of its tag, or of the longest end of its name that has one.
func unitOf(name, tag string) string {
	unit, longest := "–", 0
	for _, u := range units {
		if strings.HasSuffix(name, u.suffix) && len(u.suffix) > longest {
			unit, longest = u.unit, len(u.suffix)
		}
	}
	if tag != "" {
		return tag
	}
	return unit
}
