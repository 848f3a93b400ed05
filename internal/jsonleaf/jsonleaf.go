// Package jsonleaf lists the numbers of a JSON document by their place in it, so that other renderings of the same data can
// be made from them and held to them.
package jsonleaf

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Leaf is a number: Path joins the keys and places that lead to it with dots, Exact is its text; "null" and the words
// "inf" and "-inf", which stand for numbers that JSON has not, are kept, other words and booleans are not.
type Leaf struct{ Path, Exact string }

// Read lists the leaves of one JSON value in its order.
func Read(r io.Reader) ([]Leaf, error) {
	d := json.NewDecoder(r)
	d.UseNumber()
	var out []Leaf
	if err := walk(d, "", &out); err != nil {
		return nil, fmt.Errorf("reading the numbers of a JSON value: %w", err)
	}
	return out, nil
}

// walk reads the next value, which stands at path.
func walk(d *json.Decoder, path string, out *[]Leaf) error {
	t, err := d.Token()
	if err != nil {
		return err
	}
	switch t := t.(type) {
	case json.Delim:
		for i := 0; d.More(); i++ {
			key := strconv.Itoa(i)
			if t == '{' {
				name, err := d.Token()
				if err != nil {
					return err
				}
				key = name.(string) // the keys of an object are words
			}
			if err := walk(d, strings.TrimPrefix(path+"."+key, "."), out); err != nil {
				return err
			}
		}
		_, err := d.Token() // the end
		return err
	case json.Number:
		*out = append(*out, Leaf{path, t.String()})
	case nil:
		*out = append(*out, Leaf{path, "null"})
	case string:
		if t == "inf" || t == "-inf" {
			*out = append(*out, Leaf{path, t})
		}
	}
	return nil
}
