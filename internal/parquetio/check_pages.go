package parquetio

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
	"github.com/pierrec/lz4/v4"
)

// A page's head is read with what a window holds, and with more where its statistics are long.
const (
	headWindow    = 1 << 10
	maxHeadWindow = 1 << 20
)

// pages looks at the pages of a column chunk that begins at start, and returns how many bytes its dictionary and its
// largest page take.
func (c *checker) pages(m *format.ColumnMetaData, start int64) (most int64, err error) {
	end := start + m.TotalCompressedSize
	var dictionary, largest, values int64
	for at := start; at < end; {
		h, n, err := c.head(at, end)
		if err != nil {
			return 0, err
		}
		at += n
		if h.CompressedPageSize < 0 || h.CompressedPageSize > maxPage+slack || int64(h.CompressedPageSize) > end-at || h.UncompressedPageSize < 0 || h.UncompressedPageSize > maxPage {
			return 0, fmt.Errorf("a page claims %d bytes, %d decompressed", h.CompressedPageSize, h.UncompressedPageSize)
		}
		count, levels, packed := int32(0), int32(0), m.Codec != format.Uncompressed
		switch {
		case h.DictionaryPageHeader.Valid:
			count = h.DictionaryPageHeader.V.NumValues
			if count > h.UncompressedPageSize { // a word takes four bytes, a number as many or more
				return 0, fmt.Errorf("a dictionary claims %d values in %d bytes", count, h.UncompressedPageSize)
			}
			dictionary = max(dictionary, int64(h.UncompressedPageSize))
		case h.DataPageHeader.Valid:
			count = h.DataPageHeader.V.NumValues
		case h.DataPageHeaderV2.Valid:
			v := &h.DataPageHeaderV2.V
			count = v.NumValues
			if v.DefinitionLevelsByteLength < 0 || v.RepetitionLevelsByteLength < 0 {
				return 0, errors.New("levels of a page claim less than no bytes")
			}
			levels = v.DefinitionLevelsByteLength + v.RepetitionLevelsByteLength
			packed = packed && (!v.IsCompressed.Valid || v.IsCompressed.V)
			if levels < 0 || levels > h.CompressedPageSize || levels > h.UncompressedPageSize {
				return 0, errors.New("levels of a page claim more bytes than the page")
			}
		}
		if count < 0 || count > maxPageValues {
			return 0, fmt.Errorf("a page claims %d values", count)
		}
		if !h.DictionaryPageHeader.Valid {
			values += int64(count)
			largest = max(largest, int64(h.UncompressedPageSize))
		}
		if packed {
			err := c.unpacked(m.Codec, at+int64(levels), int64(h.CompressedPageSize-levels), int64(h.UncompressedPageSize-levels))
			if err != nil {
				return 0, err
			}
		}
		if h.DictionaryPageHeader.Valid && m.Type == format.ByteArray {
			if err := c.dictionary(m, at, &h); err != nil {
				return 0, err
			}
		}
		at += int64(h.CompressedPageSize)
	}
	if values != m.NumValues {
		return 0, fmt.Errorf("its pages have %d values, it claims %d", values, m.NumValues)
	}
	return dictionary + largest, nil
}

// shortDictionary are bytes of a dictionary in which no word is worth a look: one word of them all counts.
const shortDictionary = 4 << 10

// dictionary looks for the longest word of a dictionary.
func (c *checker) dictionary(m *format.ColumnMetaData, at int64, h *format.PageHeader) (err error) {
	name := ""
	if len(m.PathInSchema) > 0 {
		name = m.PathInSchema[0]
	}
	if h.UncompressedPageSize <= shortDictionary {
		c.words[name] = max(c.words[name], int(h.UncompressedPageSize))
		return nil
	}
	body := c.some(at, int64(h.CompressedPageSize))
	if m.Codec != format.Uncompressed {
		c.grow(int64(h.UncompressedPageSize))
		if body, err = parquet.LookupCompressionCodec(m.Codec).Decode(c.page[:0], body); err != nil {
			return errors.New("a dictionary cannot be decompressed")
		}
	}
	for len(body) >= 4 {
		n := int64(binary.LittleEndian.Uint32(body))
		if n > int64(len(body)-4) {
			return errors.New("a word is longer than its dictionary")
		}
		c.words[name] = max(c.words[name], int(n))
		body = body[4+n:]
	}
	return nil
}

