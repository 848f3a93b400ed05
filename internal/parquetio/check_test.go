package parquetio

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"tailgate/internal/fault"
	"tailgate/internal/rng"
)

func TestThriftIsWalkedWithLimits(t *testing.T) {
	whole, err := thrift.Marshal(new(thrift.CompactProtocol), &format.PageHeader{Type: format.DataPage, UncompressedPageSize: 70_000, CompressedPageSize: 3,
		DataPageHeader: thrift.New(format.DataPageHeader{NumValues: 9})})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		b    []byte
		used int
		err  error
	}{
		"a head":                    {whole, len(whole), nil},
		"a head and more":           {append(bytes.Clone(whole), 1, 2, 3), len(whole), nil},
		"cut":                       {whole[:len(whole)-1], 0, errShort},
		"nothing":                   {nil, 0, errShort},
		"structs in structs":        {bytes.Repeat([]byte{0x1c}, 1<<20), 0, errThrift},
		"lists in lists":            {append([]byte{0x19}, bytes.Repeat([]byte{0x19}, 1<<20)...), 0, errThrift},
		"maps in maps":              {append([]byte{0x1b}, bytes.Repeat([]byte{0x01, 0xbb}, 1<<20)...), 0, errThrift},
		"a list of 2^31":            {[]byte{0x19, 0xf3, 0xff, 0xff, 0xff, 0xff, 0x07}, 0, errThrift},
		"a list of 2^64":            {[]byte{0x19, 0xf3, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}, 0, errThrift},
		"a text of 2^64":            {[]byte{0x18, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}, 0, errShort},
		"empty structs without end": {append([]byte{0x19, 0xfc, 0xff, 0xff, 0x7f}, make([]byte, 2<<20)...), 0, errThrift},
		"a number without end":      {append([]byte{0x16}, bytes.Repeat([]byte{0xff}, 20)...), 0, errThrift},
		"an unknown type":           {[]byte{0x1e}, 0, errThrift},
	} {
		used, err := walkStruct(c.b)
		if !errors.Is(err, c.err) || err == nil && used != c.used {
			t.Errorf("%s: %d bytes, %v", name, used, err)
		}
	}
}

