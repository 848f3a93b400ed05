package ingest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"

	"tailgate/internal/fault"
)

// Codecs of the values of records.
const (
	CodecAuto = "auto" // gzip, zstd and Glue's compressed frame are told by their first bytes
	CodecNone = "none" // values are taken as they are
	CodecGzip = "gzip" // every value is gzip
	CodecZstd = "zstd" // every value is zstd
)

// ValueCodecs lists the codecs.
func ValueCodecs() []string { return []string{CodecAuto, CodecNone, CodecGzip, CodecZstd} }

// checkCodec refuses a name that is no codec; "" is one, and means auto.
func checkCodec(codec string) error {
	if codec == "" || slices.Contains(ValueCodecs(), codec) {
		return nil
	}
	return fault.Mark(fmt.Errorf("value codec %q is not one of %s", codec, strings.Join(ValueCodecs(), ", ")), fault.Usage, "")
}

// unwrapper takes what surrounds the text of a record away: a registry's frame, compression, and a frame
// within it. It belongs to one worker.
type unwrapper struct {
	codec string
	limit int64 // bytes after decompression
	gzip  *gzip.Reader
	zlib  io.ReadCloser
	zstd  *zstd.Decoder
	buf   bytes.Buffer
}

// newUnwrapper returns an unwrapper with the widest limit. The caller closes it.
func newUnwrapper(codec string) *unwrapper { return &unwrapper{codec: codec, limit: maxRecordBytes} }

// before puts d behind the unwrapper; the items hold until the next call.
func (u *unwrapper) before(d decoder) decoder {
	return func(value []byte) []item {
		text, dead := u.open(value)
		if dead != "" {
			return []item{{dead: dead, raw: value}}
		}
		return d(text)
	}
}

// open returns the text of value and, where it cannot be had, the reason. The text is value's, or valid until
// the next call.
func (u *unwrapper) open(value []byte) (text []byte, dead string) {
	value = unframe(value)
	var err error
	switch codec := u.codecOf(value); codec {
	case CodecNone:
		return value, ""
	case CodecGzip:
		err = u.inflateGzip(value)
	case CodecZstd:
		err = u.inflateZstd(value)
	case codecGlue:
		err = u.inflateZlib(value[glueFrame:])
	}
	switch {
	case errors.Is(err, errBomb):
		return nil, DeadBomb
	case err != nil:
		return nil, DeadCompressed
	}
	if u.codecOf(value) == codecGlue && !startsJSON(u.buf.Bytes()) {
		return nil, DeadFramed
	}
	return unframe(u.buf.Bytes()), ""
}

func (u *unwrapper) codecOf(value []byte) string {
	if u.codec != CodecAuto {
		return u.codec
	}
	switch {
	case bytes.HasPrefix(value, gzipMagic):
		return CodecGzip
	case bytes.HasPrefix(value, zstdMagic):
		return CodecZstd
	case len(value) > glueFrame && value[0] == 0x03 && value[1] == 0x05:
		return codecGlue
	}
	return CodecNone
}

var errBomb = errors.New("too large after decompression")

func (u *unwrapper) inflateGzip(value []byte) (err error) {
	if u.gzip == nil {
		u.gzip, err = gzip.NewReader(bytes.NewReader(value))
	} else {
		err = u.gzip.Reset(bytes.NewReader(value))
	}
	if err != nil {
		u.gzip = nil
		return err
	}
	return u.inflate(u.gzip)
}

func (u *unwrapper) inflateZstd(value []byte) (err error) {
	if u.zstd == nil {
		u.zstd, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(maxRecordBytes))
		if err != nil {
			return err
		}
	}
	if err := u.zstd.Reset(bytes.NewReader(value)); err != nil {
		return err
	}
	return u.inflate(u.zstd)
}

func (u *unwrapper) inflateZlib(value []byte) (err error) {
	in := bytes.NewReader(value)
	if u.zlib == nil {
		if u.zlib, err = zlib.NewReader(in); err != nil {
			return err
		}
	} else if err := u.zlib.(zlib.Resetter).Reset(in, nil); err != nil {
		return err
	}
	return u.inflate(u.zlib)
}

// inflate reads no more than the limit, whatever the header promises.
func (u *unwrapper) inflate(r io.Reader) error {
	u.buf.Reset()
	n, err := u.buf.ReadFrom(io.LimitReader(r, u.limit+1))
	if n > u.limit {
		return errBomb
	}
	return err
}

// forget clears the text that the last call left behind; a large buffer is dropped.
func (u *unwrapper) forget() {
	clear(u.buf.Bytes())
	u.buf.Reset()
	if u.buf.Cap() > 4<<20 {
		u.buf = bytes.Buffer{}
	}
}

func (u *unwrapper) close() {
	u.forget()
	if u.zstd != nil {
		u.zstd.Close()
	}
}

// codecGlue is the codec of values in Glue's frame that are compressed with zlib; CodecAuto finds it.
const codecGlue = "glue"

// Frames of schema registries before a JSON value: Confluent's 0x00 and a schema id of 4 bytes, Glue's 0x03, a
// byte that is 0x00 for no compression and 0x05 for zlib, and a schema id of 16 bytes.
const (
	confluentFrame = 1 + 4
	glueFrame      = 1 + 1 + 16
)

// unframe takes a registry's frame off a JSON value. Other values stay as they are: what their schema is only
// the registry knows, and the decoder gives DeadFramed.
func unframe(value []byte) []byte {
	frame := 0
	switch {
	case len(value) > confluentFrame && value[0] == 0x00:
		frame = confluentFrame
	case len(value) > glueFrame && value[0] == 0x03 && value[1] == 0x00:
		frame = glueFrame
	default:
		return value
	}
	if startsJSON(value[frame:]) {
		return bytes.TrimLeft(value[frame:], " \t\r\n")
	}
	return value
}

// startsJSON tells whether an object or a list can begin here.
func startsJSON(b []byte) bool {
	rest := bytes.TrimLeft(b, " \t\r\n")
	return len(rest) > 0 && (rest[0] == '{' || rest[0] == '[')
}
