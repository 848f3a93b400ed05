// Package fault marks errors with what they mean to the person at the keyboard: the kind decides the exit
// code, the hint is the next step. Marks survive wrapping with %w.
package fault

import "errors"

// Kind says what sort of trouble an error is.
type Kind int

// Kinds. The zero value is a failure while running.
const (
	Failure Kind = iota // unreadable input, store, disk, source stalled
	Usage               // flags, configuration, plan, gate file
	Data                // gap, reset, corruption, broken rows in a data file
	Key                 // key missing or unsafe, privacy audit failed
)

type marked struct {
	error
	kind Kind
	hint string
}

func (m *marked) Unwrap() error { return m.error }

// Mark gives err a kind and, where hint is not "", a next step. A nil err stays nil.
func Mark(err error, kind Kind, hint string) error {
	if err == nil {
		return nil
	}
	return &marked{error: err, kind: kind, hint: hint}
}

// Of returns the outermost kind in err's tree, Failure when there is none.
func Of(err error) Kind {
	var m *marked
	if errors.As(err, &m) {
		return m.kind
	}
	return Failure
}

// Hint returns the outermost hint in err's tree, of joined errors the first one's, or "".
func Hint(err error) string {
	if m, ok := err.(*marked); ok && m.hint != "" { //nolint:errorlint // the tree is walked here, as errors.As does
		return m.hint
	}
	switch e := err.(type) { //nolint:errorlint // as above
	case interface{ Unwrap() error }:
		return Hint(e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			if hint := Hint(one); hint != "" {
				return hint
			}
		}
	}
	return ""
}
