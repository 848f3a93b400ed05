package ingest

import (
	"bytes"
	"encoding/json"
	"strconv"

	"tailgate/internal/jsonscan"
)

// anyValue is an OTLP attribute value in OTLP's JSON encoding: integers are strings, bytes are base64.
type anyValue struct {
	String *text     `json:"stringValue"`
	Bool   flag      `json:"boolValue"`
	Int    number    `json:"intValue"`
	Double number    `json:"doubleValue"`
	Array  *anyArray `json:"arrayValue"`
	KV     *anyMap   `json:"kvlistValue"`
	Bytes  *text     `json:"bytesValue"`
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

// attributes are the values by key; the last of a repeated key wins.
type attributes map[string]*anyValue

func (a attributes) add(list []keyValue) {
	for i := range list {
		a[string(list[i].Key)] = &list[i].Value
	}
}

// text returns the first of the keys that holds a string or a number, as text.
func (a attributes) text(keys ...string) []byte {
	for _, k := range keys {
		v := a[k]
		switch {
		case v == nil:
		case v.String != nil && len(*v.String) > 0:
			return *v.String
		case v.Int.set:
			return strconv.AppendInt(nil, int64(v.Int.v), 10)
		}
	}
	return nil
}

// number returns the first of the keys that holds a number, also one spelled as a string.
func (a attributes) number(keys ...string) number {
	for _, k := range keys {
		v := a[k]
		switch {
		case v == nil:
		case v.Int.set:
			return v.Int
		case v.Double.set:
			return v.Double
		case v.String != nil:
			var n number
			if n.UnmarshalJSON(*v.String) == nil && n.set {
				return n
			}
		}
	}
	return number{}
}

// flag returns the boolean under key.
func (a attributes) flag(key string) *bool {
	v := a[key]
	switch {
	case v == nil:
		return nil
	case v.String != nil:
		var f flag
		_ = f.UnmarshalJSON(*v.String)
		return f.v
	}
	return v.Bool.v
}

// json returns the value under key as JSON: the content attributes are JSON in a string, or structured.
func (a attributes) json(key string) json.RawMessage {
	v := a[key]
	switch {
	case v == nil:
		return nil
	case v.String != nil:
		if len(*v.String) == 0 {
			return nil
		}
		if jsonscan.Valid(*v.String) {
			return json.RawMessage(bytes.TrimSpace(*v.String))
		}
		return appendQuoted(nil, *v.String)
	}
	return v.appendJSON(nil)
}

func (v *anyValue) appendJSON(out []byte) []byte {
	switch {
	case v.String != nil:
		return appendQuoted(out, *v.String)
	case v.Bytes != nil:
		return appendQuoted(out, *v.Bytes)
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
