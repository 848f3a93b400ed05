package profile

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"time"

	"tailgate/internal/fault"
	"tailgate/schemas"
)

// Merge puts the profiles of several windows together. Profiles that hold several windows merge as well: any order and
// any grouping of the same profiles gives the same tables.
//
// Rate curve, lengths and joint lengths are sums under the key of the whole (window_start is the earliest, window_end
// the latest). A value that is an atom in one profile and lies in a bin of another keeps both rows: the atom's row
// counts it where it was a spike, the bin's row where it was not; together they hold every request once. A bin of a
// single value is exact and joins the atom of that value. All other tables (gaps, fits, dispersion, dependence,
// sessions, prefixes, reuse, hit curve, bursts) need what lies on both sides of a border: they keep one set of rows per
// window, whose window_start and window_end tell which, under the profile id of the whole.
//
// The one row of meta has the sums of requests, failed and sessions (a session that crosses a border counts in each
// window), the coarsest clock, "*" for a model or source that differs, and all epochs; inputs_sha256 is the sum of
// those of the parts modulo 2^256, and the profile id comes from it. A profile without requests adds its digest only.
//
// Windows that overlap are a usage error, as are no profiles; different block sizes or tokenizers are fault.Data.
func Merge(profiles []*Profile) (*Profile, error) {
	if err := mergeable(profiles); err != nil {
		return nil, fmt.Errorf("merging profiles: %w", err)
	}
	out := &Profile{}
	for _, p := range profiles {
		into := out.tables()
		for i, t := range p.tables() {
			into[i].appendRows(t)
		}
	}
	meta := mergeMeta(profiles)
	for _, t := range out.tables() {
		t.arrange(meta.ProfileID)
	}
	out.Meta = []schemas.ProfileMeta{meta}
	var err error
	if out.Rate, err = mergeRate(out.Rate, meta.ProfileKey); err != nil {
		return nil, fmt.Errorf("merging profiles: %w", err)
	}
	out.Lengths = mergeLengths(out.Lengths, meta.ProfileKey)
	out.Joint = mergeJoint(out.Joint, meta.ProfileKey)
	out.Latency = mergeLatency(out.Latency, meta.ProfileKey)
	return out, nil
}

// window is a stretch of time that tables were computed over.
type window struct{ start, end time.Time }

func (w window) String() string {
	return w.start.Format(time.RFC3339) + " to " + w.end.Format(time.RFC3339)
}

func compareWindows(a, b window) int {
	return cmp.Or(a.start.Compare(b.start), a.end.Compare(b.end))
}

// windows are those that the tables per window were computed over, in order; that of the profile where it has none.
func (p *Profile) windows() []window {
	var out []window
	for _, s := range p.SessionStat {
		if isTotal(s.ProfileKey) {
			out = append(out, window{s.WindowStart.UTC(), s.WindowEnd.UTC()})
		}
	}
	if out == nil {
		out = []window{{p.Meta[0].WindowStart.UTC(), p.Meta[0].WindowEnd.UTC()}}
	}
	slices.SortFunc(out, compareWindows)
	return out
}

// merged tells whether p holds several windows.
func (p *Profile) merged() bool { return len(p.windows()) > 1 }

// inWhole tells whether a row is about the total of the whole profile, not of one of its windows.
func (p *Profile) inWhole(k schemas.ProfileKey) bool {
	m := p.Meta[0]
	return isTotal(k) && k.WindowStart.Equal(m.WindowStart) && k.WindowEnd.Equal(m.WindowEnd)
}

func mergeable(profiles []*Profile) error {
	if len(profiles) == 0 {
		return fault.Mark(errors.New("none is given"), fault.Usage, "")
	}
	for i, p := range profiles {
		if len(p.Meta) != 1 {
			return fault.Mark(fmt.Errorf("profile %d has %d rows of meta, want 1", i+1, len(p.Meta)), fault.Data, "")
		}
		a, b := profiles[0].Meta[0], p.Meta[0]
		if a.BlockSize != b.BlockSize {
			return fault.Mark(fmt.Errorf("%s has blocks of %d tokens, %s of %d", a.ProfileID, a.BlockSize, b.ProfileID, b.BlockSize), fault.Data,
				"profile all windows at one --block-size")
		}
		if a.Tokenizer != b.Tokenizer {
			return fault.Mark(fmt.Errorf("%s is counted by tokenizer %q, %s by %q", a.ProfileID, a.Tokenizer, b.ProfileID, b.Tokenizer), fault.Data,
				"lengths of different tokenizers do not add up")
		}
	}
	return apart(profiles)
}

