package parquetio

import (
	"encoding/binary"
	"errors"
)

// The libraries decode thrift as it comes: a list that claims two thousand million elements is allocated, and structs
// in structs overflow the stack, which ends the program. So the bytes are walked first.

var (
	errThrift = errors.New("broken thrift")
	errShort  = errors.New("broken thrift: cut")
)

const (
	maxNesting  = 32      // a real footer has eight
	maxElements = 2 << 20 // of all lists of a footer
	maxStructs  = 400_000 // of them those that are structs: a column chunk has three or four
)

// walk is a pass over thrift in the compact protocol, which its limits bound.
type walk struct {
	b                     []byte
	at, elements, structs int
}

// walkStruct returns how many bytes the struct at the begin of b has; errShort when it goes on behind b.
func walkStruct(b []byte) (int, error) {
	w := walk{b: b}
	err := w.record(0)
	return w.at, err
}

// Types of the compact protocol.
const (
	thriftTrue, thriftFalse, thriftByte = 1, 2, 3
	thriftInt16, thriftInt64            = 4, 6
	thriftDouble, thriftBinary          = 7, 8
	thriftList, thriftSet, thriftMap    = 9, 10, 11
	thriftStruct, thriftUUID            = 12, 13
)

func (w *walk) record(depth int) error {
	if depth > maxNesting {
		return errThrift
	}
	for {
		head, err := w.byte()
		if err != nil || head == 0 {
			return err
		}
		if head>>4 == 0 { // the field's number stands apart
			if _, err := w.varint(); err != nil {
				return err
			}
		}
		if kind := head & 15; kind != thriftTrue && kind != thriftFalse {
			if err := w.value(kind, depth+1); err != nil {
				return err
			}
		}
	}
}

func (w *walk) value(kind byte, depth int) error {
	switch kind {
	case thriftTrue, thriftFalse, thriftByte:
		return w.skip(1)
	case thriftInt16, thriftInt16 + 1, thriftInt64:
		_, err := w.varint()
		return err
	case thriftDouble:
		return w.skip(8)
	case thriftUUID:
		return w.skip(16)
	case thriftBinary:
		n, err := w.varint()
		if err != nil {
			return err
		}
		return w.skip(n)
	case thriftList, thriftSet:
		return w.list(depth)
	case thriftMap:
		return w.pairs(depth)
	case thriftStruct:
		return w.record(depth)
	default:
		return errThrift
	}
}

func (w *walk) list(depth int) error {
	head, err := w.byte()
	if err != nil {
		return err
	}
	n := uint64(head >> 4)
	if n == 15 {
		if n, err = w.varint(); err != nil {
			return err
		}
	}
	return w.repeat(n, depth, head&15)
}

func (w *walk) pairs(depth int) error {
	n, err := w.varint()
	if err != nil || n == 0 {
		return err
	}
	kinds, err := w.byte()
	if err != nil {
		return err
	}
	return w.repeat(n, depth, kinds>>4, kinds&15)
}

// repeat walks over n times values of these kinds.
func (w *walk) repeat(n uint64, depth int, kinds ...byte) error {
	if depth > maxNesting || n > maxElements-uint64(w.elements) {
		return errThrift
	}
	w.elements += int(n)
	for range n {
		for _, kind := range kinds {
			if kind == thriftStruct {
				if w.structs++; w.structs > maxStructs {
					return errThrift
				}
			}
			if err := w.value(kind, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *walk) byte() (byte, error) {
	if w.at >= len(w.b) {
		return 0, errShort
	}
	w.at++
	return w.b[w.at-1], nil
}

func (w *walk) varint() (uint64, error) {
	v, n := binary.Uvarint(w.b[w.at:])
	if n == 0 {
		return 0, errShort
	}
	if n < 0 {
		return 0, errThrift
	}
	w.at += n
	return v, nil
}

func (w *walk) skip(n uint64) error {
	if n > uint64(len(w.b)-w.at) {
		return errShort
	}
	w.at += int(n)
	return nil
}
