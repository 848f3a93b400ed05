package audit

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/parquet-go/parquet-go"

	"tailgate/internal/objstore"
)

// span is a range of bytes of a file.
type span struct{ from, to int64 }

// cover finds bytes of a Parquet file that neither its footer nor a page or index that the footer names account
// for: a page that nobody refers to could hide there, compressed.
func (a *auditor) cover(pf *parquet.File, r *objstore.Reader) {
	size := r.Size()
	end := make([]byte, 8)
	if _, err := r.ReadAt(end, size-8); err != nil {
		a.unreadable("cannot be read")
		return
	}
	known := []span{{0, 4}, {size - 8 - int64(binary.LittleEndian.Uint32(end)), size}}
	for _, group := range pf.Metadata().RowGroups {
		for i := range group.Columns {
			c := &group.Columns[i]
			start := c.MetaData.DataPageOffset
			if d := c.MetaData.DictionaryPageOffset; d > 0 {
				start = min(start, d)
			}
			known = append(known, span{start, start + c.MetaData.TotalCompressedSize},
				span{c.ColumnIndexOffset, c.ColumnIndexOffset + int64(c.ColumnIndexLength)},
				span{c.OffsetIndexOffset, c.OffsetIndexOffset + int64(c.OffsetIndexLength)},
				span{c.MetaData.BloomFilterOffset, c.MetaData.BloomFilterOffset + int64(c.MetaData.BloomFilterLength)})
		}
	}
	slices.SortFunc(known, func(x, y span) int { return cmp.Compare(x.from, y.from) })
	at := int64(0)
	for _, s := range known {
		if s.from > at {
			a.found(Finding{What: WhatHidden, Place: PlaceBytes})
		}
		at = max(at, s.to)
	}
}