// apart reports the first two windows that overlap. A window may begin at the instant in which another ends.
func apart(profiles []*Profile) error {
	type placed struct {
		window
		profile int
	}
	var all []placed
	for i, p := range profiles {
		if p.Meta[0].Requests == 0 {
			continue
		}
		for _, w := range p.windows() {
			all = append(all, placed{w, i})
		}
	}
	slices.SortStableFunc(all, func(a, b placed) int { return compareWindows(a.window, b.window) })
	if n := len(all); n > 0 && all[0].start.Year() == 1970 && all[n-1].start.Year() != 1970 {
		return fault.Mark(fmt.Errorf("profile %d, %s, has no wall time, profile %d, %s, has one", all[0].profile+1, profiles[all[0].profile].Meta[0].ProfileID,
			all[n-1].profile+1, profiles[all[n-1].profile].Meta[0].ProfileID), fault.Usage, "a trace without a wall time has no place among others")
	}
	for i := 1; i < len(all); i++ {
		a, b := all[i-1], all[i]
		if !b.start.Before(a.end) && compareWindows(a.window, b.window) != 0 {
			continue
		}
		hint := "give each window once; windows begin on full 10 minutes, so cut them there"
		if a.start.Year() == 1970 {
			hint = "a trace without a wall time has no place among others"
		}
		return fault.Mark(fmt.Errorf("profile %d, %s (%s), and profile %d, %s (%s), overlap", a.profile+1, profiles[a.profile].Meta[0].ProfileID, a.window,
			b.profile+1, profiles[b.profile].Meta[0].ProfileID, b.window), fault.Usage, hint)
	}
	return nil
}

func mergeMeta(profiles []*Profile) schemas.ProfileMeta {
	var sum [4]uint64
	out := profiles[0].Meta[0]
	out.Requests, out.Failed, out.Sessions = 0, 0, 0
	out.OriginUs = nil // every schedule had a zero of its own
	epochs := map[string]bool{}
	first := true
	for _, p := range profiles {
		out.Requests += p.Meta[0].Requests
	}
	for _, p := range profiles {
		m := p.Meta[0]
		if m.Requests == 0 && out.Requests > 0 {
			continue // says nothing about when
		}
		if first {
			out.WindowStart, out.WindowEnd, first = m.WindowStart.UTC(), m.WindowEnd.UTC(), false
		}
		out.WindowStart, out.WindowEnd = earlier(out.WindowStart, m.WindowStart.UTC()), later(out.WindowEnd, m.WindowEnd.UTC())
	}
	for _, p := range profiles {
		m := p.Meta[0]
		out.Failed, out.Sessions = out.Failed+m.Failed, out.Sessions+m.Sessions
		out.Source, out.Model = either(out.Source, m.Source), either(out.Model, m.Model)
		out.TimeResolutionUs = max(out.TimeResolutionUs, m.TimeResolutionUs)
		out.Dequantised = out.Dequantised || m.Dequantised
		for e := range strings.SplitSeq(m.Epoch, ",") {
			epochs[e] = e != ""
		}
		sum = add256(sum, inputsOf(m))
	}
	out.Tenant, out.Class = All, All
	out.Epoch = joined(epochs)
	out.InputsSHA256 = hex256(sum)
	out.ProfileID = "p_" + out.InputsSHA256[:16]
	return out
}

func joined(set map[string]bool) string {
	var names []string
	for name, is := range set {
		if is {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, ",")
}

// either is the name that both have; a name beside none stands, two that differ are "*".
func either(a, b string) string {
	switch {
	case a == b || b == "":
		return a
	case a == "":
		return b
	}
	return All
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// inputsOf is the digest of a profile's inputs as a number; where it has none, that of its name and window.
func inputsOf(m schemas.ProfileMeta) (out [4]uint64) {
	raw, err := hex.DecodeString(m.InputsSHA256)
	if err != nil || len(raw) != sha256.Size {
		own := sha256.Sum256([]byte(m.ProfileID + "\x00" + window{m.WindowStart.UTC(), m.WindowEnd.UTC()}.String()))
		raw = own[:]
	}
	for i := range out {
		out[i] = binary.BigEndian.Uint64(raw[8*i:])
	}
	return out
}

// add256 is a + b modulo 2^256, big end first: a sum forgets order and grouping, which a digest of digests does not.
func add256(a, b [4]uint64) (out [4]uint64) {
	carry := uint64(0)
	for i := len(out) - 1; i >= 0; i-- {
		out[i], carry = bits.Add64(a[i], b[i], carry)
	}
	return out
}

func hex256(x [4]uint64) string {
	var raw []byte
	for _, v := range x {
		raw = binary.BigEndian.AppendUint64(raw, v)
	}
	return hex.EncodeToString(raw)
}

// MergeNotes says in sentences what a merged profile cannot tell: which days hold several windows.
func (p *Profile) MergeNotes() []string {
	days := map[string]int{}
	for _, w := range p.windows() {
		days[w.start.Format(time.DateOnly)]++
	}
	var out []string
	for day, n := range days {
		if n > 1 {
			out = append(out, fmt.Sprintf("%s holds %d windows: gaps, dispersion, sessions, prefix reuse and hit curves stand per window, since what crosses their borders is not known; "+
				"profile the whole day to have them per day", day, n))
		}
	}
	slices.Sort(out)
	return out
}
