package tabular

import (
	"encoding/base64"
	"math"
	"strconv"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// appendValue appends one value that is not null, as plain text; quoted tells that it is a text in JSON.
func appendValue(dst []byte, a arrow.Array, i int) (out []byte, quoted bool) {
	switch a := a.(type) {
	case *array.Boolean:
		return strconv.AppendBool(dst, a.Value(i)), false
	case *array.Int8:
		return strconv.AppendInt(dst, int64(a.Value(i)), 10), false
	case *array.Int16:
		return strconv.AppendInt(dst, int64(a.Value(i)), 10), false
	case *array.Int32:
		return strconv.AppendInt(dst, int64(a.Value(i)), 10), false
	case *array.Int64:
		return strconv.AppendInt(dst, a.Value(i), 10), false
	case *array.Uint8:
		return strconv.AppendUint(dst, uint64(a.Value(i)), 10), false
	case *array.Uint16:
		return strconv.AppendUint(dst, uint64(a.Value(i)), 10), false
	case *array.Uint32:
		return strconv.AppendUint(dst, uint64(a.Value(i)), 10), false
	case *array.Uint64:
		return strconv.AppendUint(dst, a.Value(i), 10), false
	case *array.Float16:
		return appendFloat(dst, float64(a.Value(i).Float32()), 32)
	case *array.Float32:
		return appendFloat(dst, float64(a.Value(i)), 32)
	case *array.Float64:
		return appendFloat(dst, a.Value(i), 64)
	case *array.List, *array.LargeList, *array.FixedSizeList, *array.ListView, *array.LargeListView, *array.Map, *array.Struct:
		return appendJSON(dst, a, i), false
	case *array.Dictionary:
		return appendValue(dst, a.Dictionary(), a.GetValueIndex(i))
	}
	return appendQuoted(dst, a, i), true
}

// appendQuoted appends a value that is a text in JSON.
func appendQuoted(dst []byte, a arrow.Array, i int) []byte {
	switch a := a.(type) {
	case *array.Timestamp:
		t := a.DataType().(*arrow.TimestampType)
		return appendTime(dst, a.Value(i).ToTime(t.Unit), t.Unit, t.TimeZone != "")
	case *array.Date32:
		return a.Value(i).ToTime().AppendFormat(dst, time.DateOnly)
	case *array.Date64:
		return a.Value(i).ToTime().AppendFormat(dst, time.DateOnly)
	case *array.Decimal128:
		return append(dst, a.Value(i).ToString(a.DataType().(*arrow.Decimal128Type).Scale)...)
	case *array.Decimal256:
		return append(dst, a.Value(i).ToString(a.DataType().(*arrow.Decimal256Type).Scale)...)
	case interface{ Value(int) string }: // texts of all sizes
		return append(dst, a.Value(i)...)
	case interface{ Value(int) []byte }: // bytes of all sizes
		return base64.StdEncoding.AppendEncode(dst, a.Value(i))
	}
	return append(dst, a.ValueStr(i)...)
}

// appendTime writes a wall time to the digits of its unit; with a zone it is UTC and says so.
func appendTime(dst []byte, t time.Time, unit arrow.TimeUnit, zone bool) []byte {
	layout := map[arrow.TimeUnit]string{arrow.Second: "", arrow.Millisecond: ".000", arrow.Microsecond: ".000000", arrow.Nanosecond: ".000000000"}[unit]
	layout = "2006-01-02T15:04:05" + layout
	if zone {
		layout += "Z"
	}
	return t.UTC().AppendFormat(dst, layout)
}

// appendFloat writes the shortest decimal that gives f back.
func appendFloat(dst []byte, f float64, bits int) (out []byte, quoted bool) {
	switch {
	case math.IsNaN(f):
		return append(dst, "nan"...), true
	case math.IsInf(f, 1):
		return append(dst, "inf"...), true
	case math.IsInf(f, -1):
		return append(dst, "-inf"...), true
	}
	return strconv.AppendFloat(dst, f, 'g', -1, bits), false
}

// appendJSON appends one value as JSON.
func appendJSON(dst []byte, a arrow.Array, i int) []byte {
	if a.IsNull(i) {
		return append(dst, "null"...)
	}
	switch a := a.(type) {
	case *array.Map:
		return appendMap(dst, a, i)
	case *array.Struct:
		dst = append(dst, '{')
		for f := range a.NumField() {
			if f > 0 {
				dst = append(dst, ',')
			}
			dst = appendJSONText(dst, a.DataType().(*arrow.StructType).Field(f).Name)
			dst = appendJSON(append(dst, ':'), a.Field(f), i)
		}
		return append(dst, '}')
	case array.ListLike:
		from, to := a.ValueOffsets(i)
		dst = append(dst, '[')
		for k := from; k < to; k++ {
			if k > from {
				dst = append(dst, ',')
			}
			dst = appendJSON(dst, a.ListValues(), int(k))
		}
		return append(dst, ']')
	}
	mark := len(dst)
	dst, quoted := appendValue(dst, a, i)
	if !quoted {
		return dst
	}
	text := string(dst[mark:])
	return appendJSONText(dst[:mark], text)
}

// appendMap writes a map with text keys as an object, in its own order, and any other as a list of keys and values.
func appendMap(dst []byte, a *array.Map, i int) []byte {
	from, to := a.ValueOffsets(i)
	keys, items := a.Keys(), a.Items()
	_, object := keys.(interface{ Value(int) string })
	open, end := byte('['), byte(']')
	if object {
		open, end = '{', '}'
	}
	dst = append(dst, open)
	for k := int(from); k < int(to); k++ {
		if k > int(from) {
			dst = append(dst, ',')
		}
		if object {
			dst = appendJSON(append(appendJSON(dst, keys, k), ':'), items, k)
			continue
		}
		dst = appendJSON(append(dst, `{"key":`...), keys, k)
		dst = append(appendJSON(append(dst, `,"value":`...), items, k), '}')
	}
	return append(dst, end)
}
