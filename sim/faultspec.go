package sim

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"tailgate/internal/fault"
	"tailgate/internal/percent"
)

// FaultDoc describes one kind of fault for help texts.
type FaultDoc struct{ Kind, Value, Doc string }

// FaultDocs lists every kind of fault with the form of its value, as ParseFault and the keys of a spec read it.
func FaultDocs() []FaultDoc {
	return []FaultDoc{
		{FaultKill, "REPLICA@FROM[+FOR]", "the replica dies at FROM with all that it serves; back and empty after FOR"},
		{FaultSlow, "REPLICA:FACTOR[@FROM[+FOR]]", "steps of this replica take FACTOR times as long"},
		{FaultHTTP503, "SHARE[@FROM[+FOR]]", "answered 503 at once"},
		{FaultHTTP429, "SHARE[@FROM[+FOR]]", "answered 429 at once"},
		{FaultReset, "SHARE[@FROM[+FOR]]", "connection reset at once"},
		{FaultErrorEvent, "SHARE[@FROM[+FOR]]", "stream ends in an error object inside the 200 answer"},
		{FaultCut, "SHARE[@FROM[+FOR]]", "connection cut before the last token"},
		{FaultEmpty, "SHARE[@FROM[+FOR]]", "a complete answer without a token"},
		{FaultRoleFirst, "SHARE[@FROM[+FOR]]", "an event with the role alone at once, before the first token (HTTP)"},
		{FaultChunk, "SHARE[:TOKENS][@FROM[+FOR]]", "TOKENS (4) tokens in each event"},
		{FaultReasoning, "SHARE[:PART][@FROM[+FOR]]", "the first PART (50%) of the tokens are reasoning"},
		{FaultLateUsage, "SHARE[:DELAY][@FROM[+FOR]]", "usage and end of a stream DELAY (500ms) after the last token"},
		{FaultKeepAlive, "SHARE[:EVERY][@FROM[+FOR]]", "a comment every EVERY (1s) while there is no event (HTTP)"},
	}
}

func faultDoc(kind string) (FaultDoc, bool) {
	docs := FaultDocs()
	i := slices.IndexFunc(docs, func(d FaultDoc) bool { return d.Kind == kind })
	if i < 0 {
		return FaultDoc{}, false
	}
	return docs[i], true
}

// ParseFault reads KIND:VALUE, such as kill:1@120s,for=60s, slow:0:2.5 or cut:1%@5m+30s; ",for=D" and "+D" mean
// the same. The error is wrong usage.
func ParseFault(s string) (Fault, error) {
	kind, value, ok := strings.Cut(s, ":")
	if !ok || value == "" {
		return Fault{}, faultError(s, errors.New("it is not KIND:VALUE, such as kill:1@120s,for=60s"))
	}
	if _, known := faultDoc(kind); !known {
		var kinds []string
		for _, d := range FaultDocs() {
			kinds = append(kinds, d.Kind)
		}
		return Fault{}, faultError(s, fmt.Errorf("unknown kind %q; there are %s", kind, strings.Join(kinds, ", ")))
	}
	if head, length, found := strings.Cut(value, ",for="); found {
		if strings.Contains(head, "+") {
			return Fault{}, faultError(s, errors.New("its length is given twice"))
		}
		if !strings.Contains(head, "@") {
			head += "@0s"
		}
		value = head + "+" + length
	}
	f, err := parseFaultValue(kind, value)
	if err != nil {
		return Fault{}, faultError(s, err)
	}
	return f, nil
}

func faultError(s string, err error) error {
	return fault.Mark(fmt.Errorf("reading fault %q: %w", s, err), fault.Usage, "")
}

// parseFaultValue reads the value of a kind that exists.
func parseFaultValue(kind, value string) (Fault, error) {
	f := Fault{Kind: kind}
	doc, _ := faultDoc(kind)
	bad := func(what string) (Fault, error) { return Fault{}, fmt.Errorf("%s; the form is %s", what, doc.Value) }
	head, window, windowed := strings.Cut(value, "@")
	if windowed {
		from, length, bounded := strings.Cut(window, "+")
		var err error
		if f.From, err = time.ParseDuration(from); err != nil || f.From < 0 {
			return bad(fmt.Sprintf("%q is no time such as 120s", from))
		}
		if bounded {
			if f.For, err = time.ParseDuration(length); err != nil || f.For <= 0 {
				return bad(fmt.Sprintf("%q is no duration above 0 such as 60s", length))
			}
		}
	}
	first, second, two := strings.Cut(head, ":")
	if err := f.setFirst(first, windowed); err != nil {
		return bad(err.Error())
	}
	if err := f.setSecond(second, two); err != nil {
		return bad(err.Error())
	}
	return f, nil
}

// setFirst reads the replica or the share.
func (f *Fault) setFirst(s string, windowed bool) (err error) {
	switch f.Kind {
	case FaultKill, FaultSlow:
		if f.Replica, err = wholeNumber(s); err != nil {
			return fmt.Errorf("replica %q is not a whole number", s)
		}
		if f.Kind == FaultKill && !windowed {
			return errors.New("a kill needs its time")
		}
	default:
		if f.Share, err = percent.Parse(s); err != nil {
			return fmt.Errorf("share %q is not a number such as 0.01 or 1%%", s)
		}
	}
	return nil
}

