package ingest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"

	"tailgate/internal/fault"
)

// Value codecs: how the value of a message is wrapped. CodecAuto unwraps what the first bytes show.
const (
	CodecAuto = "auto"
	CodecNone = "none"
	CodecGzip = "gzip"
	CodecZstd = "zstd"
)

// checkCodec refuses a name that is no codec; "" is one.
func checkCodec(codec string) error {
	if !slices.Contains([]string{"", CodecAuto, CodecNone, CodecGzip, CodecZstd}, codec) {
		return fault.Mark(fmt.Errorf("value codec %q is not one of auto, none, gzip, zstd", codec), fault.Usage, "")
	}
	return nil
}

// unwrapped puts d behind the frames and codecs that producers put around a value: a schema registry's header
// where JSON follows it, gzip, zstd. What cannot be unwrapped is a dead letter; a value that grows beyond the
// limit of a record is too big.
func unwrapped(codec string, d decoder) decoder {
	return func(value []byte) []item {
		inner, ours, dead := unwrap(codec, value)
		if dead != "" {
			return []item{{dead: dead, raw: value}}
		}
		items := d(inner)
		if ours {
			for i := range items { // the bytes for fingerprints are the only ones that point into inner
				if items[i].raw != nil {
					items[i].raw = value
				}
			}
			clear(inner)
		}
		return items
	}
}

// unwrap returns the value without its wrapping; ours tells that it is a copy. dead is a reason when it cannot.
func unwrap(codec string, value []byte) (inner []byte, ours bool, dead string) {
	inner, ours, ok := unframe(value)
	if !ok {
		return nil, false, DeadFramed
	}
	isGzip, isZstd := bytes.HasPrefix(inner, gzipMagic), bytes.HasPrefix(inner, zstdMagic)
	switch codec {
	case CodecNone:
		if isGzip || isZstd {
			return nil, false, DeadCompressed
		}
		return inner, ours, ""
	case CodecGzip:
		isZstd = false
	case CodecZstd:
		isGzip = false
	}
	var r io.Reader
	var err error
	switch {
	case isGzip:
		r, err = gzip.NewReader(bytes.NewReader(inner))
	case isZstd:
		var z *zstd.Decoder
		z, err = zstd.NewReader(bytes.NewReader(inner), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(2*maxRecordBytes))
		if err == nil {
			defer z.Close()
			r = z
		}
	case codec == CodecGzip || codec == CodecZstd:
		return nil, false, DeadCompressed
	default:
		return inner, ours, ""
	}
	if err != nil {
		return nil, false, DeadCompressed
	}
	inner, dead = inflate(r)
	return inner, dead == "", dead
}

// inflate reads all of r unless it is more than a record may hold.
func inflate(r io.Reader) ([]byte, string) {
	data, err := io.ReadAll(io.LimitReader(r, maxRecordBytes+1))
	switch {
	case errors.Is(err, zstd.ErrDecoderSizeExceeded) || errors.Is(err, zstd.ErrWindowSizeExceeded) || len(data) > maxRecordBytes:
		clear(data)
		return nil, DeadTooBig
	case err != nil:
		clear(data)
		return nil, DeadCompressed
	}
	return data, ""
}

// Sizes of the headers that schema registries put before a value.
const (
	confluentHeader = 1 + 4      // 0x00, schema id
	glueHeader      = 1 + 1 + 16 // 0x03, compression, schema version id
)

// unframe takes a schema registry's header off where JSON follows: their JSON Schema serializers add nothing
// else. Avro and Protobuf need the schema itself, so ok is false for them.
func unframe(value []byte) (inner []byte, ours, ok bool) {
	if len(value) == 0 || value[0] != 0x00 && value[0] != 0x03 {
		return value, false, true
	}
	switch {
	case value[0] == 0x00 && len(value) > confluentHeader:
		inner = value[confluentHeader:]
	case value[0] == 0x03 && len(value) > glueHeader && value[1] == 0x00:
		inner = value[glueHeader:]
	case value[0] == 0x03 && len(value) > glueHeader && value[1] == 0x05:
		r, err := zlib.NewReader(bytes.NewReader(value[glueHeader:]))
		if err != nil {
			return nil, false, false
		}
		inner, _ = inflate(r)
		ours = inner != nil
	}
	trimmed := bytes.TrimLeft(inner, " \t\r\n")
	return inner, ours, len(trimmed) > 0 && (trimmed[0] == '{' || trimmed[0] == '[')
}
