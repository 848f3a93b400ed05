package parquetio

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"tailgate/internal/fault"
)

// Bounds of a file. Writers make pages of about a megabyte, DuckDB's of 100 MB at most.
const (
	maxFooter     = 32 << 20  // bytes
	maxMetadata   = 4096      // keys
	maxColumns    = 20_000    // and groups of them, in the schema
	maxSchemaDeep = 64        // levels of the schema
	maxGroupRows  = 64 << 20  // rows of a row group
	maxPage       = 128 << 20 // bytes of a page, decompressed
	maxPageValues = 16 << 20  // values of a page
	maxWhole      = 256 << 10 // bytes of a file that is looked at by one read
	maxGroupPages = 256 << 20 // bytes of the largest page and dictionary of each column of a row group
)

// Check refuses a file of size bytes whose footer and pages lie about their sizes, or would take more memory than any
// writer's do: the libraries believe them. It reads the footer, the head of each page, and what tells how much a page
// becomes when it is decompressed; of a file that is far away the footer alone, but for pages in LZ4. The error is of
// kind fault.Data.
func Check(r io.ReaderAt, size int64) (WordSizes, error) {
	if err := checkFrame(r, size); err != nil {
		return nil, err
	}
	c := checker{r: r, size: size, end: size, words: WordSizes{}}
	far, ok := r.(remote)
	if c.local = !ok || !far.Remote(); c.local && size <= maxWhole {
		c.r = bytes.NewReader(c.some(0, size))
	}
	err := c.file()
	if c.lost != nil { // nothing is known of the file
		return nil, c.lost
	}
	if err != nil {
		return nil, fault.Mark(fmt.Errorf("not a readable Parquet file: %w", err), fault.Data, "")
	}
	return c.words, nil
}

// WordSizes has the longest word, in bytes, that a dictionary of each top-level column holds: a row that is read may have a
// copy of it. All of a dictionary of up to 4 KiB counts as one word.
type WordSizes map[string]int

// Longest of all columns.
func (w WordSizes) Longest() (most int) {
	for _, n := range w {
		most = max(most, n)
	}
	return most
}

// remote is a reader to which each read is a request.
type remote interface{ Remote() bool }

type checker struct {
	r      io.ReaderAt
	local  bool
	lost   error // what kept bytes from coming
	size   int64
	end    int64 // of the pages, where the footer begins
	index  int64 // bytes of the indexes so far
	leaves []leaf
	window []byte
	page   []byte
	words  WordSizes
}

// leaf is a column of the schema.
type leaf struct{ repeated bool }

func (c *checker) file() error {
	meta, err := c.footer()
	if err != nil {
		return err
	}
	if len(meta.KeyValueMetadata) > maxMetadata {
		return fmt.Errorf("its metadata has %d keys", len(meta.KeyValueMetadata))
	}
	if err := c.schema(meta.Schema); err != nil {
		return err
	}
	rows := int64(0)
	for g := range meta.RowGroups {
		group := &meta.RowGroups[g]
		if group.NumRows < 0 || group.NumRows > maxGroupRows {
			return fmt.Errorf("row group %d claims %d rows", g, group.NumRows)
		}
		if len(group.Columns) != len(c.leaves) {
			return fmt.Errorf("row group %d has %d columns, the schema %d", g, len(group.Columns), len(c.leaves))
		}
		rows += group.NumRows
		if err := c.group(group); err != nil {
			return fmt.Errorf("row group %d: %w", g, err)
		}
	}
	if meta.NumRows != rows {
		return fmt.Errorf("the file claims %d rows, its row groups %d", meta.NumRows, rows)
	}
	return nil
}

// read fills b from a place inside the file.
func (c *checker) read(b []byte, at int64) error {
	n, err := c.r.ReadAt(b, at)
	if n == len(b) {
		return nil
	}
	c.lost = cmp.Or(c.lost, err)
	return err
}

