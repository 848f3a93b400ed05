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
	Threads   int    // that work at a time; 0 = as many as the program may use. The tables do not depend on it
	Source    string // SourceLake or SourceTrace; "" = SourceTrace
	Epoch     string // key epoch of the pseudonyms; "" = the trace's

	hits hitLimits // zero = the default
	most int       // different blocks that are followed; 0 = maxFollowed
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
	if o.Threads < 0 {
		errs = append(errs, fmt.Errorf("threads must be >= 0, not %d", o.Threads))
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
	Latency     []schemas.ProfileLatency    // of a lake: in the total and per class
	Bursts      []schemas.ProfileBurst      // in the total only
}

// Source hands out the rows of a trace in arrival order.
type Source interface {
	// Each visits the rows; a row is valid during the visit only.
	Each(ctx context.Context, visit func(*schemas.TraceRow) error) error
}

// Compute profiles t. A trace without rows gives a profile that says 0 requests and has no other row. A trace
// whose rows are not in arrival order is refused (fault.Data).
func Compute(ctx context.Context, t *trace.Trace, o Options) (*Profile, error) {
	return ComputeFrom(ctx, t.Meta, whole(t.Rows), o)
}

// whole is the rows of a trace in memory as a source.
type whole []schemas.TraceRow

func (w whole) Each(ctx context.Context, visit func(*schemas.TraceRow) error) error {
	for i := range w {
		if i%(1<<16) == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if err := visit(&w[i]); err != nil {
			return err
		}
	}
	return nil
}

// ComputeFrom profiles the rows of a source that m describes in one pass, see Compute. It keeps about 50 bytes a row
// and, of the prompts, about 30 bytes for each prefix of blocks that was not seen before, up to maxFollowed of them: a
// sample, of more. Prompts of requests without a session are kept besides, up to 2^25 prefixes.
func ComputeFrom(ctx context.Context, m trace.Meta, s Source, o Options) (*Profile, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	c := newColumns(o.most)
	err := s.Each(ctx, c.add)
	if err != nil {
		return nil, fmt.Errorf("profiling %s: %w", m.Name, err)
	}
	p, err := c.profile(ctx, m, o)
	if err != nil {
		return nil, fmt.Errorf("profiling %s: %w", m.Name, err)
	}
	return p, nil
}

// profile computes the tables from the columns.
func (c *columns) profile(ctx context.Context, meta trace.Meta, o Options) (*Profile, error) {
	c.tree.seal()
	if c.whole != nil {
		c.whole.tree.seal()
	}
	in := newInput(c, meta)
	in.sessions = c.tie()
	for s := range in.sessions.len() {
		c.flags[in.sessions.of(int32(s))[0]] |= rowStarts
	}
	p := &Profile{Meta: []schemas.ProfileMeta{in.metaRow(o)}}
	parts, err := in.parts(ctx, p.Meta[0].ProfileKey, o)
	if err != nil {
		return nil, err
	}
	for i, into := range p.tables() {
		n := 0
		for _, part := range parts {
			n += part.tables()[i].len()
		}
		into.grow(n)
		for _, part := range parts {
			into.move(part.tables()[i])
		}
		if o.PerGroup && in.oneGroup() {
			only := in.labels.groups[0]
			into.repeat(in.labels.tenants.words[only.tenant], in.labels.classes.words[only.class])
		}
	}
	return p, nil
}

func (in *input) metaRow(o Options) schemas.ProfileMeta {
	m := in.meta
	start := m.StartedAt.UTC()
	if m.StartedAt.IsZero() {
		start = time.Unix(0, 0).UTC()
	}
	row := schemas.ProfileMeta{
		ProfileKey: schemas.ProfileKey{
			ProfileID:   o.ProfileID,
			WindowStart: start.Add(time.Duration(in.firstUs()) * time.Microsecond).Truncate(maxBin),
			WindowEnd:   start.Add(time.Duration(in.lengthUs()) * time.Microsecond),
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
		Requests:         int64(in.len()),
		Failed:           in.failures,
		Sessions:         int64(in.sessions.len()),
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
	if in.meta.SHA256 == "" {
		return nil
	}
	return []schemas.FileDigest{{SHA256: in.meta.SHA256}}
}

// id derives the profile id from the inputs digest; a trace that never was a file is digested by its arrivals
// and lengths.
func (in *input) id(digest string) string {
	if digest == "" {
		h := sha256.New()
		var b [24]byte
		for i, at := range in.at {
			binary.LittleEndian.PutUint64(b[:], uint64(at))
			binary.LittleEndian.PutUint64(b[8:], uint64(in.in[i]))
			binary.LittleEndian.PutUint64(b[16:], uint64(int64(in.out[i])))
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
