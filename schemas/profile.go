package schemas

import "time"

// The profile tables. Tenant and class "*" stand for all; window_start and window_end bound the arrivals.

// ProfileKey is the part that all profile tables share.
type ProfileKey struct {
	ProfileID   string    `parquet:"profile_id,dict"`
	WindowStart time.Time `parquet:"window_start,timestamp(microsecond)"`
	WindowEnd   time.Time `parquet:"window_end,timestamp(microsecond)"`
	Tenant      string    `parquet:"tenant,dict"`
	Class       string    `parquet:"class,dict"`
}

// Key is the key of a row.
func (k ProfileKey) Key() ProfileKey { return k }

// SetProfileID names another profile in a row.
func (k *ProfileKey) SetProfileID(id string) { k.ProfileID = id }

// SetGroup names another tenant and class in a row.
func (k *ProfileKey) SetGroup(tenant, class string) { k.Tenant, k.Class = tenant, class }

// ProfileMeta describes one profile (one row).
type ProfileMeta struct {
	ProfileKey
	Source           string `parquet:"source"` // lake | trace | servegen; * = several
	InputsSHA256     string `parquet:"inputs_sha256"`
	Tokenizer        string `parquet:"tokenizer"`
	Model            string `parquet:"model"`
	BlockSize        int32  `parquet:"block_size"`
	TimeResolutionUs int64  `parquet:"time_resolution_us"`
	OriginUs         *int64 `parquet:"origin_us,optional"` // window_start on the schedule's clock; null in files of earlier versions
	Dequantised      bool   `parquet:"dequantised"`
	Epoch            string `parquet:"epoch"`
	Requests         int64  `parquet:"requests"`
	Failed           int64  `parquet:"failed"`
	Sessions         int64  `parquet:"sessions"`
}

// ProfileRate is one bin of the rate curve.
type ProfileRate struct {
	ProfileKey
	BinUs           int64    `parquet:"bin_us"`
	BinStartUs      int64    `parquet:"bin_start_us"` // since window_start
	Requests        int64    `parquet:"requests"`
	SessionsStarted int64    `parquet:"sessions_started"`
	TokensIn        int64    `parquet:"tokens_in"`
	TokensOut       int64    `parquet:"tokens_out"`
	Errors          int64    `parquet:"errors"`
	MeanIn          *float64 `parquet:"mean_in,optional"`
	MeanOut         *float64 `parquet:"mean_out,optional"`
}

// ProfileIAT describes the gaps between arrivals, in seconds.
type ProfileIAT struct {
	ProfileKey
	N        int64     `parquet:"n"`
	MeanS    *float64  `parquet:"mean_s,optional"`
	CVRaw    *float64  `parquet:"cv_raw,optional"`
	CVOp60   *float64  `parquet:"cv_op60,optional"`
	CVOp300  *float64  `parquet:"cv_op300,optional"`
	CVLo     *float64  `parquet:"cv_raw_lo,optional"` // 95 % interval of cv_raw by blocks of 5 minutes; null for fewer than 5
	CVHi     *float64  `parquet:"cv_raw_hi,optional"`
	MinS     *float64  `parquet:"min_s,optional"`
	P50S     *float64  `parquet:"p50_s,optional"`
	P90S     *float64  `parquet:"p90_s,optional"`
	P99S     *float64  `parquet:"p99_s,optional"`
	MaxS     *float64  `parquet:"max_s,optional"`
	ACF      []float64 `parquet:"acf,list"` // lags 1..10; empty when too few
	ZeroFrac *float64  `parquet:"zero_frac,optional"`
}

// ProfileIATFit is one fitted law of the gaps.
type ProfileIATFit struct {
	ProfileKey
	Clock    string   `parquet:"clock,dict"`     // raw | op60 | op300
	Dist     string   `parquet:"dist,dict"`      // exponential | gamma | weibull | lognormal | onoff
	Method   string   `parquet:"method,dict"`    // mle | moments
	P1       *float64 `parquet:"p1,optional"`    // rate; shape; shape; mu; rate while on
	P2       *float64 `parquet:"p2,optional"`    // –; scale (s); scale (s); sigma; rate of going off
	P3       *float64 `parquet:"p3,optional"`    // –; –; –; –; rate of coming back
	P1Lo     *float64 `parquet:"p1_lo,optional"` // 95 % interval of p1 by blocks of 5 minutes; null for fewer than 5
	P1Hi     *float64 `parquet:"p1_hi,optional"`
	LogLik   *float64 `parquet:"loglik,optional"`
	BIC      *float64 `parquet:"bic,optional"`
	KS       *float64 `parquet:"ks,optional"`
	Selected bool     `parquet:"selected"`
}

