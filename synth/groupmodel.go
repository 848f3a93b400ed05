package synth

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"tailgate/internal/fault"
	"tailgate/internal/rng"
	"tailgate/profile"
)

// groupModel makes the requests of one tenant × class.
type groupModel struct {
	number        int
	tables        *groupTables // empty without a profile
	tenant, class *string
	rate          float64 // requests per second, before any scale
	lengths       *lengthModel
	sessions      *sessionModel
	own           *sessionModel // as the profile has them, whatever the options say
	prefix        *prefixModel
	turns         float64 // mean turns of a session as it is drawn
	plan          plan    // of profile arrivals
	curve         *curve  // of session starts over the profile's window
	shared        shared  // of the rate, with other groups
	inputs        LengthSpec
	seed          uint64
}

// model is everything that the options and the profile say, before time runs.
type model struct {
	o      *ModelOptions
	p      *profile.Profile
	clock  clock
	groups []*groupModel
	block  int
	named  *string // model of all rows
	notes  []string
	blocks *blockIDs
}

func (m *model) note(format string, args ...any) {
	m.notes = append(m.notes, fmt.Sprintf(format, args...))
}

func newModel(ctx context.Context, p *profile.Profile, o *ModelOptions) (*model, error) {
	m := &model{o: o, p: p, blocks: &blockIDs{roots: map[rootKey][]int64{}}}
	if p == nil {
		return m, m.fromOptions()
	}
	if len(p.Meta) == 0 || len(p.Rate) == 0 {
		return nil, fault.Mark(errors.New("the profile has no request"), fault.Usage, "")
	}
	meta := &p.Meta[0]
	m.block = int(meta.BlockSize)
	if meta.Model != "" && meta.Model != profile.All {
		m.named = &meta.Model
	}
	groups, total := groupsOf(p)
	first := p.Rate[0].BinStartUs
	for i := range p.Rate {
		first = min(first, p.Rate[i].BinStartUs)
	}
	m.clock = newClock(meta, first)
	if !(m.clock.length > 0) {
		return nil, fault.Mark(errors.New("the profile is of one instant"), fault.Usage, "")
	}
	m.wantBlocks()
	if err := m.fromGroups(ctx, groups, total); err != nil {
		return nil, err
	}
	if err := m.mix(); err != nil {
		return nil, err
	}
	if m.kind() == ArrivalsProfile {
		if total != nil {
			m.share(total)
		}
		return m, m.choosePlans(ctx)
	}
	return m, nil
}

// kind is the kind of arrivals.
func (m *model) kind() string {
	switch {
	case m.o.Arrivals != "":
		return m.o.Arrivals
	case m.p != nil:
		return ArrivalsProfile
	}
	return Poisson
}

// fresh is the model for another run: what a run changes is its own.
func (m *model) fresh() *model {
	out := *m
	out.blocks = &blockIDs{roots: map[rootKey][]int64{}}
	out.groups = make([]*groupModel, len(m.groups))
	for i, g := range m.groups {
		group, prefix, lengths := *g, *g.prefix, *g.lengths
		prefix.blocks, lengths.pickers = out.blocks, pickerCache{}
		group.prefix, group.lengths = &prefix, &lengths
		out.groups[i] = &group
	}
	return &out
}

// wantBlocks settles the block size.
func (m *model) wantBlocks() {
	if m.o.BlockSize > 0 && m.block > 0 && m.o.BlockSize != m.block {
		m.note("blocks of %d tokens instead of the profile's %d: shared prefixes keep their number of tokens", m.o.BlockSize, m.block)
	}
	if m.o.BlockSize > 0 {
		m.block = m.o.BlockSize
	}
	if m.block == 0 && (m.o.PrefixShare != nil || m.o.Turns != nil) {
		m.block = defaultBlock
	}
}

const defaultBlock = 512

func (m *model) fromGroups(ctx context.Context, groups []*groupTables, total *groupTables) error {
	models, lost := make([]*groupModel, len(groups)), make([][]string, len(groups))
	independent := 0 // groups
	for i, g := range groups {
		gm := &groupModel{number: i, tables: g, tenant: label(g.tenant), class: label(g.class), inputs: m.o.Input, seed: rng.Hash(m.o.Seed, uint64(i))}
		gm.rate = float64(g.requests()) / m.clock.length
		if gm.lengths = m.lengthsOf(g, total); gm.lengths == nil {
			return fault.Mark(fmt.Errorf("the profile tells no lengths of %s", gm), fault.Usage, "give --input-lengths and --output-lengths")
		}
		gm.sessions, gm.own = newSessionModel(g, m.o), newSessionModel(g, &ModelOptions{})
		if lack := gm.sessions.needs(); lack != "" {
			return fault.Mark(fmt.Errorf("sessions of several turns need %s, which the profile does not tell of %s", lack, gm), fault.Usage, "give --turns, --think-time and --growth together")
		}
		gm.lengths.flat = m.shaped()
		gm.prefix = newPrefixModel(gm.number, g, m.block, m.o, m.blocks)
		m.rescaleRoots(gm)
		independent += int(b2i(len(g.joint) == 0))
		models[i] = gm
	}
	if err := overGroups(ctx, models, func(i int, gm *groupModel) { lost[i] = m.fit(gm) }); err != nil {
		return err
	}
	var missing []string
	for i, gm := range models {
		missing = append(missing, lost[i]...)
		if gm.turns > 0 {
			m.groups = append(m.groups, gm)
		}
	}
	if len(missing) > 5 {
		missing = append(missing[:5], fmt.Sprintf("and %d more", len(missing)-5))
	}
	if len(m.groups) == 0 {
		return fault.Mark(fmt.Errorf("no request of the profile has such lengths: %s", strings.Join(missing, "; ")), fault.Usage, "")
	}
	m.notes = append(m.notes, missing...)
	if independent > 0 {
		m.note("inputs and outputs of %d of %d groups are independent of each other: the profile does not tell how they depend", independent, len(models))
	}
	return nil
}

