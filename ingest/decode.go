package ingest

import (
	"bytes"

	"tailgate/internal/jsonscan"
)

// What a message may hold, so that one of any size and shape does not take many times its size in memory: a message
// that holds more is a dead letter as a whole.
const (
	maxRecords  = 50_000    // records, or spans
	maxElements = 600_000   // strings, objects and lists, or, in protobuf, what stands for them
	mayBeHeavy  = 512 << 10 // smaller ones need not be weighed
)

// heavy tells whether JSON holds more elements than one message may.
func heavy(data []byte) bool {
	return len(data) > mayBeHeavy && jsonscan.Heavier(data, maxElements)
}

// decodeEach cuts a message into its records (one JSON object, a JSON array, or NDJSON) and decodes each.
func decodeEach(value []byte, one func(raw []byte) []item) []item {
	value = bytes.TrimPrefix(value, []byte("\xef\xbb\xbf"))
	value = bytes.TrimSpace(value)
	if reason := notText(value); reason != "" {
		return []item{{dead: reason, raw: value}}
	}
	switch {
	case len(value) == 0:
		return []item{{skip: SkipEmpty}}
	case heavy(value):
		return []item{{dead: DeadTooBig, raw: value}}
	}
	if jsonscan.Valid(value) {
		return decodeValid(value, one)
	}
	if bytes.IndexByte(value, '\n') < 0 {
		return []item{{dead: DeadBadJSON, raw: value}}
	}
	var items []item
	for line := range bytes.SplitSeq(value, []byte{'\n'}) {
		line = bytes.TrimSpace(line)
		switch {
		case len(line) == 0:
		case jsonscan.Valid(line):
			items = append(items, decodeValid(line, one)...)
		default:
			items = append(items, item{dead: DeadBadJSON, raw: line})
		}
		if len(items) > maxRecords {
			return []item{{dead: DeadTooBig, raw: value}}
		}
	}
	return items
}

func decodeValid(value []byte, one func(raw []byte) []item) []item {
	switch value[0] {
	case '{':
		return one(value)
	case '[':
		var items []item
		eachElement(value, func(raw []byte) {
			switch {
			case len(items) > maxRecords: // one too many is enough to know
			case raw[0] == '{':
				items = append(items, one(raw)...)
			default:
				items = append(items, item{dead: DeadLayout, raw: raw})
			}
		})
		switch {
		case len(items) == 0:
			return []item{{skip: SkipEmpty}}
		case len(items) > maxRecords:
			return []item{{dead: DeadTooBig, raw: value}}
		}
		return items
	}
	return []item{{dead: DeadLayout, raw: value}}
}

// notText names the binary wrapping of a value that cannot be JSON, "" when there is none.
func notText(value []byte) string {
	switch {
	case len(value) == 0:
		return ""
	case value[0] == 0x00 || value[0] == 0x03:
		return DeadFramed
	case bytes.HasPrefix(value, gzipMagic) || bytes.HasPrefix(value, zstdMagic):
		return DeadCompressed
	}
	return ""
}

var (
	gzipMagic = []byte{0x1f, 0x8b}
	zstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}
)
