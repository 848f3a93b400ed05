package audit

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"tailgate/internal/objstore"
	"tailgate/internal/parquetio"
)

// maxPage bounds a page in bytes; the stages write pages of about 1 MiB.
const maxPage = 256 << 20

// errPage is a page that cannot be read. What a library says of it might quote it.
var errPage = errors.New("a Parquet page cannot be read")

// parquet looks into a Parquet file: footer, names, statistics, indexes, each page decompressed, and each value
// that its encoding hides from that.
func (a *auditor) parquet(ctx context.Context, r *objstore.Reader) {
	pf, err := parquetio.FileAt(r, r.Size(), "")
	if err != nil {
		a.unreadable("is not a readable Parquet file")
		return
	}
	rules := a.rules(pf)
	a.cover(pf, r)
	a.footer(pf)
	a.names(pf)
	if err := a.indexes(pf, rules); err != nil {
		a.unreadable("has Parquet indexes that cannot be read")
	}
	groups := pf.RowGroups()
	for g, meta := range pf.Metadata().RowGroups {
		chunks := groups[g].ColumnChunks()
		for c := range meta.Columns {
			column := &meta.Columns[c].MetaData
			col := rules.column(column)
			err := a.pages(ctx, r, column, col)
			if err == nil {
				err = a.values(ctx, chunks[c], column, col)
			}
			if ctx.Err() != nil {
				a.unreadable("was not read to its end")
				return
			}
			if err != nil {
				a.unreadable("has Parquet pages that cannot be read")
			}
		}
	}
}

// pages decompresses all pages of a column chunk.
func (a *auditor) pages(ctx context.Context, r io.ReaderAt, meta *format.ColumnMetaData, col *columnRule) (err error) {
	defer recovered(&err)
	start := meta.DataPageOffset
	if d := meta.DictionaryPageOffset; d > 0 {
		start = min(start, d)
	}
	in := bufio.NewReaderSize(contextReader{ctx, io.NewSectionReader(r, start, meta.TotalCompressedSize)}, int(min(chunkBytes, meta.TotalCompressedSize)))
	codec := parquet.LookupCompressionCodec(meta.Codec)
	protocol := thrift.CompactProtocol{}
	decoder := thrift.NewDecoder(protocol.NewReader(in))
	var packed, page []byte
	for {
		if _, err := in.Peek(1); errors.Is(err, io.EOF) {
			return nil
		}
		var h format.PageHeader
		if err := decoder.Decode(&h); err != nil {
			return errPage
		}
		if h.CompressedPageSize < 0 || h.CompressedPageSize > maxPage || h.UncompressedPageSize < 0 || h.UncompressedPageSize > maxPage {
			return errPage
		}
		packed = grow(packed, int(h.CompressedPageSize))
		if _, err := io.ReadFull(in, packed); err != nil {
			return errPage
		}
		levels := 0 // of a v2 page, not compressed
		compressed := meta.Codec != format.Uncompressed
		if v2 := h.DataPageHeaderV2; v2.Valid {
			levels = int(v2.V.RepetitionLevelsByteLength) + int(v2.V.DefinitionLevelsByteLength)
			compressed = compressed && (!v2.V.IsCompressed.Valid || v2.V.IsCompressed.V)
		}
		if levels < 0 || levels > len(packed) {
			return errPage
		}
		body := packed
		if compressed && len(packed) > levels {
			page = grow(page, int(h.UncompressedPageSize)-levels)
			if body, err = codec.Decode(page, packed[levels:]); err != nil {
				return errPage
			}
		}
		a.report.Pages++
		place := PlacePage
		if h.Type == format.DictionaryPage {
			place = PlaceDictionary
			if err := a.dictionary(body, meta, col); err != nil {
				return err
			}
		}
		a.text(place, col.path, body)
	}
}

// dictionary holds the entries of a dictionary page, used or not, to the allow-list.
func (a *auditor) dictionary(body []byte, meta *format.ColumnMetaData, col *columnRule) error {
	if meta.Type != format.ByteArray {
		return nil
	}
	for len(body) > 0 {
		if len(body) < 4 {
			return errPage
		}
		n := int(binary.LittleEndian.Uint32(body))
		if n > len(body)-4 {
			return errPage
		}
		a.value(PlaceDictionary, col, body[4:4+n])
		body = body[4+n:]
	}
	return nil
}

// values decodes the pages of a column whose values do not lie in the page as they are, and holds strings to the
// allow-list.
func (a *auditor) values(ctx context.Context, chunk parquet.ColumnChunk, meta *format.ColumnMetaData, col *columnRule) (err error) {
	defer recovered(&err)
	plain := true
	for _, e := range meta.Encoding {
		plain = plain && (e == format.Plain || e == format.RLE || e == format.RLEDictionary || e == format.BitPacked)
	}
	text := meta.Type == format.ByteArray
	if plain && !text {
		return nil
	}
	pages := chunk.Pages()
	defer pages.Close()
	for {
		page, err := pages.ReadPage()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil || ctx.Err() != nil {
			return errPage
		}
		if page.Dictionary() == nil {
			values := page.Data()
			data, offsets := values.Data()
			if !plain {
				a.text(PlaceValue, col.path, data)
			}
			for i := 1; text && i < len(offsets); i++ {
				a.value(PlaceValue, col, data[offsets[i-1]:offsets[i]])
			}
		}
		parquet.Release(page)
	}
}

// grow returns b with length n.
func grow(b []byte, n int) []byte {
	if cap(b) < n {
		return make([]byte, n)
	}
	return b[:n]
}

// recovered turns a panic of the library on a broken file into an error without its words.
func recovered(err *error) {
	if recover() != nil {
		*err = errPage
	}
}
