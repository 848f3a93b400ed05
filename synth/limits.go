package synth

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"tailgate/schemas"
)

// Below these sizes a sample of sessions is too small for the laws of tokens, shape, dispersion and hits: they
// are measured and not judged.
const (
	judgedScale    = 0.25
	judgedSessions = 2_000
	judgedUs       = 600_000_000
)

func (m *measure) small() bool {
	return !m.warped() && (m.scale < judgedScale || m.f.sessions() < judgedSessions || m.f.lengthUs < judgedUs)
}

func (m *measure) unlessSmall(v schemas.Invariant) schemas.Invariant {
	if m.small() {
		return reported(v, "not judged: too small")
	}
	return v
}

// kept lists the invariants that each mode is judged by; nil = all. The others are told all the same.
var kept = map[string][]string{
	ModeWarp:        {"rows", "tokens_in", "tokens_out", "partial_sessions", "ks_input", "ks_output", "shape60", "hit_ratio", "private_shared", "tenant_share"},
	ModeIndependent: {"rows", "tokens_in", "tokens_out", "partial_sessions", "ks_input", "ks_output", "private_shared", "tenant_share"},
	ModeBalancer:    {"partial_sessions", "private_shared"},
	ModeModel:       {},
}

// judged takes the judgement from what the mode does not promise.
func (m *measure) judged(all []schemas.Invariant) []schemas.Invariant {
	names, limited := kept[m.mode]
	for i, v := range all {
		if limited && v.Judged && !slices.Contains(names, v.Name) {
			all[i] = reported(v, "mode "+m.mode+" does not keep it")
		}
	}
	return all
}

// tokenLimit is the relative limit of tokens at scale f.
func tokenLimit(f float64) float64 {
	if f >= 1 {
		return .005
	}
	return .015
}

// hitLimit is the limit of the share of blocks that a cache hits.
func hitLimit(f float64) float64 {
	if f >= 1 {
		return .015
	}
	return .03
}

// A warp changes neither lengths nor the order: there the slack is nil.
func (m *measure) tokenSlack() float64 {
	if m.warped() {
		return 0
	}
	return tokenLimit(m.scale)
}

func (m *measure) hitSlack() float64 {
	if m.warped() {
		return 0
	}
	return hitLimit(m.scale)
}

// point is a measured limit at one scale.
type point struct{ f, limit float64 }

// Limits by scale, measured on a public trace of conversations with the best of 32 draws.
var (
	ksPoints    = []point{{.25, .03}, {.5, .02}, {1, .005}}
	shapePoints = []point{{.25, .82}, {.5, .93}, {1, .99}}
)

// interpolate reads a limit between its points; outside, the nearest one holds.
func interpolate(points []point, f float64) float64 {
	if f <= points[0].f {
		return points[0].limit
	}
	for i := 1; i < len(points); i++ {
		if a, b := points[i-1], points[i]; f < b.f {
			return a.limit + (b.limit-a.limit)*(f-a.f)/(b.f-a.f)
		}
	}
	return points[len(points)-1].limit
}

// ksLimit is the greater of the measured limit and of the two-sample distance that chance passes once in a
// hundred, widened by a quarter for f < 1: rows of one session are alike, so that fewer rows count.
func (m *measure) ksLimit(before, after int64) float64 {
	a, b := float64(before), float64(after)
	chance := 1.63 * math.Sqrt((a+b)/(a*b))
	if m.scale < 1 {
		chance *= 1.25
	}
	return max(chance, interpolate(ksPoints, m.scale))
}

func shapeLimit(f float64) float64 { return interpolate(shapePoints, f) }

// rounding forgives what floating point does to a figure that should be equal.
const rounding = 1e-9

func within(name string, before, after, want, slack float64) schemas.Invariant {
	return schemas.Invariant{
		Name: name, Before: before, After: after, Judged: true,
		Limit: fmt.Sprintf("%s ± %s", number(want), number(slack)),
		Held:  math.Abs(after-want) <= slack+rounding*math.Abs(want),
	}
}

func atMost(name string, before, after, limit float64) schemas.Invariant {
	return schemas.Invariant{Name: name, Before: before, After: after, Limit: "<= " + number(limit), Held: after <= limit+rounding, Judged: true}
}

func atLeast(name string, before, after, limit float64) schemas.Invariant {
	return schemas.Invariant{Name: name, Before: before, After: after, Limit: ">= " + number(limit), Held: after >= limit-rounding, Judged: true}
}

// reported takes the judgement from v and says why.
func reported(v schemas.Invariant, why string) schemas.Invariant {
	v.Judged = false
	v.Limit += " (" + why + ")"
	return v
}

// number prints a limit with at most six digits after the point.
func number(x float64) string {
	return strconv.FormatFloat(math.Round(x*1e6)/1e6, 'f', -1, 64)
}
