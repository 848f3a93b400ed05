package ingest_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"tailgate/ingest"
)

// plant puts a canary into every string and every object key of v that a decoder does not need to read.
func plant(v any, path string, canaries *[]string) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, e := range v {
			out[k] = plant(e, path+"."+k, canaries)
		}
		c := canary(len(*canaries))
		*canaries = append(*canaries, c)
		out[c] = "x"
		return out
	case []any:
		for i := range v {
			v[i] = plant(v[i], path, canaries)
		}
		return v
	case string:
		if steers(path, v) {
			return v
		}
		var inner any
		if strings.ContainsAny(v[:min(len(v), 1)], "[{") && json.Unmarshal([]byte(v), &inner) == nil {
			planted, err := json.Marshal(plant(inner, path, canaries)) // JSON in a string stays JSON
			if err != nil {
				panic(err)
			}
			return string(planted)
		}
		c := canary(len(*canaries))
		*canaries = append(*canaries, c)
		return v + c
	}
	return v
}

// steering are the fields whose values the decoders compare with names of their own.
var steering = []string{
	".status", ".type", ".call_type", ".error_code", ".key", ".role", ".cache_hit", ".traceState", ".response_flags",
	".x-envoy-origin-path", ".route", ".path", ".uri", ".source", ".response_type", ".operation", ".Endpoint", ".schemaType",
	".traceId", ".spanId", ".parentSpanId",
}

// steers tells whether a decoder must find the value as it is: an enumeration, a number, a time.
func steers(path, v string) bool {
	for _, keep := range steering {
		if strings.HasSuffix(path, keep) {
			return true
		}
	}
	return v == "chat" || v == "LLM" || v == "llm_request" || strings.HasPrefix(v, "gen_ai.") || strings.HasPrefix(v, "data:") ||
		v != "" && strings.Trim(v, "0123456789.-:TZ ") == ""
}

// plantBinary puts canaries in the place of texts of a fixture that is no JSON, without changing their length.
func plantBinary(data []byte, canaries *[]string) []byte {
	for _, text := range []string{"You keep the fictional lighthouse log.", "Was the lamp lit at nine?", "It was lit until the storm and then"} {
		c := canary(len(*canaries))
		*canaries = append(*canaries, c)
		data = bytes.ReplaceAll(data, []byte(text), []byte(c+strings.Repeat("x", len(text)-len(c))))
	}
	return data
}

func canary(i int) string { return fmt.Sprintf("Canary%04dWren%08x", i, i*2654435761) }

// variants are the forms in which a leaked text could lie in a file.
func variants(c string) [][]byte {
	out := [][]byte{
		[]byte(c), []byte(strings.ToLower(c)), []byte(strings.ToUpper(c)), []byte(c[:12]), []byte(url.QueryEscape(c)),
		[]byte(hex.EncodeToString([]byte(c))), []byte(strings.Join(strings.Split(c, ""), "\x00")), // UTF-16
	}
	for pad := range 3 {
		enc := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("p", pad) + c))
		out = append(out, []byte(enc[4:len(enc)-4]))
	}
	return out
}

// TestNoTextIsWritten plants canaries in every string and key of the fixtures, in broken records, in the topic
// and in paths, and looks for them in all bytes that were written or said, Parquet pages decompressed.
func TestNoTextIsWritten(t *testing.T) {
	for _, f := range fixtures {
		name, format := f.file, f.format
		t.Run(name, func(t *testing.T) {
			data, err := os.ReadFile(filepath.Join("testdata", name))
			if err != nil {
				t.Fatal(err)
			}
			var canaries []string
			var recs []ingest.Record
			if strings.HasSuffix(name, ".binpb") {
				recs = append(recs, message(0, plantBinary(data, &canaries)))
				data = nil
			}
			for dec := json.NewDecoder(bytes.NewReader(data)); dec.More(); {
				var v any
				if err := dec.Decode(&v); err != nil {
					t.Fatal(err)
				}
				planted, err := json.Marshal(plant(v, "", &canaries))
				if err != nil {
					t.Fatal(err)
				}
				recs = append(recs, message(int64(len(recs)), planted))
			}
			for _, broken := range []string{`{"%s":`, `{"startTime":"%s"}`, `{"startTime":1,"status":"%s"}`, `%s`, `{"resourceSpans":"%s"}`} {
				c := canary(len(canaries))
				canaries = append(canaries, c)
				recs = append(recs, message(int64(len(recs)), fmt.Appendf(nil, broken, c)))
			}
			src := newMemory(recs)
			src.topic = canary(9999)
			src.parts[0].Topic = src.topic
			canaries = append(canaries, src.topic)

			o := options(t.TempDir())
			o.Format, o.MaxBad = format, 1
			var said bytes.Buffer
			o.Logger = slog.New(slog.NewTextHandler(&said, &slog.HandlerOptions{Level: slog.LevelDebug}))
			report := run(t, src, o)
			if report.Total.Rows < 3 || report.Total.DeadMessages != 5 {
				t.Fatalf("the fixtures were not read: %+v", report.Total)
			}
			for _, day := range must(ingest.Days(o.Lake)) {
				p, err := ingest.Publish(t.Context(), ingest.PublishOptions{Lake: o.Lake, Day: day, K: 1, MinRequests: 1, Logger: o.Logger})
				if err != nil {
					t.Fatal(err)
				}
				p.WriteText(&said)
				json.NewEncoder(&said).Encode(p)
			}
			report.WriteText(&said)
			json.NewEncoder(&said).Encode(report)
			in, err := ingest.Inspect(t.Context(), src, ingest.InspectOptions{Format: format, Classes: ingest.DefaultClasses()})
			if err != nil {
				t.Fatal(err)
			}
			in.WriteText(&said)
			json.NewEncoder(&said).Encode(in)
			if d, err := ingest.DetectFormat(t.Context(), src, 0); err != nil {
				fmt.Fprintln(&said, d, err)
			}
			written := everything(t, o.Lake)
			for _, c := range canaries {
				for _, v := range variants(c) {
					if bytes.Contains(written, v) || bytes.Contains(said.Bytes(), v) {
						t.Errorf("canary %s leaked as %q", c, v)
					}
				}
			}
		})
	}
}

// TestTheScanFindsALeak is the control: a label that the operator allows is text, and the scan sees it.
func TestTheScanFindsALeak(t *testing.T) {
	c := canary(1)
	o := options(t.TempDir())
	o.Models = []string{c}
	run(t, newMemory([]ingest.Record{message(0, litellm(0, fields{"model_group": c}))}), o)
	if !bytes.Contains(everything(t, o.Lake), []byte(c)) {
		t.Error("the scan overlooks text in Parquet pages")
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// everything returns the names and bytes of all files under dir, and the values of their Parquet pages.
func everything(t *testing.T, dir string) []byte {
	t.Helper()
	var all bytes.Buffer
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		fmt.Fprintln(&all, strings.TrimPrefix(path, dir))
		all.Write(data)
		if filepath.Ext(path) != ".parquet" {
			return nil
		}
		return pages(&all, data)
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.Bytes()
}

func pages(w io.Writer, data []byte) error {
	f, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return err
	}
	for _, group := range f.RowGroups() {
		rows := group.Rows()
		buf := make([]parquet.Row, 64)
		for {
			n, err := rows.ReadRows(buf)
			for _, row := range buf[:n] {
				for _, v := range row {
					fmt.Fprintln(w, v.String())
				}
			}
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return err
			}
		}
		if err := rows.Close(); err != nil {
			return err
		}
	}
	return nil
}
