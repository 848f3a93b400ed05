package profile

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Bounds of a distribution in text.
const (
	maxDist    = 1 << 20 // lengths
	distLeeway = 1e-3    // of the sum of the probabilities from 1
)

// parseDist reads {tokens: probability, …} as Python prints a dict of int to float: no more of Python than that. An
// empty text and {} are empty. Probabilities of 0 are left out. Errors give the offset, not the text.
func parseDist(text string) ([]LengthProb, error) {
	d := distText{rest: text, size: len(text)}
	d.space()
	if d.rest == "" {
		return nil, nil
	}
	if !d.take('{') {
		return nil, d.fault("want {")
	}
	var out []LengthProb
	for !d.take('}') {
		p, err := d.entry()
		if err != nil {
			return nil, err
		}
		if len(out) == maxDist {
			return nil, fmt.Errorf("more than %d lengths", maxDist)
		}
		out = append(out, p)
		if !d.take(',') {
			if !d.take('}') {
				return nil, d.fault("want , or }")
			}
			break
		}
	}
	if d.rest != "" {
		return nil, d.fault("want the end")
	}
	return checkDist(out)
}

func checkDist(in []LengthProb) ([]LengthProb, error) {
	if len(in) == 0 {
		return nil, nil
	}
	slices.SortFunc(in, func(a, b LengthProb) int { return cmp.Compare(a.Tokens, b.Tokens) })
	sum := 0.0
	for i, p := range in {
		if i > 0 && p.Tokens == in[i-1].Tokens {
			return nil, fmt.Errorf("length %d is there twice", p.Tokens)
		}
		sum += p.Prob
	}
	if math.Abs(sum-1) > distLeeway {
		return nil, fmt.Errorf("probabilities sum up to %g, not 1", sum)
	}
	return slices.DeleteFunc(in, func(p LengthProb) bool { return p.Prob == 0 }), nil
}

// distText is the text that is not read yet.
type distText struct {
	rest string
	size int
}

func (d *distText) fault(what string) error {
	return fmt.Errorf("offset %d: %w", d.size-len(d.rest), errors.New(what))
}

func (d *distText) space() { d.rest = strings.TrimLeft(d.rest, " \t\r\n") }

// take takes c and the space behind it.
func (d *distText) take(c byte) bool {
	if d.rest == "" || d.rest[0] != c {
		return false
	}
	d.rest = d.rest[1:]
	d.space()
	return true
}

// number takes what may be a number, and the space behind it.
func (d *distText) number() string {
	n := 0
	for n < len(d.rest) && strings.IndexByte("0123456789+-.eE", d.rest[n]) >= 0 {
		n++
	}
	word := d.rest[:n]
	d.rest = d.rest[n:]
	d.space()
	return word
}

func (d *distText) entry() (p LengthProb, err error) {
	at := *d
	tokens, err := strconv.ParseUint(d.number(), 10, 31)
	if err != nil {
		return p, at.fault("want a number of tokens below 2^31")
	}
	if !d.take(':') {
		return p, d.fault("want :")
	}
	at = *d
	p.Tokens = int32(tokens)
	if p.Prob, err = strconv.ParseFloat(d.number(), 64); err != nil || !(p.Prob >= 0 && p.Prob <= 1) {
		return p, at.fault("want a probability")
	}
	return p, nil
}
