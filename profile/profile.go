// Package profile describes what the traffic of a trace really is: its rate curve, the law of its gaps, its
// burstiness at nine scales, its lengths with their spikes, its sessions, and how much of it a prefix cache
// would hit.
//
// It is not a generator (package synth) and it judges nothing: it measures and fits, and the tables carry the
// numbers.
//
// In: a trace in arrival order. Out: the profile_* tables of package schemas, in total (tenant "*", class "*")
// and, when asked, per tenant × class.
//
// Invariants. No table holds a NaN or an infinity: what cannot be told is null or has no row. Failed requests
// count as arrivals and not as lengths. Nothing is claimed below the time resolution of the clock. The bins of
// the rate curve are aligned to UTC (to the schedule's zero when the wall time is not known), so that the rate
// and length tables of several traces add up in any order.
//
// The estimators follow the published methods named at each of them; variances are sample variances (n−1).
package profile

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"tailgate/internal/fault"
	"tailgate/schemas"
	"tailgate/trace"
)

// All is the tenant and the class of the total.
const All = "*"

// Sources of a profile.
const (
	SourceLake  = "lake"
	SourceTrace = "trace"
)

// Options say how to profile. The zero value profiles a trace in total only.
type Options struct {
	ProfileID string // names the profile in every row; "" = derived from the inputs digest
	PerGroup  bool   // also per tenant × class, beside the total
	Source    string // SourceLake or SourceTrace; "" = SourceTrace
	Epoch     string // key epoch of the pseudonyms; "" = the trace's
}

// Validate reports every fault of the options.
func (o Options) Validate() error {
	var errs []error
	if o.Source != "" && o.Source != SourceLake && o.Source != SourceTrace {
		errs = append(errs, fmt.Errorf("source must be %s or %s, not %q", SourceLake, SourceTrace, o.Source))
	}
	if o.ProfileID == All {
		errs = append(errs, errors.New(`profile id must not be "*"`))
	}
	return fault.Mark(errors.Join(errs...), fault.Usage, "")
}

// Profile holds the tables of one profile. Within a table, the total comes first and the groups follow in the
// order of tenant and class.
type Profile struct {
	Meta        []schemas.ProfileMeta
	Rate        []schemas.ProfileRate
	IAT         []schemas.ProfileIAT
	IATFit      []schemas.ProfileIATFit
	Dispersion  []schemas.ProfileDispersion
	Lengths     []schemas.ProfileLength
	Joint       []schemas.ProfileJoint
	JointStat   []schemas.ProfileJointStat
	Sessions    []schemas.ProfileSession
	SessionStat []schemas.ProfileSessionStat
	SessionGap  []schemas.ProfileSessionGap
	Growth      []schemas.ProfileGrowth
	Roots       []schemas.ProfileRoot
	Popularity  []schemas.ProfilePopularity
	Reuse       []schemas.ProfileReuse
	HitCurve    []schemas.ProfileHitCurve
	CrossShare  []schemas.ProfileCrossShare // in the total only
	Bursts      []schemas.ProfileBurst      // in the total only
}

// Compute profiles t. A trace without rows gives a profile that says 0 requests and has no other row. A trace
// whose rows are not in arrival order is refused (fault.Data).
func Compute(ctx context.Context, t *trace.Trace, o Options) (*Profile, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	for i := 1; i < len(t.Rows); i++ {
		if t.Rows[i].ScheduledUs < t.Rows[i-1].ScheduledUs {
			return nil, fault.Mark(fmt.Errorf("profiling %s: row %d arrives before row %d", t.Meta.Name, i, i-1), fault.Data, "")
		}
	}
	in := newInput(t)
	p := &Profile{Meta: []schemas.ProfileMeta{in.meta(o)}}
	for _, g := range in.groups(o.PerGroup) {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("profiling %s: %w", t.Meta.Name, err)
		}
		key := p.Meta[0].ProfileKey
		key.Tenant, key.Class = g.tenant, g.class
		p.add(in, g, key)
	}
	return p, nil
}

