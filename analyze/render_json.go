package analyze

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

// WriteJSON writes the report as one JSON object, indented, with a final newline.
func (r *Report) WriteJSON(w io.Writer) error { return writeJSON(w, "the report", r) }

// writeJSON writes v, called what in errors, as one JSON object, indented, with a final newline.
func writeJSON(w io.Writer, what string, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("writing %s: %w", what, err)
	}
	return nil
}

// writeText writes what was collected in b, called what in errors.
func writeText(w io.Writer, what string, b *bytes.Buffer) error {
	if _, err := w.Write(b.Bytes()); err != nil {
		return fmt.Errorf("writing %s: %w", what, err)
	}
	return nil
}

// MarshalJSON writes the metrics as an object in the order of the report.
func (ms Metrics) MarshalJSON() ([]byte, error) {
	return objectOf(ms, func(m Metric) string { return m.Name })
}

// MarshalJSON writes the bucket as an object: {} for the whole run, labels as strings, ranges as [lo, hi] with
// null for an open end, null for unknown.
func (t Tuple) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	for i, v := range t {
		var value any
		switch {
		case v.Text != nil:
			value = *v.Text
		case v.Lo != nil || v.Hi != nil:
			value = [2]*int64{v.Lo, v.Hi}
		}
		if err := member(&b, i, v.Key, value); err != nil {
			return nil, err
		}
	}
	return closed(&b), nil
}

// json is the text of MarshalJSON, which cannot fail on strings and whole numbers.
func (t Tuple) json() string {
	data, _ := t.MarshalJSON()
	return string(data)
}

// member writes the i-th member of an object, keeping <, > and & as they are.
func member(b *bytes.Buffer, i int, name string, value any) error {
	sep := byte(',')
	if i == 0 {
		sep = '{'
	}
	b.WriteByte(sep)
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	if err := e.Encode(name); err != nil {
		return err
	}
	b.Truncate(b.Len() - 1)
	b.WriteByte(':')
	if err := e.Encode(value); err != nil {
		return err
	}
	b.Truncate(b.Len() - 1)
	return nil
}

func closed(b *bytes.Buffer) []byte {
	if b.Len() == 0 {
		b.WriteByte('{')
	}
	b.WriteByte('}')
	return b.Bytes()
}
