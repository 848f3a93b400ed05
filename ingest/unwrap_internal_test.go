package ingest

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"runtime"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

func packGzip(data []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Write(data)
	w.Close()
	return b.Bytes()
}

func packZstd(data []byte) []byte {
	w, _ := zstd.NewWriter(nil)
	return w.EncodeAll(data, nil)
}

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

func packZlib(b []byte) []byte {
	var out bytes.Buffer
	z := zlib.NewWriter(&out)
	_, _ = z.Write(b)
	_ = z.Close()
	return out.Bytes()
}

func TestUnwrap(t *testing.T) {
	text := []byte(`{"tide":"high"}`)
	confluent := []byte{0, 0, 0, 1, 7}
	glue := append([]byte{3, 0}, bytes.Repeat([]byte{9}, 16)...)
	for name, c := range map[string]struct {
		codec string
		value []byte
		want  string
		dead  string
	}{
		"plain":                  {CodecAuto, text, string(text), ""},
		"gzip":                   {CodecAuto, packGzip(text), string(text), ""},
		"zstd":                   {CodecAuto, packZstd(text), string(text), ""},
		"gzip as told":           {CodecGzip, packGzip(text), string(text), ""},
		"zstd as told":           {CodecZstd, packZstd(text), string(text), ""},
		"gzip with codec none":   {CodecNone, packGzip(text), string(packGzip(text)), ""},
		"plain with codec gzip":  {CodecGzip, text, "", DeadCompressed},
		"plain with codec zstd":  {CodecZstd, text, "", DeadCompressed},
		"cut gzip":               {CodecAuto, packGzip(text)[:20], "", DeadCompressed},
		"cut zstd":               {CodecAuto, packZstd(text)[:9], "", DeadCompressed},
		"two gzip members":       {CodecAuto, join(packGzip(text[:5]), packGzip(text[5:])), string(text), ""},
		"gzip bomb":              {CodecAuto, packGzip(make([]byte, 2000)), "", DeadBomb},
		"zstd bomb":              {CodecAuto, packZstd(make([]byte, 2000)), "", DeadBomb},
		"just the limit":         {CodecAuto, packZstd(bytes.Repeat([]byte("x"), 1000)), strings.Repeat("x", 1000), ""},
		"one over the limit":     {CodecAuto, packZstd(bytes.Repeat([]byte("x"), 1001)), "", DeadBomb},
		"confluent JSON":         {CodecAuto, join(confluent, text), string(text), ""},
		"confluent JSON list":    {CodecAuto, join(confluent, []byte("[1]")), "[1]", ""},
		"confluent and blanks":   {CodecAuto, join(confluent, []byte(" \n"), text), string(text), ""},
		"confluent Avro":         {CodecAuto, join(confluent, []byte{2, 4}), string(join(confluent, []byte{2, 4})), ""},
		"confluent, nothing":     {CodecAuto, confluent, string(confluent), ""},
		"confluent in gzip":      {CodecAuto, packGzip(join(confluent, text)), string(text), ""},
		"glue JSON":              {CodecAuto, join(glue, text), string(text), ""},
		"glue, nothing":          {CodecAuto, glue, string(glue), ""},
		"glue, compressed":       {CodecAuto, join([]byte{3, 5}, glue[2:], packZlib(text)), string(text), ""},
		"glue, not compressed":   {CodecAuto, join([]byte{3, 5}, glue[2:], text), "", DeadCompressed},
		"glue, compressed Avro":  {CodecAuto, join([]byte{3, 5}, glue[2:], packZlib([]byte("\x02lamp"))), "", DeadFramed},
		"glue, codec none":       {CodecNone, join([]byte{3, 5}, glue[2:], text), string(join([]byte{3, 5}, glue[2:], text)), ""},
		"glue bomb":              {CodecAuto, join([]byte{3, 5}, glue[2:], packZlib(make([]byte, 2000))), "", DeadBomb},
		"empty":                  {CodecAuto, nil, "", ""},
		"a single byte of frame": {CodecAuto, []byte{0}, "\x00", ""},
	} {
		t.Run(name, func(t *testing.T) {
			u := unwrapper{codec: c.codec, limit: 1000}
			defer u.close()
			for range 2 { // readers are used again
				got, dead := u.open(bytes.Clone(c.value))
				if string(got) != c.want || dead != c.dead {
					t.Errorf("got %q, %q; want %q, %q", got, dead, c.want, c.dead)
				}
			}
		})
	}
}

// The text of one record is not left in the buffer for the next.
func TestUnwrapForgets(t *testing.T) {
	u := unwrapper{codec: CodecAuto, limit: 1000}
	defer u.close()
	got, _ := u.open(packGzip([]byte("the tide is high")))
	whole := got[:cap(got)]
	u.forget()
	if bytes.Contains(whole, []byte("tide")) {
		t.Error("text was left behind")
	}
}

// A bomb of 128 MB costs no more memory than the limit, with some room for buffers.
func TestBombIsBounded(t *testing.T) {
	const inflated = 128 << 20
	bomb := packZstd(make([]byte, inflated))
	u := unwrapper{codec: CodecAuto, limit: 4 << 20}
	defer u.close()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, dead := u.open(bomb)
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; dead != DeadBomb || grown > inflated/4 {
		t.Errorf("%q after %d MB", dead, grown>>20)
	}
	t.Logf("%d bytes of bomb, %.1f MB allocated", len(bomb), float64(after.TotalAlloc-before.TotalAlloc)/1e6)
}

func FuzzUnwrap(f *testing.F) {
	f.Add([]byte(`{"a":1}`))
	f.Add(packGzip([]byte(`{"a":1}`)))
	f.Add(packZstd([]byte(`{"a":1}`)))
	f.Add([]byte{0, 0, 0, 0, 1, '{', '}'})
	f.Fuzz(func(t *testing.T, value []byte) {
		u := unwrapper{codec: CodecAuto, limit: 1 << 16}
		defer u.close()
		if text, dead := u.open(bytes.Clone(value)); dead != "" && text != nil || len(text) > max(1<<16, len(value)) {
			t.Errorf("%d bytes and reason %q", len(text), dead)
		}
		u.forget()
	})
}