// setSecond reads what stands behind the colon, or takes its default.
func (f *Fault) setSecond(s string, given bool) (err error) {
	switch f.Kind {
	case FaultSlow:
		if f.Factor, err = number(s); err != nil {
			return fmt.Errorf("factor %q is not a number", s)
		}
	case FaultChunk:
		if f.Tokens = 4; given {
			if f.Tokens, err = wholeNumber(s); err != nil {
				return fmt.Errorf("tokens %q are not a whole number", s)
			}
		}
	case FaultReasoning:
		if f.Part = .5; given {
			if f.Part, err = percent.Parse(s); err != nil {
				return fmt.Errorf("part %q is not a number such as 0.5 or 50%%", s)
			}
		}
	case FaultLateUsage, FaultKeepAlive:
		f.Delay = time.Second
		if f.Kind == FaultLateUsage {
			f.Delay = 500 * time.Millisecond
		}
		if given {
			if f.Delay, err = time.ParseDuration(s); err != nil {
				return fmt.Errorf("%q is no duration such as 500ms", s)
			}
		}
	default:
		if given {
			return fmt.Errorf("%q is too much", s)
		}
	}
	return nil
}

// value writes what parseFaultValue reads back as f.
func (f *Fault) value() string {
	float := func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
	var s string
	switch f.Kind {
	case FaultKill:
		s = strconv.Itoa(f.Replica)
	case FaultSlow:
		s = strconv.Itoa(f.Replica) + ":" + float(f.Factor)
	case FaultChunk:
		s = float(f.Share) + ":" + strconv.Itoa(f.Tokens)
	case FaultReasoning:
		s = float(f.Share) + ":" + float(f.Part)
	case FaultLateUsage, FaultKeepAlive:
		s = float(f.Share) + ":" + f.Delay.String()
	default:
		s = float(f.Share)
	}
	if f.From > 0 || f.For > 0 || f.Kind == FaultKill {
		s += "@" + f.From.String()
	}
	if f.For > 0 {
		s += "+" + f.For.String()
	}
	return s
}

// String returns what ParseFault reads back as f.
func (f Fault) String() string { return f.Kind + ":" + f.value() }

// check reports every fault in f itself.
func (f *Fault) check(replicas int) []error {
	var errs []error
	bad := func(is bool, format string, a ...any) {
		if is {
			errs = append(errs, fmt.Errorf(f.Kind+" "+format, a...))
		}
	}
	_, known := faultDoc(f.Kind)
	bad(!known, "is no kind of fault")
	bad(f.From < 0 || f.For < 0 || f.From > maxTime || f.For > maxTime, "time %v for %v is negative or over %v", f.From, f.For, maxTime)
	switch f.Kind {
	case FaultKill, FaultSlow:
		bad(f.Replica < 0 || f.Replica >= replicas, "names replica %d of %d (they count from 0)", f.Replica, replicas)
	default:
		bad(!(f.Share >= 0 && f.Share <= 1), "must be a share from 0 to 1, not %v", f.Share)
	}
	bad(f.Kind == FaultSlow && !(f.Factor > 0 && f.Factor <= 1e3), "factor must be above 0 and at most 1000, not %v", f.Factor)
	bad(f.Kind == FaultChunk && (f.Tokens < 2 || f.Tokens > maxTokens), "tokens of an event must be 2 to %d, not %d", maxTokens, f.Tokens)
	bad(f.Kind == FaultReasoning && !(f.Part >= 0 && f.Part <= 1), "part must be from 0 to 1, not %v", f.Part)
	timed := f.Kind == FaultLateUsage || f.Kind == FaultKeepAlive
	bad(timed && (f.Delay < time.Millisecond || f.Delay > maxTime), "duration must be 1ms to %v, not %v", maxTime, f.Delay)
	return errs
}

// maxTime bounds every time of a fault.
const maxTime = 365 * 24 * time.Hour

// checkFaults reports every fault in a list, shares of failures that add up to more than 1 and kills of one
// replica that overlap included.
func checkFaults(faults []Fault, replicas int) []error {
	var errs []error
	for i := range faults {
		f := &faults[i]
		errs = append(errs, f.check(replicas)...)
		// A rounding error of the sum is not a fault of the user.
		if sum := failureShare(faults, int64(f.From)); sum > 1+1e-9 {
			errs = append(errs, fmt.Errorf("%s: the shares of failures at %v add up to %v, more than 1", f.Kind, f.From, sum))
		}
		for j := range faults[:i] {
			g := &faults[j]
			if f.Kind == FaultKill && g.Kind == FaultKill && f.Replica == g.Replica && f.overlaps(g) {
				errs = append(errs, fmt.Errorf("kill: replica %d is killed while it is dead", f.Replica))
			}
		}
	}
	return errs
}

// failureShare is the share of requests that arrive at the time t in ns and meet a failure.
func failureShare(faults []Fault, t int64) float64 {
	sum := 0.0
	for i := range faults {
		for _, s := range failures {
			if s.kind == faults[i].Kind && faults[i].on(t) {
				sum += faults[i].Share
			}
		}
	}
	return sum
}

// overlaps tells whether there is a time at which both are on, or no time between them.
func (f *Fault) overlaps(g *Fault) bool {
	ends := func(x *Fault) time.Duration {
		if x.For == 0 {
			return 2 * maxTime
		}
		return x.From + x.For
	}
	return f.From <= ends(g) && g.From <= ends(f)
}
