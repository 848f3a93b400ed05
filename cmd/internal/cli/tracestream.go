package cli

import (
	"context"
	"errors"
	"fmt"

	"tailgate/internal/fault"
	"tailgate/trace"
)

// scan opens a trace to be read row by row, and prints its notes. The caller closes it.
func (a *app) scan(ctx context.Context, path string, o trace.Options) (*trace.Stream, error) {
	var s *trace.Stream
	var err error
	if path == "-" {
		s, err = trace.ScanReader(ctx, a.stdin, "stdin", o)
	} else {
		s, err = trace.Scan(ctx, path, o)
	}
	if err != nil {
		return nil, err
	}
	for _, n := range s.Notes {
		a.note("%s: %s", s.Meta.Name, n)
	}
	return s, nil
}

// checked refuses a trace of which a row breaks a rule.
func checked(ctx context.Context, s *trace.Stream) error {
	const shown = 10
	var errs []error
	n, err := s.Check(ctx, func(f trace.Fault) error {
		if len(errs) < shown {
			errs = append(errs, errors.New(f.String()))
		}
		return nil
	})
	if err != nil || n == 0 {
		return err
	}
	return brokenRows(s.Meta.Name, errs, n)
}

// brokenRows is one error that lists the first of n broken rows.
func brokenRows(name string, first []error, n int64) error {
	if more := n - int64(len(first)); more > 0 {
		first = append(first, fmt.Errorf("%s: and %d more", name, more))
	}
	return fault.Mark(errors.Join(first...), fault.Data,
		fmt.Sprintf("%d broken rows; `tailgate trace check` lists all of them", n))
}

// writeStream writes s to path, or to stdout for "-", and says what the format does not hold and how other tools play
// the file.
func (a *app) writeStream(ctx context.Context, s *trace.Stream, path, format, tool string) error {
	var err error
	if path == "-" {
		err = s.Write(ctx, a.stdout, format)
	} else {
		err = s.WriteFile(ctx, path, format, tool)
	}
	if err != nil {
		return err
	}
	said, err := s.Losses(ctx, format)
	if err != nil {
		return err
	}
	a.note("%s: %d rows, %s", path, s.Len(), format)
	for _, l := range said {
		a.note("%s: %s", path, l)
	}
	for _, l := range s.Flags(format, path) {
		a.note("play it with: %s", l)
	}
	return nil
}
