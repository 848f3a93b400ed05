package synth

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"tailgate/internal/fault"
	"tailgate/internal/rng"
)

// fromOptions makes groups without a profile: one, or one per class of the mix.
func (m *model) fromOptions() error {
	var errs []error
	if m.o.Input == nil {
		errs = append(errs, errors.New("input lengths are missing"))
	}
	if m.o.Output == nil {
		errs = append(errs, errors.New("output lengths are missing"))
	}
	for _, s := range []LengthSpec{m.o.Input, m.o.Output} {
		for _, b := range s {
			if b.Hi == openEnd && b.Share > 0 {
				errs = append(errs, fmt.Errorf("lengths %s need an upper end without a profile", b))
			}
		}
	}
	if m.o.RequestRate == 0 && m.o.RateSeries == nil {
		errs = append(errs, errors.New("a request rate or a rate series is missing"))
	}
	if m.o.Scale > 0 {
		errs = append(errs, errors.New("a scale needs a profile"))
	}
	if m.o.Arrivals == ArrivalsProfile {
		errs = append(errs, fmt.Errorf("%s arrivals need a profile", ArrivalsProfile))
	}
	if m.o.Turns == nil && (m.o.ThinkTime != nil || m.o.Growth != nil) {
		errs = append(errs, errors.New("think times and growth need turns without a profile"))
	}
	if m.o.Duration == 0 && m.o.Requests == 0 && m.o.RateSeries == nil {
		errs = append(errs, errors.New("a duration or a number of requests is missing"))
	}
	empty := &groupTables{}
	sessions := newSessionModel(empty, m.o)
	if lack := sessions.needs(); lack != "" {
		errs = append(errs, fmt.Errorf("sessions of several turns need %s", lack))
	}
	if errs != nil {
		return fault.Mark(errors.Join(errs...), fault.Usage, "without a profile give --input-length, --output-length, --request-rate and --duration; with --turns also --think-time and --growth")
	}
	m.wantBlocks()
	classes := slices.Sorted(maps.Keys(m.o.ClassMix))
	if classes == nil {
		classes = []string{""}
	}
	for _, class := range classes {
		g := &groupModel{number: len(m.groups), tables: empty, class: label(class), rate: 1, inputs: m.o.Input, sessions: sessions, seed: rng.Hash(m.o.Seed, uint64(len(m.groups)))}
		if m.o.ClassMix != nil {
			if g.rate = m.o.ClassMix[class]; g.rate == 0 {
				continue
			}
		}
		g.lengths = specModel(m.o.Input, m.o.Output)
		if sessions.turns.tail(1) > 0 {
			g.lengths.maxIn = schemaMaxTokens
			g.inputs = nil // the buckets are those of first turns
		}
		g.prefix = newPrefixModel(g.number, empty, m.block, m.o, m.blocks)
		g.turns = g.meanTurns()
		m.groups = append(m.groups, g)
	}
	return nil
}

// schemaMaxTokens bounds prompts that grow without a profile.
const schemaMaxTokens = 1 << 24

// mix gives the classes their shares of the requests.
func (m *model) mix() error {
	if m.o.ClassMix == nil {
		return nil
	}
	have := map[string]float64{}
	for _, g := range m.groups {
		if g.class != nil {
			have[*g.class] += g.rate
		}
	}
	var errs []error
	sum, total := 0.0, 0.0
	for _, class := range slices.Sorted(maps.Keys(m.o.ClassMix)) {
		if have[class] == 0 {
			errs = append(errs, fmt.Errorf("the profile has no requests of class %q", class))
		}
		sum += m.o.ClassMix[class]
	}
	if errs != nil {
		hint := "classes there are: " + strings.Join(slices.Sorted(maps.Keys(have)), ", ")
		if len(have) == 0 {
			hint = "the profile has no classes: make it with --per-group of a trace that has them"
		}
		return fault.Mark(errors.Join(errs...), fault.Usage, hint)
	}
	for _, g := range m.groups {
		total += g.rate
	}
	kept := m.groups[:0]
	for _, g := range m.groups {
		if g.class != nil && m.o.ClassMix[*g.class] > 0 {
			g.rate *= m.o.ClassMix[*g.class] / sum * total / have[*g.class]
			kept = append(kept, g)
		}
	}
	m.groups = kept
	return nil
}