func (c *checker) footer() (*format.FileMetaData, error) {
	var tail [4]byte
	if err := c.read(tail[:], c.end-8); err != nil {
		return nil, err
	}
	n := int64(binary.LittleEndian.Uint32(tail[:]))
	c.end -= 8 + n // checkFrame saw that it is there
	if n > maxFooter {
		return nil, fmt.Errorf("its footer claims %d bytes", n)
	}
	b := make([]byte, n)
	if err := c.read(b, c.end); err != nil {
		return nil, err
	}
	used, err := walkStruct(b)
	if err != nil {
		return nil, fmt.Errorf("its footer is %w", err)
	}
	meta := new(format.FileMetaData)
	if err := thrift.Unmarshal(new(thrift.CompactProtocol), b[:used], meta); err != nil {
		return nil, errors.New("its footer cannot be decoded")
	}
	return meta, nil
}

// schema finds the leaves of a tree that is written depth first, each node with the number of its children.
func (c *checker) schema(nodes []format.SchemaElement) error {
	if len(nodes) == 0 || len(nodes) > maxColumns {
		return fmt.Errorf("its schema has %d elements", len(nodes))
	}
	type level struct {
		left     int32
		repeated bool
	}
	open := []level{{left: 1}}
	for i := range nodes {
		for len(open) > 0 && open[len(open)-1].left == 0 {
			open = open[:len(open)-1]
		}
		if len(open) == 0 || len(open) > maxSchemaDeep {
			return errors.New("its schema is no tree")
		}
		top := &open[len(open)-1]
		top.left--
		repeated := top.repeated || nodes[i].RepetitionType.Valid && nodes[i].RepetitionType.V == format.Repeated
		switch children := nodes[i].NumChildren; {
		case !children.Valid || children.V == 0:
			if i > 0 {
				c.leaves = append(c.leaves, leaf{repeated})
			}
		case children.V < 0 || int(children.V) > len(nodes):
			return errors.New("its schema is no tree")
		default:
			open = append(open, level{children.V, repeated})
		}
	}
	for _, l := range open {
		if l.left != 0 {
			return errors.New("its schema is no tree")
		}
	}
	return nil
}

func (c *checker) group(group *format.RowGroup) error {
	held := int64(0)
	for i := range group.Columns {
		chunk := &group.Columns[i]
		m := &chunk.MetaData
		start := m.DataPageOffset
		if d := m.DictionaryPageOffset; d > 0 && d < start {
			start = d
		}
		if chunk.FilePath != "" || !c.inside(start, m.TotalCompressedSize) || !c.inside(m.DataPageOffset, 0) || m.DictionaryPageOffset != 0 && !c.inside(m.DictionaryPageOffset, 0) ||
			m.TotalUncompressedSize < 0 {
			return fmt.Errorf("column %d lies outside of the file", i)
		}
		for _, x := range []struct{ at, n int64 }{
			{chunk.ColumnIndexOffset, int64(chunk.ColumnIndexLength)}, {chunk.OffsetIndexOffset, int64(chunk.OffsetIndexLength)}, {m.BloomFilterOffset, int64(m.BloomFilterLength)},
		} {
			if err := c.indexed(x.at, x.n); err != nil {
				return fmt.Errorf("an index of column %d: %w", i, err)
			}
		}
		if m.NumValues < group.NumRows || m.NumValues > group.NumRows && !c.leaves[i].repeated {
			return fmt.Errorf("column %d claims %d values of %d rows", i, m.NumValues, group.NumRows)
		}
		// A broken block of LZ4 is no mere error to the libraries, so those are looked at wherever they lie.
		if !c.local && m.Codec != format.Lz4Raw {
			continue
		}
		most, err := c.pages(m, start)
		if err != nil {
			return fmt.Errorf("column %d: %w", i, err)
		}
		if held += most; held > maxGroupPages {
			return fmt.Errorf("its pages take more than %d MiB", maxGroupPages>>20)
		}
	}
	return nil
}

// inside tells whether n bytes from start lie before the footer.
func (c *checker) inside(start, n int64) bool {
	return start >= 0 && n >= 0 && n <= c.end && start <= c.end-n
}

// indexed looks at an index of n bytes, of which all together are no more than the file.
func (c *checker) indexed(at, n int64) error {
	c.index += max(n, 0)
	if !c.inside(at, n) || c.index > c.size {
		return errors.New("lies outside of the file")
	}
	if at == 0 || n == 0 || !c.local {
		return nil
	}
	_, err := walkStruct(c.some(at, min(n, maxFooter)))
	return err
}
