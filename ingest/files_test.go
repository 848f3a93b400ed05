package ingest_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/segmentio/kafka-go"

	"tailgate/ingest"
	"tailgate/internal/fault"
)

// jsonl returns the requests from … to−1, one a line.
func jsonl(from, to int) []byte {
	var b bytes.Buffer
	for i := from; i < to; i++ {
		b.Write(litellm(i, nil))
		b.WriteByte('\n')
	}
	return b.Bytes()
}

func write(t testing.TB, path string, data []byte) string {
	t.Helper()
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func gzipped(data []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Write(data)
	w.Close()
	return b.Bytes()
}

func zstded(data []byte) []byte {
	w, _ := zstd.NewWriter(nil)
	return w.EncodeAll(data, nil)
}

func openFiles(t testing.TB, paths ...string) *ingest.Files {
	t.Helper()
	f, err := ingest.OpenFiles(paths, nil)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// log is a source that a test can append to and open again.
type log interface {
	append(values ...[]byte)
	open() ingest.Source
}

type kafkaLog struct{ b *broker }

func (l kafkaLog) append(values ...[]byte) { l.b.produce(0, kafka.Gzip, values...) }
func (l kafkaLog) open() ingest.Source     { return l.b.open() }

type fileLog struct {
	t    testing.TB
	path string
	pack func([]byte) []byte
}

func (l fileLog) append(values ...[]byte) {
	f, err := os.OpenFile(l.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		l.t.Fatal(err)
	}
	defer f.Close()
	f.Write(l.pack(append(bytes.Join(values, []byte("\n")), '\n')))
}
func (l fileLog) open() ingest.Source { return openFiles(l.t, l.path) }

// TestSources holds every source to the same: all records once, in order, over several runs.
func TestSources(t *testing.T) {
	same := func(b []byte) []byte { return b }
	for name, make := range map[string]func(t *testing.T) log{
		"kafka": func(t *testing.T) log { return kafkaLog{newBroker(t, 1)} },
		"plain": func(t *testing.T) log { return fileLog{t, filepath.Join(t.TempDir(), "a.jsonl"), same} },
		"gzip":  func(t *testing.T) log { return fileLog{t, filepath.Join(t.TempDir(), "a.gz"), gzipped} },
		"zstd":  func(t *testing.T) log { return fileLog{t, filepath.Join(t.TempDir(), "a.zst"), zstded} },
		"s3":    func(t *testing.T) log { return bucketLog{newBucket(t), new([]byte)} },
	} {
		t.Run(name, func(t *testing.T) {
			l := make(t)
			o := options(t.TempDir())
			o.RotateRows, o.MaxBad = 7, 1
			n := 0
			for range 3 {
				var values [][]byte
				for range 25 {
					values = append(values, litellm(n, nil))
					n++
				}
				l.append(values...)
				r := run(t, l.open(), o)
				if p := r.Partitions[0]; p.First != int64(n-25) || p.Next != int64(n) || p.Mark != int64(n) || p.Last != int64(n-1) {
					t.Errorf("%+v", p)
				}
			}
			rows := segmentRows(t, o.Lake)
			checkComplete(t, rows, n)
			for i, r := range rows {
				if r.Offset != int64(i) || r.Index != 0 {
					t.Errorf("row %d has offset %d", i, r.Offset)
				}
			}
			l.append([]byte("nonsense"), []byte("["+string(litellm(n, nil))+","+string(litellm(n+1, nil))+"]"))
			if p := run(t, l.open(), o).Partitions[0]; p.DeadMessages != 1 || p.Messages != 1 || p.Rows != 2 {
				t.Errorf("%+v", p)
			}
			checkComplete(t, segmentRows(t, o.Lake), n+2)
			if p := run(t, l.open(), o).Partitions[0]; p.Rows != 0 || p.Segments != 0 {
				t.Errorf("nothing new, but %+v", p)
			}
		})
	}
}

func TestFilesGlobsAndStdin(t *testing.T) {
	dir := t.TempDir()
	for i := range 3 {
		write(t, filepath.Join(dir, fmt.Sprintf("p%d.jsonl", i)), jsonl(10*i, 10*i+10))
	}
	o := options(t.TempDir())
	run(t, openFiles(t, filepath.Join(dir, "p*.jsonl"), filepath.Join(dir, "p1.jsonl")), o)
	stdin := func() ingest.Source {
		f, err := ingest.OpenFiles([]string{"-"}, bytes.NewReader(jsonl(30, 40)))
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	run(t, stdin(), o)
	checkComplete(t, segmentRows(t, o.Lake), 40)
	if r := run(t, stdin(), o); r.Partitions[0].Generation != 1 || r.Total.Rows != 10 {
		t.Errorf("standard input cannot be resumed: %+v", r.Partitions[0])
	}
}

func TestFilesThatAreNotThere(t *testing.T) {
	dir := t.TempDir()
	_, err := ingest.OpenFiles([]string{filepath.Join(dir, "none"), filepath.Join(dir, "*.gz"), dir, "-"}, nil)
	if fault.Of(err) != fault.Failure || strings.Count(err.Error(), "\n") != 3 {
		t.Errorf("%v", err)
	}
	if _, err := ingest.OpenFiles(nil, nil); fault.Of(err) != fault.Usage {
		t.Errorf("%v", err)
	}
}

func TestFileWithUnfinishedLastLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.jsonl")
	whole := jsonl(0, 5)
	write(t, path, whole[:len(whole)-20])
	o := options(t.TempDir())
	if r := run(t, openFiles(t, path), o); r.Total.Rows != 4 || len(r.Notes) != 1 || r.Total.DeadMessages != 0 {
		t.Errorf("%+v", r)
	}
	write(t, path, whole[:len(whole)-1]) // no newline, but whole
	run(t, openFiles(t, path), o)
	checkComplete(t, segmentRows(t, o.Lake), 5)
}

func TestFileThatWasReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.jsonl")
	write(t, path, jsonl(0, 5))
	o := options(t.TempDir())
	run(t, openFiles(t, path), o)
	for _, data := range [][]byte{jsonl(5, 12), jsonl(0, 2), nil} {
		write(t, path, data)
		if _, err := ingest.Run(t.Context(), openFiles(t, path), o); fault.Of(err) != fault.Data {
			t.Errorf("%d bytes: %v", len(data), err)
		}
	}
	write(t, path, jsonl(5, 12))
	o.AcceptReset = true
	run(t, openFiles(t, path), o)
	checkComplete(t, segmentRows(t, o.Lake), 12)
}

func TestTruncatedGzipKeepsWhatWasGood(t *testing.T) {
	data := gzipped(jsonl(0, 1500))
	path := write(t, filepath.Join(t.TempDir(), "a.gz"), data[:len(data)/2])
	o := options(t.TempDir())
	r, err := ingest.Run(t.Context(), openFiles(t, path), o)
	if fault.Of(err) != fault.Data || r == nil || r.Total.Rows < 100 {
		t.Fatalf("%v, %v", r, err)
	}
	write(t, path, data)
	run(t, openFiles(t, path), o)
	checkComplete(t, segmentRows(t, o.Lake), 1500)
}

func TestFileOfValuesThatSpanLines(t *testing.T) {
	pretty := bytes.ReplaceAll(litellm(0, nil), []byte(","), []byte(",\n  "))
	pretty = append(append(pretty, '\n'), bytes.ReplaceAll(litellm(1, nil), []byte(`":`), []byte("\": \n"))...)
	list := []byte("[\n" + string(litellm(2, nil)) + ",\n" + string(litellm(3, nil)) + "\n]\n")
	dir := t.TempDir()
	o := options(t.TempDir())
	run(t, openFiles(t, write(t, filepath.Join(dir, "a.json"), pretty), write(t, filepath.Join(dir, "b.json"), list)), o)
	checkComplete(t, segmentRows(t, o.Lake), 4)
}

func TestOversizeLineIsADeadLetter(t *testing.T) {
	huge := append(bytes.Repeat([]byte("x"), 33<<20), '\n')
	path := write(t, filepath.Join(t.TempDir(), "a.jsonl"), bytes.Join([][]byte{jsonl(0, 1), huge, jsonl(1, 2)}, nil))
	o := options(t.TempDir())
	o.MaxBad = 1
	if r := run(t, openFiles(t, path), o); r.Total.Dead[ingest.DeadTooBig] != 1 {
		t.Errorf("%+v", r.Total)
	}
	checkComplete(t, segmentRows(t, o.Lake), 2)
}

func TestWrongFormatConsumesNothing(t *testing.T) {
	dir := t.TempDir()
	bad := write(t, filepath.Join(dir, "bad.jsonl"), []byte("{\"a\":1}\nnot json\n"))
	good := write(t, filepath.Join(dir, "good.jsonl"), jsonl(0, 3))
	o := options(t.TempDir())
	r, err := ingest.Run(t.Context(), openFiles(t, bad, good), o)
	if err == nil || !strings.Contains(err.Error(), "bad.jsonl") || !strings.Contains(err.Error(), "bad_json 1, wrong_layout 1") {
		t.Errorf("%v", err)
	}
	if len(r.Partitions) != 1 {
		t.Errorf("%+v", r)
	}
	checkComplete(t, segmentRows(t, o.Lake), 3)
}
