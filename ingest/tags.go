package ingest

import (
	"encoding/json"

	"tailgate/prompt"
)

// tags adds to list what raw holds: a list of tags, the same as JSON in a string, or an object, whose members become
// "key: value".
func (r *reader) tags(list [][]byte, raw json.RawMessage) [][]byte {
	switch {
	case !present(raw):
		return list
	case raw[0] != '{':
		n := len(list)
		if r.try(raw, &r.said, func(r *reader, _ *prompt.Prompt) { list = r.tagList(list) }) {
			return list
		}
		return append(list[:n], litellmTags(raw)...)
	}
	eachMember(raw, func(key, value []byte) {
		switch {
		case isString(value):
			value = r.unquoted(value)
		case value[0] != '-' && !isDigit(value[0]):
			return
		}
		if len(value) > 0 {
			start := len(r.arena)
			r.arena = append(append(append(r.arena, key...), ": "...), value...)
			list = append(list, r.arena[start:len(r.arena):len(r.arena)])
		}
	})
	return list
}

// tagList reads a list of texts.
func (r *reader) tagList(list [][]byte) [][]byte {
	for r.scan.Enter('['); r.scan.More(']'); {
		list = append(list, r.text())
	}
	return list
}
