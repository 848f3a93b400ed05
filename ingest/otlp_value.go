package ingest

import (
	"bytes"
	"encoding/json"
	"strconv"

	"tailgate/internal/jsonscan"
)

// anyValue is an OTLP attribute value in OTLP's JSON encoding: integers are strings, bytes are base64.
type anyValue struct {
	String optional  `json:"stringValue"`
	Bool   flag      `json:"boolValue"`
	Int    number    `json:"intValue"`
	Double number    `json:"doubleValue"`
	Array  *anyArray `json:"arrayValue"`
	KV     *anyMap   `json:"kvlistValue"`
	Bytes  optional  `json:"bytesValue"`
}

// optional is a JSON string that may be absent or null.
type optional struct {
	text
	set bool
}

func (o *optional) UnmarshalJSON(raw []byte) error {
	o.set = !isNull(raw)
	return o.text.UnmarshalJSON(raw)
}

type anyArray struct {
	Values []anyValue `json:"values"`
}

type anyMap struct {
	Values []keyValue `json:"values"`
}

type keyValue struct {
	Key   text     `json:"key"`
	Value anyValue `json:"value"`
}

// attributes are values by key; the last of a repeated key wins.
type attributes struct {
	list  []attribute
	first [attributeSlots]int32 // by slot of the key: 1 + the first of the list, 0 = none
	many  map[string]int32      // by key: index in the list, once it is long
}

type attribute struct {
	key   []byte
	value *anyValue
	next  int32 // in the same slot, like first
}

const (
	attributeSlots = 64
	manyAttributes = 8 * attributeSlots
)

func newAttributes(list []keyValue) *attributes {
	a := &attributes{}
	a.add(list)
	return a
}

// reset empties a for reuse.
func (a *attributes) reset() {
	clear(a.list)
	a.list, a.first, a.many = a.list[:0], [attributeSlots]int32{}, nil
	if cap(a.list) > keepItems {
		a.list = nil
	}
}

func slotOf[T string | []byte](key T) int {
	n := len(key)
	if n == 0 {
		return 0
	}
	return (n + 7*int(key[n-1]) + 3*int(key[n/2])) % attributeSlots
}

func (a *attributes) add(list []keyValue) {
	for i := range list {
		a.set(list[i].Key, &list[i].Value)
	}
}

func (a *attributes) set(key []byte, v *anyValue) {
	if i := find(a, key); i >= 0 {
		a.list[i].value = v
		return
	}
	slot := slotOf(key)
	a.list = append(a.list, attribute{key, v, a.first[slot]})
	a.first[slot] = int32(len(a.list))
	switch n := len(a.list); {
	case n == manyAttributes:
		a.many = make(map[string]int32, 2*n)
		for i := range a.list {
			a.many[string(a.list[i].key)] = int32(i)
		}
	case n > manyAttributes:
		a.many[string(key)] = int32(n - 1)
	}
}

// get returns the value under key, nil when there is none.
func (a *attributes) get(key string) *anyValue {
	if i := find(a, key); i >= 0 {
		return a.list[i].value
	}
	return nil
}

// find returns where key is in the list, -1 when it is not.
func find[T string | []byte](a *attributes, key T) int {
	if a.many != nil {
		if i, ok := a.many[string(key)]; ok {
			return int(i)
		}
		return -1
	}
	for i := a.first[slotOf(key)]; i > 0; i = a.list[i-1].next {
		if string(a.list[i-1].key) == string(key) {
			return int(i - 1)
		}
	}
	return -1
}

// text returns the first of the keys that holds a string or a number, as text.
func (a *attributes) text(keys ...string) []byte {
	for _, k := range keys {
		v := a.get(k)
		switch {
		case v == nil:
		case len(v.String.text) > 0:
			return v.String.text
		case v.Int.set:
			return strconv.AppendInt(nil, int64(v.Int.v), 10)
		}
	}
	return nil
}

// number returns the first of the keys that holds a number, also one spelled as a string.
func (a *attributes) number(keys ...string) number {
	for _, k := range keys {
		v := a.get(k)
		switch {
		case v == nil:
		case v.Int.set:
			return v.Int
		case v.Double.set:
			return v.Double
		case v.String.set:
			var n number
			if n.UnmarshalJSON(v.String.text) == nil && n.set {
				return n
			}
		}
	}
	return number{}
}

// flag returns the boolean under key.
func (a *attributes) flag(key string) *bool {
	v := a.get(key)
	switch {
	case v == nil:
		return nil
	case v.String.set:
		var f flag
		_ = f.UnmarshalJSON(v.String.text)
		return f.v
	}
	return v.Bool.v
}

// json returns the value under key as JSON: the content attributes are JSON in a string, or structured.
func (a *attributes) json(key string) json.RawMessage {
	v := a.get(key)
	if v == nil {
		return nil
	}
	return v.json()
}

// json returns the value as JSON, see above.
func (v *anyValue) json() json.RawMessage {
	if v.String.set {
		if len(v.String.text) == 0 {
			return nil
		}
		if jsonscan.Valid(v.String.text) && !heavy(v.String.text) {
			return json.RawMessage(bytes.TrimSpace(v.String.text))
		}
		return appendQuoted(nil, v.String.text)
	}
	return v.appendJSON(nil)
}

func (v *anyValue) appendJSON(out []byte) []byte {
	switch {
	case v.String.set:
		return appendQuoted(out, v.String.text)
	case v.Bytes.set:
		return appendQuoted(out, v.Bytes.text)
	case v.Bool.v != nil:
		return strconv.AppendBool(out, *v.Bool.v)
	case v.Int.set:
		return strconv.AppendInt(out, int64(v.Int.v), 10)
	case v.Double.set:
		return strconv.AppendFloat(out, v.Double.v, 'g', -1, 64)
	case v.Array != nil:
		out = append(out, '[')
		for i := range v.Array.Values {
			if i > 0 {
				out = append(out, ',')
			}
			out = v.Array.Values[i].appendJSON(out)
		}
		return append(out, ']')
	case v.KV != nil:
		out = append(out, '{')
		for i := range v.KV.Values {
			if i > 0 {
				out = append(out, ',')
			}
			out = append(appendQuoted(out, v.KV.Values[i].Key), ':')
			out = v.KV.Values[i].Value.appendJSON(out)
		}
		return append(out, '}')
	}
	return append(out, "null"...)
}
