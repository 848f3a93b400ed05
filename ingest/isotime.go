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
	if t, ok := plainISO(s); ok {
		return t, true
	}
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

// plainISO reads the usual spelling, 2006-01-02T15:04:05 with up to nine digits of a fraction and Z or nothing;
// false for every other one, and for the last days of a month, which some do not have.
func plainISO(s []byte) (t time.Time, ok bool) {
	const plain = len("2006-01-02T15:04:05")
	if len(s) < plain || s[4] != '-' || s[7] != '-' || s[10] != 'T' || s[13] != ':' || s[16] != ':' {
		return t, false
	}
	year, ok1 := twoDigits(s[0:2])
	years, ok2 := twoDigits(s[2:4])
	month, ok3 := twoDigits(s[5:7])
	day, ok4 := twoDigits(s[8:10])
	hour, ok5 := twoDigits(s[11:13])
	minute, ok6 := twoDigits(s[14:16])
	second, ok7 := twoDigits(s[17:19])
	digits := ok1 && ok2 && ok3 && ok4 && ok5 && ok6 && ok7
	if !digits || month < 1 || month > 12 || day < 1 || day > 28 || hour > 23 || minute > 59 || second > 59 {
		return t, false
	}
	nanos, rest := 0, bytes.TrimSuffix(s[plain:], []byte{'Z'})
	if len(rest) > 0 {
		if rest[0] != '.' || len(rest) < 2 || len(rest) > 10 {
			return t, false
		}
		for i := 1; i < 10; i++ {
			nanos *= 10
			if i >= len(rest) {
				continue
			}
			if !isDigit(rest[i]) {
				return t, false
			}
			nanos += int(rest[i] - '0')
		}
	}
	return time.Date(year*100+years, time.Month(month), day, hour, minute, second, nanos, time.UTC), true
}

func twoDigits(s []byte) (n int, ok bool) {
	return int(s[0]-'0')*10 + int(s[1]-'0'), isDigit(s[0]) && isDigit(s[1])
}