// The bound of frames is no less than what they become, and exact where it may be.
func TestZstdSizes(t *testing.T) {
	r := rng.New(1, "zstd")
	for i := range 60 {
		data := make([]byte, r.IntN(1<<uint(1+r.IntN(20))))
		for k := range data {
			data[k] = byte(r.IntN(1 + i%40))
		}
		var packed bytes.Buffer
		for len(data) >= 0 && packed.Len() == 0 || r.IntN(3) == 0 { // one frame or more
			w, err := zstd.NewWriter(&packed, zstd.WithEncoderCRC(i%2 == 0), zstd.WithSingleSegment(i%3 == 0), zstd.WithZeroFrames(true))
			if err != nil {
				t.Fatal(err)
			}
			if i%4 == 0 {
				packed.Write(w.EncodeAll(data, nil))
			} else if _, err := w.Write(data); err != nil {
				t.Fatal(err)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
		}
		z, err := zstd.NewReader(nil)
		if err != nil {
			t.Fatal(err)
		}
		whole, err := z.DecodeAll(packed.Bytes(), nil)
		z.Close()
		if err != nil {
			t.Fatal(err)
		}
		c := checker{r: bytes.NewReader(packed.Bytes())}
		size, err := c.zstdSize(0, int64(packed.Len()))
		if err != nil || size < int64(len(whole)) {
			t.Errorf("%d: %d bytes in %d: %d, %v", i, len(whole), packed.Len(), size, err)
		}
		if packed.Len() > 0 {
			if _, err := c.zstdSize(0, int64(packed.Len())-1); err == nil && i%2 == 1 {
				t.Errorf("%d: a cut frame is one", i)
			}
		}
	}
}

// Whatever codec and version of pages: what a writer makes is taken, and its longest word is told.
func TestFilesOfWritersAreTaken(t *testing.T) {
	type row struct {
		N    int64    `parquet:"n"`
		Word string   `parquet:"word,dict"`
		L    []int64  `parquet:"l,list"`
		M    *float64 `parquet:"m"`
	}
	rows := make([]row, 3000)
	for i := range rows {
		rows[i] = row{N: int64(i), Word: strings.Repeat("w", 1+i%200), L: []int64{1, 2, 3}[:i%4]}
	}
	for _, codec := range []compress.Codec{&parquet.Uncompressed, &parquet.Zstd, &parquet.Snappy, &parquet.Gzip, &parquet.Lz4Raw, &parquet.Brotli} {
		for version := 1; version <= 2; version++ {
			var b bytes.Buffer
			w := parquet.NewGenericWriter[row](&b, parquet.Compression(codec), parquet.DataPageVersion(version), parquet.MaxRowsPerRowGroup(1000), parquet.PageBufferSize(4096))
			if _, err := w.Write(rows); err != nil {
				t.Fatal(err)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			words, err := Check(bytes.NewReader(b.Bytes()), int64(b.Len()))
			if err != nil || words["word"] != 200 || words.Longest() != 200 {
				t.Errorf("%v, version %d: %v, %v", codec, version, words, err)
			}
			for cut := 1; cut < b.Len(); cut += b.Len() / 50 {
				if _, err := Check(bytes.NewReader(b.Bytes()[:cut]), int64(cut)); fault.Of(err) != fault.Data {
					t.Errorf("cut at %d: %v", cut, err)
				}
			}
		}
	}
}

// A page that becomes more than it claims is refused before it is decompressed, and a broken one, in every codec; one
// that becomes what it claims is taken.
func TestBombsAreRefused(t *testing.T) {
	const size = 100 << 20
	for _, codec := range []compress.Codec{&parquet.Zstd, &parquet.Snappy, &parquet.Gzip, &parquet.Lz4Raw, &parquet.Brotli} {
		packed, err := codec.Encode(nil, make([]byte, size))
		if err != nil {
			t.Fatal(err)
		}
		c := checker{r: bytes.NewReader(packed)}
		for claimed, want := range map[int64]bool{size: true, size - 1: codec == &parquet.Zstd, 1000: false, 0: false} {
			if err := c.unpacked(codec.CompressionCodec(), 0, int64(len(packed)), claimed); (err == nil) != want {
				t.Errorf("%v of %d bytes claims %d: %v", codec, size, claimed, err)
			}
		}
		if codec == &parquet.Snappy { // it tells its size at its begin
			continue
		}
		if err := c.unpacked(codec.CompressionCodec(), 0, int64(len(packed)/2), size); err == nil {
			t.Errorf("%v: half a page is taken", codec)
		}
	}
}

// far is a file to which each read is a request.
type far struct{ *bytes.Reader }

func (far) Remote() bool { return true }

// One broken byte in LZ4, wherever the file lies, is an error here: the library would look for memory without end.
func TestBrokenLZ4IsRefused(t *testing.T) {
	type row struct {
		Word string `parquet:"word"`
	}
	var b bytes.Buffer
	w := parquet.NewGenericWriter[row](&b, parquet.Compression(&parquet.Lz4Raw))
	for i := range 40 {
		if _, err := w.Write([]row{{strings.Repeat("tide", i)}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	refused := 0
	for i := range b.Len() {
		for _, mask := range []byte{0xff, 0x80, 0x0f} {
			data := bytes.Clone(b.Bytes())
			data[i] ^= mask
			if _, err := Check(far{bytes.NewReader(data)}, int64(len(data))); err != nil {
				refused++
				continue
			}
			if _, err := ReadAllAt[row](far{bytes.NewReader(data)}, int64(len(data)), "x.parquet"); err != nil && fault.Of(err) != fault.Data {
				t.Errorf("byte %d: %v", i, err)
			}
		}
	}
	if refused < b.Len()/10 {
		t.Errorf("%d of %d", refused, 3*b.Len())
	}
}

// A row group that claims no rows may hold pages all the same, and who looks at all bytes decompresses them.
func TestPagesWithoutRowsAreLookedAt(t *testing.T) {
	packed, err := parquet.Zstd.Encode(nil, make([]byte, 100<<20))
	if err != nil {
		t.Fatal(err)
	}
	head, err := thrift.Marshal(new(thrift.CompactProtocol), &format.PageHeader{Type: format.DataPage, UncompressedPageSize: 10, CompressedPageSize: int32(len(packed)),
		DataPageHeader: thrift.New(format.DataPageHeader{})})
	if err != nil {
		t.Fatal(err)
	}
	pages := append(append([]byte(Magic), head...), packed...)
	c := checker{r: bytes.NewReader(pages), size: int64(len(pages)), end: int64(len(pages)), words: WordSizes{}, local: true, leaves: []leaf{{}}}
	group := &format.RowGroup{Columns: []format.ColumnChunk{{MetaData: format.ColumnMetaData{Codec: format.Zstd, DataPageOffset: 4, TotalCompressedSize: int64(len(pages) - 4)}}}}
	if err := c.group(group); err == nil {
		t.Error("a bomb is taken")
	}
}