// head reads a page's head, and tells its length.
func (c *checker) head(at, end int64) (h format.PageHeader, n int64, err error) {
	for window := int64(headWindow); ; window *= 8 {
		if int64(cap(c.window)) < window {
			c.window = make([]byte, window)
		}
		b := c.window[:min(window, end-at)]
		if err := c.read(b, at); err != nil {
			return h, 0, err
		}
		used, err := walkStruct(b)
		if errors.Is(err, errShort) && window < maxHeadWindow && window < end-at {
			continue
		}
		if err != nil {
			return h, 0, fmt.Errorf("the head of a page is %w", err)
		}
		if err := thrift.Unmarshal(new(thrift.CompactProtocol), b[:used], &h); err != nil {
			return h, 0, errors.New("the head of a page cannot be decoded")
		}
		return h, int64(used), nil
	}
}

// slack is what a page may be larger than it claims where its size is not told exactly.
const slack = 16 << 20

// unpacked refuses n bytes at a place that become more than claimed when they are decompressed: the libraries
// decompress all.
func (c *checker) unpacked(codec format.CompressionCodec, at, n, claimed int64) error {
	if n == 0 {
		return nil
	}
	var most int64
	var err error
	switch codec {
	case format.Zstd:
		most, err = c.zstdSize(at, n)
		claimed += claimed + slack
	case format.Snappy:
		b := c.some(at, min(n, binary.MaxVarintLen64))
		v, used := binary.Uvarint(b)
		if used <= 0 || v > maxPage {
			return errors.New("a page's compression is broken")
		}
		most = int64(v)
	case format.Gzip:
		var z io.Reader
		if z, err = gzip.NewReader(io.NewSectionReader(c.r, at, n)); err == nil {
			most, err = streamSize(z, claimed)
		}
	case format.Brotli:
		most, err = streamSize(brotli.NewReader(io.NewSectionReader(c.r, at, n)), claimed)
	case format.Lz4Raw:
		most, err = c.lz4Size(at, n, claimed)
	}
	if err != nil {
		return fmt.Errorf("a page's compression is broken: %w", err)
	}
	if most > claimed {
		return errors.New("a page is larger than it claims")
	}
	return nil
}

// some reads n bytes at a place inside the file.
func (c *checker) some(at, n int64) []byte {
	b := make([]byte, n)
	if c.read(b, at) != nil {
		return nil
	}
	return b
}

// streamSize decompresses, but no more than one byte too much.
func streamSize(z io.Reader, claimed int64) (int64, error) {
	return io.Copy(io.Discard, io.LimitReader(z, claimed+1))
}

// lz4Size decompresses into what is claimed, and fails where that is too little or the block is broken: the library takes
// a broken block for one that needs more room, and doubles its memory until there is none.
func (c *checker) lz4Size(at, n, claimed int64) (int64, error) {
	c.grow(claimed + 1) // a byte too much is told from a broken block, and nothing has room
	size, err := lz4.UncompressBlock(c.some(at, n), c.page[:claimed+1])
	return int64(size), err
}

// grow makes room for a page of n bytes.
func (c *checker) grow(n int64) {
	if int64(cap(c.page)) < n {
		c.page = make([]byte, n)
	}
}

var errZstd = errors.New("no frame of zstd")

// zstdSize is the most bytes that frames of zstd (RFC 8878) become, by the heads of their blocks.
func (c *checker) zstdSize(at, n int64) (size int64, err error) {
	const magic, skippable, blockMax = 0xfd2fb528, 0x184d2a50, 128 << 10
	for end := at + n; at < end; {
		b := c.some(at, min(18, end-at))
		if len(b) < 6 {
			return 0, errZstd
		}
		word := binary.LittleEndian.Uint32(b)
		if word&^15 == skippable {
			if len(b) < 8 {
				return 0, errZstd
			}
			at += 8 + int64(binary.LittleEndian.Uint32(b[4:]))
			continue
		}
		if word != magic {
			return 0, errZstd
		}
		d := b[4]
		single := d&32 != 0
		head := 5 + []int{0, 1, 2, 4}[d&3] + []int{0, 2, 4, 8}[d>>6]
		if !single {
			head++
		} else if d>>6 == 0 {
			head++
		}
		at += int64(head)
		for last := false; !last; {
			b := c.some(at, 3)
			if at+3 > end || len(b) < 3 {
				return 0, errZstd
			}
			block := int64(b[0]) | int64(b[1])<<8 | int64(b[2])<<16
			last = block&1 != 0
			length := block >> 3
			at += 3
			switch block >> 1 & 3 {
			case 0: // as it is
				at, size = at+length, size+length
			case 1: // one byte, repeated
				at, size = at+1, size+length
			case 2:
				at, size = at+length, size+blockMax
			default:
				return 0, errZstd
			}
		}
		if d&4 != 0 {
			at += 4 // checksum
		}
		if at > end {
			return 0, errZstd
		}
	}
	return size, nil
}
