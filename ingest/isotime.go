package ingest

import (
	"bytes"
	"time"
)

// Layouts of ISO 8601 times as gateways write them; without a zone the time is UTC.
var isoLayouts = []string{
	time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999Z07:00", "2006-01-02 15:04:05.999999999",
}

// isoTime reads an ISO 8601 time.
func isoTime(s []byte) (t time.Time, ok bool) {
	for _, layout := range isoLayouts {
		if t, err := time.Parse(layout, string(s)); err == nil {
			return t.UTC(), true
		}
	}
	return time.Time{}, false
}

// isoResolution tells, in microseconds, how fine a time is written: seconds, milliseconds, or finer.
func isoResolution(s []byte) int64 {
	_, fraction, _ := bytes.Cut(s, []byte{'.'})
	digits := 0
	for digits < len(fraction) && isDigit(fraction[digits]) {
		digits++
	}
	switch {
	case digits == 0:
		return 1_000_000
	case digits <= 3:
		return 1000
	}
	return 1
}

// mixedTime reads an ISO 8601 time or a number of unix seconds.
func mixedTime(s []byte) (t time.Time, ok bool) {
	var n number
	if n.UnmarshalJSON(s) == nil && n.set {
		return secondsToTime(n.v)
	}
	return isoTime(s)
}
