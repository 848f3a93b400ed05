package ingest

import (
	"encoding/json"
)

// readTags reads a list of tags, the same as JSON in a string, or an object, whose members become "key: value".
func readTags(raw json.RawMessage) [][]byte {
	if len(raw) == 0 || raw[0] != '{' {
		return litellmTags(raw)
	}
	var tags [][]byte
	eachMember(raw, func(key, value []byte) {
		var l label
		if l.UnmarshalJSON(value) == nil && len(l) > 0 {
			tag := append(append([]byte(nil), key...), ": "...)
			tags = append(tags, append(tag, l...))
		}
	})
	return tags
}
