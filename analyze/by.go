package analyze

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"tailgate/internal/fault"
)

// A Part is one key of a By: a label, a number cut at Edges in half-open ranges, the last one open, or the time since
// the schedule's zero in slices of Every.
type Part struct {
	Key   string
	Edges []int64       // ascending; empty for labels and times
	Every time.Duration // whole seconds; 0 for labels and numbers
}

// By cuts the rows in buckets: one bucket per value of its part, or per combination of values of several.
type By struct {
	Parts []Part
}

// labelKeys and numberKeys are the keys of --by and of gate buckets. session_size counts the requests of the
// row's session.
var (
	labelKeys  = []string{"tenant", "class", "model", "target", "bucket"}
	numberKeys = []string{"input_length", "output_length", "session_size"}
)

// timeKey names slices of time, in seconds since the schedule's zero. It is written "time" in --by.
const timeKey = "time_s"

// mostSlices bounds the slices of one --by time.
const mostSlices = 10_000

// ParseBy reads NAME for a label, NAME=0,1024,8192 for ranges of a number, time=5m for slices of time, and crossings
// of them joined by "*", for example "class*input_length=0,1024". All faults are listed, as one of kind Usage.
func ParseBy(s string) (By, error) {
	var by By
	var errs []error
	for text := range strings.SplitSeq(s, "*") {
		part, err := parsePart(strings.TrimSpace(text))
		if err != nil {
			errs = append(errs, fmt.Errorf("parsing --by %q: %w", s, err))
		}
		if slices.ContainsFunc(by.Parts, func(p Part) bool { return p.Key == part.Key }) && err == nil {
			errs = append(errs, fmt.Errorf("parsing --by %q: %s stands twice", s, part.Key))
		}
		by.Parts = append(by.Parts, part)
	}
	if len(errs) > 0 {
		return By{}, fault.Mark(errors.Join(errs...), fault.Usage, "")
	}
	return by, nil
}

func parsePart(s string) (Part, error) {
	name, list, cut := strings.Cut(s, "=")
	p := Part{Key: strings.ReplaceAll(name, "-", "_")}
	switch {
	case p.Key == "time" || p.Key == timeKey:
		p.Key = timeKey
		var err error
		if p.Every, err = time.ParseDuration(strings.TrimSpace(list)); err != nil || p.Every < time.Second || p.Every%time.Second != 0 {
			return p, fmt.Errorf("time needs a length in whole seconds, for example time=5m")
		}
		return p, nil
	case slices.Contains(labelKeys, p.Key):
		if cut {
			return p, fmt.Errorf("%s is a label and takes no edges", name)
		}
		return p, nil
	case !slices.Contains(numberKeys, p.Key):
		return p, fmt.Errorf("unknown key %q, use %s, %s with edges, or time=5m", name, strings.Join(labelKeys, ", "), strings.Join(numberKeys, ", "))
	case !cut:
		return p, fmt.Errorf("%s needs edges, for example %s=0,1024,8192", name, name)
	}
	for text := range strings.SplitSeq(list, ",") {
		edge, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
		if err != nil || edge < 0 || edge > math.MaxInt32 {
			return p, fmt.Errorf("edge %q of %s is not a whole number >= 0", text, name)
		}
		if n := len(p.Edges); n > 0 && edge <= p.Edges[n-1] {
			return p, fmt.Errorf("edges of %s must ascend: %d after %d", name, edge, p.Edges[n-1])
		}
		p.Edges = append(p.Edges, edge)
	}
	return p, nil
}

// String is the text that ParseBy reads.
func (b By) String() string {
	parts := make([]string, len(b.Parts))
	for i, p := range b.Parts {
		parts[i] = p.Key
		if p.Every > 0 {
			parts[i] = "time=" + spanText(int64(p.Every/time.Second))
		} else if len(p.Edges) > 0 {
			edges := make([]string, len(p.Edges))
			for j, e := range p.Edges {
				edges[j] = strconv.FormatInt(e, 10)
			}
			parts[i] += "=" + strings.Join(edges, ",")
		}
	}
	return strings.Join(parts, "*")
}

// spanText writes seconds as people do: 90 is 1m30s, 300 is 5m, 0 is 0s.
func spanText(seconds int64) string {
	s := (time.Duration(seconds) * time.Second).String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// KeyValue is one key of a bucket with its value: a label, a range [Lo, Hi) with null for an open end, or
// unknown when all three are null.
type KeyValue struct {
	Key    string
	Text   *string
	Lo, Hi *int64
}

// Tuple names a bucket; the empty tuple is the whole run.
type Tuple []KeyValue

// String names the bucket for people, for example "class chat, input_length [0, 1024)".
func (t Tuple) String() string {
	if len(t) == 0 {
		return "all requests"
	}
	parts := make([]string, len(t))
	for i, v := range t {
		switch {
		case v.Text != nil:
			parts[i] = v.Key + " " + *v.Text
		case v.Lo == nil && v.Hi == nil:
			parts[i] = v.Key + " unknown"
		case v.Key == timeKey && v.Lo != nil && v.Hi != nil:
			parts[i] = fmt.Sprintf("time [%s, %s)", spanText(*v.Lo), spanText(*v.Hi))
		case v.Hi == nil:
			parts[i] = fmt.Sprintf("%s >= %d", v.Key, *v.Lo)
		case v.Lo == nil:
			parts[i] = fmt.Sprintf("%s < %d", v.Key, *v.Hi)
		default:
			parts[i] = fmt.Sprintf("%s [%d, %d)", v.Key, *v.Lo, *v.Hi)
		}
	}
	return strings.Join(parts, ", ")
}

// key reads one key of a row.
type key struct {
	words  *words
	number func(i int32) int64 // noTime when unknown
}

// key looks a name of labelKeys or numberKeys up.
func (d *Data) key(name string) key {
	if w, ok := d.labels()[name]; ok {
		return key{words: w}
	}
	switch name {
	case timeKey:
		clocks, zeros := d.clocks()
		return key{number: func(i int32) int64 {
			return (d.scheduled.at(i) - zeros[clocks[d.input.at(i)]]) / 1e6
		}}
	case "output_length":
		return key{number: func(i int32) int64 { return orNull(d.outputLength.at(i)) }}
	case "session_size":
		sizes := make([]int64, len(d.session.dict.Words))
		for i := range int32(d.n) {
			if s := d.session.at(i); s >= 0 {
				sizes[s]++
			}
		}
		return key{number: func(i int32) int64 {
			if s := d.session.at(i); s >= 0 {
				return sizes[s]
			}
			return noTime
		}}
	}
	return key{number: func(i int32) int64 { return orNull(d.length(i)) }}
}

func orNull(n int32) int64 {
	if n == noCount {
		return noTime
	}
	return int64(n)
}

// match says whether row i lies in the bucket value.
func (k key) match(i int32, v KeyValue) bool {
	if k.words != nil {
		word, ok := k.words.word(i)
		return ok && v.Text != nil && word == *v.Text
	}
	n := k.number(i)
	return n != noTime && (v.Lo == nil || n >= *v.Lo) && (v.Hi == nil || n < *v.Hi)
}
