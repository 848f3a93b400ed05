package ingest

import (
	"errors"
	"log/slog"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

// errFault is a record on which our own code broke. It says nothing of the record, and what the runtime or a
// library said is dropped, since it may quote.
var errFault = errors.New("a fault of tailgate's own")

// guard ends a panic: it becomes errFault, and the log tells where it was, never what it said. To be deferred.
func guard(log *slog.Logger, err *error) {
	if recover() == nil {
		return
	}
	*err = errFault
	if log != nil {
		log.Error("a record could not be read for a fault of tailgate's own; it is a dead letter", "reason", DeadFault, "at", faultPlace())
	}
}

// faultPlace names the functions of ours, innermost first, in which a panic arose.
func faultPlace() string {
	var pcs [32]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs[:])])
	var at []string
	for len(at) < 4 {
		f, more := frames.Next()
		if strings.HasPrefix(f.Function, "tailgate/") && !strings.HasSuffix(f.Function, ".guard") {
			at = append(at, strings.TrimPrefix(f.Function, "tailgate/")+" "+filepath.Base(f.File)+":"+strconv.Itoa(f.Line))
		}
		if !more {
			break
		}
	}
	return strings.Join(at, ", ")
}

// guarded makes decoders whose panics are dead letters. One that broke is not used again: it may keep state.
func guarded(make func() decoder, before func(value []byte), log *slog.Logger) decoder {
	d := make()
	once := func(value []byte) (items []item, err error) {
		defer guard(log, &err)
		if before != nil {
			before(value)
		}
		return d(value), nil
	}
	return func(value []byte) []item {
		items, err := once(value)
		if err != nil {
			d = make()
			return []item{{dead: DeadFault, raw: value}}
		}
		return items
	}
}