// ProfileDispersion is the dispersion of counts at one scale.
type ProfileDispersion struct {
	ProfileKey
	ScaleUs    int64    `parquet:"scale_us"`
	Windows    int64    `parquet:"windows"`
	Mean       *float64 `parquet:"mean,optional"`
	Var        *float64 `parquet:"var,optional"`
	IDC        *float64 `parquet:"idc,optional"`    // var/mean
	IDCLo      *float64 `parquet:"idc_lo,optional"` // 95 % interval by blocks of 5 minutes; null for scales above 60 s and fewer than 5 blocks
	IDCHi      *float64 `parquet:"idc_hi,optional"`
	PeakToMean *float64 `parquet:"peak_to_mean,optional"`
}

// ProfileLength is one bin of a length histogram; an atom is one exact value.
type ProfileLength struct {
	ProfileKey
	Dim    string `parquet:"dim,dict"` // input | output
	LoTok  int32  `parquet:"lo_tokens"`
	HiTok  int32  `parquet:"hi_tokens"` // exclusive
	N      int64  `parquet:"n"`
	IsAtom bool   `parquet:"is_atom"`
}

// ProfileSession counts sessions by number of turns.
type ProfileSession struct {
	ProfileKey
	Turns    int32 `parquet:"turns"`
	Sessions int64 `parquet:"sessions"`
}

// ProfileHitCurve is the hit ratio of a prefix cache of one size over this traffic.
type ProfileHitCurve struct {
	ProfileKey
	Policy         string   `parquet:"policy,dict"`              // lru | infinite
	CapacityBlocks *int64   `parquet:"capacity_blocks,optional"` // null = infinite
	BlockHit       *float64 `parquet:"block_hit,optional"`
	TokenHit       *float64 `parquet:"token_hit,optional"`
	RequestMeanHit *float64 `parquet:"request_mean_hit,optional"`
	SampleRate     *float64 `parquet:"sample_rate,optional"`     // share of the blocks that the row was computed from; null in files of earlier versions
	BlockHitError  *float64 `parquet:"block_hit_error,optional"` // half the 95 % interval of block_hit that the sample leaves; 0 = exact
}

// ProfileJoint is one cell of the joint lengths. A border range of one value is an exact atom.
type ProfileJoint struct {
	ProfileKey
	Hour  int32 `parquet:"hour"` // of the UTC day where the wall time is known, else since the schedule's zero
	InLo  int32 `parquet:"in_lo_tokens"`
	InHi  int32 `parquet:"in_hi_tokens"` // exclusive
	OutLo int32 `parquet:"out_lo_tokens"`
	OutHi int32 `parquet:"out_hi_tokens"` // exclusive
	N     int64 `parquet:"n"`
}

// ProfileJointStat says how much lengths depend on each other and on the load.
type ProfileJointStat struct {
	ProfileKey
	N               int64    `parquet:"n"`
	Spearman        *float64 `parquet:"spearman,optional"`          // of input and output
	MINats          *float64 `parquet:"mi_nats,optional"`           // mutual information of the binned lengths, corrected for bias
	MIGaussNats     *float64 `parquet:"mi_gauss_nats,optional"`     // what a Gaussian copula of that correlation would have
	SpearmanRateOut *float64 `parquet:"spearman_rate_out,optional"` // of requests and mean output in whole minutes
}

// ProfileSessionStat sums up sessions.
type ProfileSessionStat struct {
	ProfileKey
	Sessions       int64    `parquet:"sessions"`
	Turns          int64    `parquet:"turns"`
	MultiTurn      *float64 `parquet:"multi_turn_share,optional"`
	LaterTurns     int64    `parquet:"later_turns"`
	NegativeGrowth *float64 `parquet:"negative_growth_share,optional"` // later turns shorter than the turn before with its answer
	Branches       *float64 `parquet:"branch_share,optional"`          // later turns that share less than their parent's full blocks
	BranchError    *float64 `parquet:"branch_share_error,optional"`    // half the 95 % interval that a sample of the blocks leaves; 0 = exact; null in files of earlier versions
	Carry          *float64 `parquet:"carry_ratio,optional"`           // full blocks of the parent that later turns share
	CarryError     *float64 `parquet:"carry_ratio_error,optional"`     // as branch_share_error
}

// ProfileSessionGap is a bin of the times from turn to turn, arrival to arrival.
type ProfileSessionGap struct {
	ProfileKey
	Turn string `parquet:"turn,dict"` // 1, 2, 3-4, 5-8, 9+: place of the later turn
	LoUs int64  `parquet:"lo_us"`
	HiUs int64  `parquet:"hi_us"` // exclusive
	N    int64  `parquet:"n"`
}

