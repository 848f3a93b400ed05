package anonymize

import "encoding/binary"

// Chars4 is the id of the tokenizer that needs no vocabulary: four bytes of the rendered prompt are a token,
// the last token may be shorter. Its count is what gateways themselves estimate (length/4); block borders
// differ from the engine's, shares of common prefix hardly do.
//
// The id of a token is its bytes as u32 little-endian. A last token of n < 4 bytes has 0xFC+n in the top byte,
// which no four bytes of a rendered prompt have (rendering escapes 0xF8 to 0xFF), so that equal ids mean equal
// bytes.
const Chars4 = "chars4/1"

const bytesPerToken = 4

// chars4Append appends the tokens of text to dst.
func chars4Append(dst []uint32, text []byte) []uint32 {
	for len(text) >= bytesPerToken {
		dst = append(dst, binary.LittleEndian.Uint32(text))
		text = text[bytesPerToken:]
	}
	if n := len(text); n > 0 {
		var last [bytesPerToken]byte
		copy(last[:], text)
		last[bytesPerToken-1] = byte(0xFC + n)
		dst = append(dst, binary.LittleEndian.Uint32(last[:]))
	}
	return dst
}
