package schemas

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// JSONList is rows of a table as one JSON list, as AppendJSON writes each of them.
func JSONList[T any](rows []T) ([]byte, error) {
	out := []byte("[")
	for i, row := range rows {
		if i > 0 {
			out = append(out, ",\n "...)
		}
		var err error
		if out, err = AppendJSON(out, row); err != nil {
			return nil, err
		}
	}
	return append(out, "]\n"...), nil
}

// AppendJSON appends a row of a table to dst as one JSON object under its column names, in column order; null
// columns are null.
func AppendJSON(dst []byte, row any) ([]byte, error) {
	v := reflect.ValueOf(row)
	if v.Kind() != reflect.Struct {
		return dst, fmt.Errorf("encoding a row: %T is no row type", row)
	}
	dst = append(dst, '{')
	dst, err := appendFields(dst, v, true)
	return append(dst, '}'), err
}

func appendFields(dst []byte, v reflect.Value, first bool) ([]byte, error) {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		if field.Anonymous {
			var err error
			if dst, err = appendFields(dst, v.Field(i), first); err != nil {
				return dst, err
			}
			first = false
			continue
		}
		name, _, _ := strings.Cut(field.Tag.Get("parquet"), ",")
		if name == "-" { // in memory only
			continue
		}
		value, err := json.Marshal(v.Field(i).Interface())
		if err != nil {
			return dst, fmt.Errorf("encoding column %s: %w", name, err)
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = fmt.Appendf(dst, "%q:%s", name, value)
	}
	return dst, nil
}
