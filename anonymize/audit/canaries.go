package audit

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/url"
	"strings"
	"unicode/utf16"

	"tailgate/internal/fault"
)

// shortLen is how much of a canary's start counts as a find: a text may have been cut.
const shortLen = 12

// spelling is one way in which a canary may be written.
type spelling struct {
	name string
	text []byte
}

// spellings lists the ways in which c may lie in a file: as it is, escaped, encoded, in other letters, cut.
func spellings(c []byte) []spelling {
	s := string(c)
	out := []spelling{{"raw", c}, {"lower", bytes.ToLower(c)}, {"upper", bytes.ToUpper(c)}}
	if len(c) > shortLen {
		cut := c[:shortLen]
		out = append(out, spelling{"start", cut}, spelling{"start, lower", bytes.ToLower(cut)}, spelling{"start, upper", bytes.ToUpper(cut)})
	}
	for _, escapeHTML := range []bool{true, false} {
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(escapeHTML)
		if enc.Encode(s) == nil {
			out = append(out, spelling{"JSON", bytes.Trim(b.Bytes(), "\"\n")})
		}
	}
	var little, big, lower, upper, percent []byte
	for _, u := range utf16.Encode([]rune(s)) {
		little, big = binary.LittleEndian.AppendUint16(little, u), binary.BigEndian.AppendUint16(big, u)
		lower = hex.AppendEncode(append(lower, `\u`...), big[len(big)-2:])
		upper = append(append(upper, `\u`...), bytes.ToUpper(lower[len(lower)-4:])...)
	}
	digits := hex.EncodeToString(c)
	for i := range c {
		percent = append(append(percent, '%'), digits[2*i:2*i+2]...)
	}
	out = append(out, spelling{`\u`, lower}, spelling{`\U`, upper},
		spelling{"UTF-16LE", little}, spelling{"UTF-16BE", big},
		spelling{"hex", []byte(digits)}, spelling{"hex, upper", []byte(strings.ToUpper(digits))},
		spelling{"URL query", []byte(url.QueryEscape(s))}, spelling{"URL path", []byte(url.PathEscape(s))},
		spelling{"URL, all", bytes.ToUpper(percent)}, spelling{"URL, all, lower", percent},
		spelling{"HTML", []byte(html.EscapeString(s))})
	for name, enc := range map[string]*base64.Encoding{"base64": base64.RawStdEncoding, "base64url": base64.RawURLEncoding} {
		for pad := range 3 {
			// What stands before and after the canary decides the characters at the ends: they are left out.
			coded := enc.EncodeToString(append(make([]byte, pad, pad+len(c)), c...))
			first, last := (pad*8+5)/6, (pad+len(c))*8/6
			out = append(out, spelling{fmt.Sprintf("%s+%d", name, pad), []byte(coded[first:last])})
		}
	}
	return out
}

// ReadCanaries reads canaries, one a line. Empty lines are passed over; their number counts.
func ReadCanaries(r io.Reader) ([][]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxCanaryFile+1))
	if err != nil {
		return nil, fmt.Errorf("reading the canaries: %w", err)
	}
	if len(data) > maxCanaryFile {
		return nil, fault.Mark(fmt.Errorf("reading the canaries: more than %d MiB", maxCanaryFile>>20), fault.Usage, "one canary a line")
	}
	var out [][]byte
	for line := range bytes.Lines(data) {
		if line = bytes.TrimRight(line, "\r\n"); len(line) > 0 {
			out = append(out, line)
		}
	}
	return out, nil
}

// maxCanaryFile bounds the file of canaries in bytes: all spellings are in memory.
const maxCanaryFile = 8 << 20