func (p *Profile) add(in *input, g group, key schemas.ProfileKey) {
	stamps := in.stamps(g)
	p.Rate = append(p.Rate, in.rate(g, key)...)
	p.IAT = append(p.IAT, gapStats(stamps, in.resolution, key)...)
	p.IATFit = append(p.IATFit, fits(stamps, in.resolution, key)...)
	p.Dispersion = append(p.Dispersion, dispersion(stamps, in.resolution, key)...)
	p.Lengths = append(p.Lengths, in.lengths(g, key)...)
	joint := in.joint(g)
	p.Joint = append(p.Joint, joint.cells(key)...)
	p.JointStat = append(p.JointStat, joint.stat(key)...)
	p.Sessions = append(p.Sessions, turns(g, key)...)
	p.SessionStat = append(p.SessionStat, in.sessionStat(g, key))
	p.SessionGap = append(p.SessionGap, in.sessionGaps(g, key)...)
	p.Growth = append(p.Growth, in.growth(g, key)...)
	use := in.use(g)
	p.Roots = append(p.Roots, use.roots(key)...)
	p.Popularity = append(p.Popularity, use.popularity(key)...)
	p.Reuse = append(p.Reuse, use.reuse(key)...)
	p.HitCurve = append(p.HitCurve, in.hitCurve(g, key)...)
	if g.total {
		p.CrossShare = append(p.CrossShare, in.crossShare(key)...)
		p.Bursts = append(p.Bursts, in.bursts(key)...)
	}
}

func (in *input) meta(o Options) schemas.ProfileMeta {
	m := in.t.Meta
	start := m.StartedAt.UTC()
	if m.StartedAt.IsZero() {
		start = time.Unix(0, 0).UTC()
	}
	row := schemas.ProfileMeta{
		ProfileKey: schemas.ProfileKey{
			ProfileID:   o.ProfileID,
			WindowStart: start.Add(time.Duration(in.firstUs()) * time.Microsecond).Truncate(maxBin),
			WindowEnd:   start.Add(time.Duration(in.t.LengthUs()) * time.Microsecond),
			Tenant:      All, Class: All,
		},
		Source:           o.Source,
		InputsSHA256:     schemas.InputsDigest(in.files()),
		Tokenizer:        m.Tokenizer,
		Model:            in.model(),
		BlockSize:        int32(m.BlockSize),
		TimeResolutionUs: in.clockUs(),
		Dequantised:      m.QuantumUs > 0 && m.Spread,
		Epoch:            o.Epoch,
		Requests:         int64(len(in.t.Rows)),
		Failed:           in.failures,
		Sessions:         int64(len(in.sessionRows)),
	}
	if row.Source == "" {
		row.Source = SourceTrace
	}
	if row.Epoch == "" {
		row.Epoch = m.Epoch
	}
	if row.ProfileID == "" {
		row.ProfileID = in.id(row.InputsSHA256)
	}
	in.originUs = row.WindowStart.Sub(start).Microseconds()
	row.OriginUs = &in.originUs
	return row
}

func (in *input) files() []schemas.FileDigest {
	if in.t.Meta.SHA256 == "" {
		return nil
	}
	return []schemas.FileDigest{{SHA256: in.t.Meta.SHA256}}
}

// id derives the profile id from the inputs digest; a trace that never was a file is digested by its arrivals
// and lengths.
func (in *input) id(digest string) string {
	if digest == "" {
		h := sha256.New()
		var b [24]byte
		for i := range in.t.Rows {
			r := &in.t.Rows[i]
			binary.LittleEndian.PutUint64(b[:], uint64(r.ScheduledUs))
			binary.LittleEndian.PutUint64(b[8:], uint64(r.InputTokens))
			out := int64(-1)
			if r.OutputTokens != nil {
				out = int64(*r.OutputTokens)
			}
			binary.LittleEndian.PutUint64(b[16:], uint64(out))
			h.Write(b[:])
		}
		digest = hex.EncodeToString(h.Sum(nil))
	}
	if len(digest) > 16 {
		digest = digest[:16]
	}
	return "p_" + digest
}

// val is a nullable figure; what is not a number is null.
func val(x float64) *float64 {
	if !finite(x) {
		return nil
	}
	return &x
}
