package parquetio

import (
	"sync"

	zstdlib "github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/compress/zstd"
)

// A page ends at pageBytes at the latest, or smallPage in a small file, but for one portion of rows.
const (
	pageBytes = 1 << 20
	smallPage = 64 << 10
)

// pageCodec is zstd with encoders made for pages: one of the library's own holds 16 MiB of history, twice its
// window of 8 MiB, which no page fills. What it writes of a page of up to pageBytes is the same.
type pageCodec struct {
	zstd.Codec // decodes
	level      zstdlib.EncoderLevel
	encoders   sync.Pool
}

// Small pages have the level whose tables are small: 256 KiB, a fifth.
var (
	pages      = pageCodec{level: zstd.SpeedDefault}
	smallPages = pageCodec{level: zstd.SpeedFastest}
)

// Encode implements compress.Codec.
func (c *pageCodec) Encode(dst, src []byte) ([]byte, error) {
	e, ok := c.encoders.Get().(*zstdlib.Encoder)
	if !ok {
		var err error
		e, err = zstdlib.NewWriter(nil, zstdlib.WithEncoderConcurrency(1), zstdlib.WithEncoderLevel(c.level),
			zstdlib.WithWindowSize(pageBytes), zstdlib.WithLowerEncoderMem(true),
			zstdlib.WithZeroFrames(true), zstdlib.WithEncoderCRC(false))
		if err != nil {
			return nil, err
		}
	}
	defer c.encoders.Put(e)
	return e.EncodeAll(src, dst[:0]), nil
}