// ProfileGrowth is a bin of what a later turn adds to the prompt and the answer of the turn before.
type ProfileGrowth struct {
	ProfileKey
	LoTok int32 `parquet:"lo_tokens"` // may be negative
	HiTok int32 `parquet:"hi_tokens"` // exclusive
	N     int64 `parquet:"n"`
}

// ProfileRoot is one of the most used first blocks.
type ProfileRoot struct {
	ProfileKey
	Rank        int32 `parquet:"rank"`
	BlockID     int64 `parquet:"block_id"`
	Requests    int64 `parquet:"requests"`
	Sessions    int64 `parquet:"sessions"`
	DepthBlocks int32 `parquet:"depth_blocks"` // blocks that at least half of its requests have in common
	// DepthError is half the 95 % interval that a sample of the sessions leaves; 0 = exact, null = none of them begins
	// with the block, or a file of an earlier version.
	DepthError *int32 `parquet:"depth_blocks_error,optional"`
}

// ProfilePopularity counts blocks by how many requests use them.
type ProfilePopularity struct {
	ProfileKey
	LoUses int64 `parquet:"lo_uses"`
	HiUses int64 `parquet:"hi_uses"` // exclusive
	Blocks int64 `parquet:"blocks"`
	Uses   int64 `parquet:"uses"`
	// SampleRate is the share of the shared blocks that the row was counted from; null in files of earlier versions.
	SampleRate  *float64 `parquet:"sample_rate,optional"`
	BlocksError *float64 `parquet:"blocks_error,optional"` // half the 95 % interval of blocks that the sample leaves; 0 = exact
	UsesError   *float64 `parquet:"uses_error,optional"`   // that of uses
}

// ProfileReuse is a bin of the distance from one use of a block to its next.
type ProfileReuse struct {
	ProfileKey
	Unit string `parquet:"unit,dict"` // requests | us
	Lo   int64  `parquet:"lo"`
	Hi   int64  `parquet:"hi"` // exclusive
	N    int64  `parquet:"n"`
	// SampleRate is the share of the blocks that the row was counted from; null in files of earlier versions.
	SampleRate *float64 `parquet:"sample_rate,optional"`
	NError     *float64 `parquet:"n_error,optional"` // half the 95 % interval of n that the sample leaves; 0 = exact
}

// ProfileCrossShare counts the blocks that two tenants share.
type ProfileCrossShare struct {
	ProfileKey
	TenantA string `parquet:"tenant_a,dict"`
	TenantB string `parquet:"tenant_b,dict"`
	Blocks  int64  `parquet:"blocks"`
	// SampleRate is the share of the blocks that the row was counted from; null in files of earlier versions.
	SampleRate  *float64 `parquet:"sample_rate,optional"`
	BlocksError *float64 `parquet:"blocks_error,optional"` // half the 95 % interval of blocks that the sample leaves; 0 = exact
}

// ProfileBurst is one of the windows with the most requests.
type ProfileBurst struct {
	ProfileKey
	Rank      int32    `parquet:"rank"`     // 1 = the worst
	StartUs   int64    `parquet:"start_us"` // since the schedule's zero
	LengthUs  int64    `parquet:"length_us"`
	Requests  int64    `parquet:"requests"`
	Expected  *float64 `parquet:"expected,optional"` // requests of such a window at the mean rate
	TokensIn  int64    `parquet:"tokens_in"`
	TokensOut int64    `parquet:"tokens_out"`
	TopTenant *string  `parquet:"top_tenant,optional,dict"`
	TopClass  *string  `parquet:"top_class,optional,dict"`
	LongShare *float64 `parquet:"long_input_share,optional"` // requests with at least 8,192 input tokens
}

// ProfileLatency is one bin of what production itself took; in the total and per class.
type ProfileLatency struct {
	ProfileKey
	Dim  string `parquet:"dim,dict"`     // ttft | duration | tpot
	InLo int32  `parquet:"in_lo_tokens"` // range of input lengths
	InHi int32  `parquet:"in_hi_tokens"` // exclusive
	LoUs int64  `parquet:"lo_us"`
	HiUs int64  `parquet:"hi_us"` // exclusive
	N    int64  `parquet:"n"`
}

// ProfileDrift is one figure of a profile beside that of an earlier one.
type ProfileDrift struct {
	ProfileKey
	RefProfileID string   `parquet:"ref_profile_id,dict"`
	Metric       string   `parquet:"metric,dict"`
	Value        *float64 `parquet:"value,optional"`
	RefValue     *float64 `parquet:"ref_value,optional"`
	Distance     *float64 `parquet:"distance,optional"` // relative change, KS, PSI or difference, by metric
	Limit        float64  `parquet:"limit"`
	Flag         bool     `parquet:"flag"` // the distance is above the limit
}