// lengthsOf are the lengths of a group, or of all where it tells none, or those of the options; nil for none.
func (m *model) lengthsOf(g, total *groupTables) *lengthModel {
	l := newLengthModel(m.clock, g)
	if l == nil && total != nil {
		l = newLengthModel(m.clock, total)
	}
	if l == nil && m.o.Input != nil && m.o.Output != nil {
		l = specModel(m.o.Input, m.o.Output)
	}
	return l
}

// fit settles what takes time. It returns the wanted lengths that the group has no requests of; a group without any
// keeps 0 turns.
func (m *model) fit(g *groupModel) (lost []string) {
	g.lengths.drift = newDrift(g.lengths, g.tables.rate, g.sessions.turns.tail(1) > 0)
	g.sessions.fitFirstTurns(g.lengths, g.prefix, m.wantedHits(g.tables), g.seed)
	missing, ok := g.lengths.restrict(m.o.Input, m.o.Output)
	if ok {
		g.turns = g.meanTurns()
	}
	for _, l := range missing {
		lost = append(lost, fmt.Sprintf("%s has no requests of %s", g, l))
	}
	return lost
}

// overGroups does the work of every group, on all cores: none needs another's.
func overGroups(ctx context.Context, groups []*groupModel, work func(i int, g *groupModel)) error {
	all, ctx := errgroup.WithContext(ctx)
	all.SetLimit(runtime.GOMAXPROCS(0))
	for i, g := range groups {
		all.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			work(i, g)
			return nil
		})
	}
	return all.Wait()
}

// shaped tells that the rate does not follow the profile's window: then lengths do not either, and are those of the
// whole.
func (m *model) shaped() bool {
	return m.o.Arrivals != "" && m.o.Arrivals != ArrivalsProfile || m.o.RateSeries != nil || m.o.RateEnd > 0
}

// rescaleRoots keeps the tokens of shared prefixes when blocks have another size.
func (m *model) rescaleRoots(g *groupModel) {
	was := int(m.p.Meta[0].BlockSize)
	if was == 0 || was == m.block {
		return
	}
	for i := range g.prefix.roots {
		r := &g.prefix.roots[i]
		r.depth = r.depth * was / m.block
	}
}

// wantedHits is the block hit ratio of the profile where the options leave sessions and prefixes as they are, else −1.
func (m *model) wantedHits(g *groupTables) float64 {
	if h, ok := hitOf(g.hits); ok && m.o.PrefixShare == nil && m.o.Turns == nil && m.o.Growth == nil && m.block == int(m.p.Meta[0].BlockSize) {
		return h
	}
	return -1
}

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
		return fault.Mark(errors.Join(errs...), fault.Usage, "without a profile give --input-length, --output-length, --request-rate and --duration")
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

// String names the group.
func (g *groupModel) String() string {
	var parts []string
	if g.tenant != nil {
		parts = append(parts, "tenant "+*g.tenant)
	}
	if g.class != nil {
		parts = append(parts, "class "+*g.class)
	}
	if parts == nil {
		return "all requests"
	}
	return strings.Join(parts, " × ")
}

const turnSamples = 20_000

// meanTurns is the mean number of turns that are sent: those of the sessions, or fewer where a session ends because its
// next prompt would leave the wanted lengths.
func (g *groupModel) meanTurns() float64 {
	mean := g.sessions.turns.mean()
	if g.inputs == nil || mean == 1 {
		return mean
	}
	r := rng.New(g.seed, "synth", "mean turns")
	p := newPicker(g.lengths.all, nil, false)
	n := 0
	for range turnSamples {
		turns := g.sessions.turns.draw(r)
		of := firstOfMany
		if turns == 1 {
			of = singleTurn
		}
		in, out := p.draw(r, of)
		n++
		for range turns - 1 {
			next, ok := g.nextTurn(p, in, out, r)
			if !ok {
				break
			}
			in, out = next[0], next[1]
			n++
		}
	}
	return float64(n) / turnSamples
}

// nextTurn draws the lengths of a later turn; ok is false when its prompt would leave the wanted lengths.
func (g *groupModel) nextTurn(p *picker, in, out int32, r *rand.Rand) (next [2]int32, ok bool) {
	next[0] = g.sessions.nextInput(in, out, g.lengths.maxIn, r)
	if g.inputs != nil && !g.inputs.holds(next[0]) {
		return next, false
	}
	next[1] = p.outputFor(next[0], r)
	return next, true
}

// holds tells that a length lies in a bucket with a share.
func (s LengthSpec) holds(v int32) bool {
	return slices.ContainsFunc(s, func(b LengthBucket) bool { return v >= b.Lo && v < b.Hi && b.Share > 0 })
}
