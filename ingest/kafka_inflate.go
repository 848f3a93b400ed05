package ingest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/segmentio/kafka-go/compress"

	"tailgate/internal/fault"
)

const (
	// maxBatchBytes is how much a producer's compressed batch may inflate to.
	maxBatchBytes = 96 << 20
	// inflateTwice is from which size on a batch is inflated twice.
	inflateTwice = 4 << 20
)

// errCodec is the error of a batch whose compression is not known here.
var errCodec = errors.New("the compression of a batch is not known")

// inflate returns the bytes of a batch's records. An uncompressed batch may have any size: it is in memory already.
// errBomb is the error of one that would be too large, errCodec that of a codec which is not known.
func (a *answer) inflate(h *batchHeader) ([]byte, error) {
	switch h.codec {
	case compress.None:
		return h.body, nil
	case compress.Snappy:
		return inflateSnappy(h.body)
	case compress.Zstd:
		return a.inflateZstd(h.body)
	}
	codec := h.codec.Codec()
	if codec == nil {
		return nil, fault.Mark(fmt.Errorf("%w: codec %d", errCodec, h.codec), fault.Data, "")
	}
	return inflateBounded(func() (io.ReadCloser, error) { return codec.NewReader(bytes.NewReader(h.body)), nil })
}

// inflateZstd reads with windows no larger than what a batch may become: a frame can ask for any amount of memory.
func (a *answer) inflateZstd(body []byte) ([]byte, error) {
	if a.zstd == nil {
		d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxBatchBytes))
		if err != nil {
			return nil, err
		}
		a.zstd = d
	}
	return inflateBounded(func() (io.ReadCloser, error) {
		return io.NopCloser(a.zstd), a.zstd.Reset(bytes.NewReader(body))
	})
}

// inflateBounded reads what open gives, twice where it is large: a growing buffer would take three times as much.
func inflateBounded(open func() (io.ReadCloser, error)) ([]byte, error) {
	in, err := open()
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	n, err := out.ReadFrom(io.LimitReader(in, inflateTwice))
	if err != nil || n < inflateTwice {
		in.Close()
		return out.Bytes(), err
	}
	more, err := io.Copy(io.Discard, io.LimitReader(in, maxBatchBytes+1-n))
	in.Close()
	switch {
	case err != nil:
		return nil, err
	case n+more > maxBatchBytes:
		return nil, errBomb
	}
	if in, err = open(); err != nil {
		return nil, err
	}
	defer in.Close()
	whole := make([]byte, n+more)
	_, err = io.ReadFull(in, whole)
	return whole, err
}

// inflateSnappy decodes a block, or the frames that Java's library puts around blocks. What they claim to become is
// looked at before any memory is taken.
func inflateSnappy(body []byte) ([]byte, error) {
	total := 0
	err := eachSnappyBlock(body, func(block []byte) error {
		n, err := snappy.DecodedLen(block)
		if total += n; total > maxBatchBytes {
			return errBomb
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	out := make([]byte, 0, total)
	err = eachSnappyBlock(body, func(block []byte) error {
		text, err := snappy.Decode(out[len(out):cap(out)], block)
		out = out[:len(out)+len(text)]
		return err
	})
	return out, err
}

// Java's library begins with this and two versions of four bytes, then come blocks with their lengths before them.
const (
	xerialMagic = "\x82SNAPPY\x00"
	xerialHead  = len(xerialMagic) + 4 + 4
)

// eachSnappyBlock calls visit with the blocks of body.
func eachSnappyBlock(body []byte, visit func(block []byte) error) error {
	if len(body) < xerialHead || string(body[:len(xerialMagic)]) != xerialMagic {
		if len(body) == 0 {
			return nil
		}
		return visit(body)
	}
	for body = body[xerialHead:]; len(body) > 0; {
		if len(body) < 4 {
			return errBatch
		}
		size := int64(binary.BigEndian.Uint32(body))
		if body = body[4:]; size > int64(len(body)) {
			return errBatch
		}
		if err := visit(body[:size]); err != nil {
			return err
		}
		body = body[size:]
	}
	return nil
}
