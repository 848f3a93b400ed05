package schemas

import "time"

// The profile tables. Tenant and class "*" stand for all; window_start and window_end bound the arrivals.

// ProfileKey is the part that all profile tables share.
type ProfileKey struct {
	ProfileID   string    `parquet:"profile_id,dict"`                     // id of the profile
	WindowStart time.Time `parquet:"window_start,timestamp(microsecond)"` // first arrival's side of the window, UTC
	WindowEnd   time.Time `parquet:"window_end,timestamp(microsecond)"`   // its end, exclusive
	Tenant      string    `parquet:"tenant,dict"`                         // t_ token; * = all
	Class       string    `parquet:"class,dict"`                          // workload class; * = all
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
	Source           string `parquet:"source"`                   // lake | trace | servegen; * = several
	InputsSHA256     string `parquet:"inputs_sha256"`            // digest of what was profiled
	Tokenizer        string `parquet:"tokenizer"`                // tokenizer of the ids; "" = not known
	Model            string `parquet:"model"`                    // model; * = several, "" = not known
	BlockSize        int32  `parquet:"block_size" unit:"tokens"` // tokens of a block; 0 = no ids
	TimeResolutionUs int64  `parquet:"time_resolution_us"`       // step of the clock that stamped the arrivals
	OriginUs         *int64 `parquet:"origin_us,optional"`       // window_start on the schedule's clock; null in files of earlier versions
	Dequantised      bool   `parquet:"dequantised"`              // arrivals were spread inside the steps of a coarse clock
	Epoch            string `parquet:"epoch"`                    // epoch of the block keys; "" = none
	Requests         int64  `parquet:"requests"`                 // arrivals
	Failed           int64  `parquet:"failed"`                   // arrivals that failed: they count as arrivals and not as lengths
	Sessions         int64  `parquet:"sessions"`                 // sessions
}

// ProfileRate is one bin of the rate curve.
type ProfileRate struct {
	ProfileKey
	BinUs           int64    `parquet:"bin_us"`                          // width of the bin
	BinStartUs      int64    `parquet:"bin_start_us"`                    // since window_start
	Requests        int64    `parquet:"requests"`                        // arrivals in the bin
	SessionsStarted int64    `parquet:"sessions_started"`                // sessions whose first request is in it
	TokensIn        int64    `parquet:"tokens_in" unit:"tokens"`         // input tokens of its requests
	TokensOut       int64    `parquet:"tokens_out" unit:"tokens"`        // output tokens of its requests
	Errors          int64    `parquet:"errors"`                          // its requests that failed
	MeanIn          *float64 `parquet:"mean_in,optional" unit:"tokens"`  // mean input length; null = no request of known length
	MeanOut         *float64 `parquet:"mean_out,optional" unit:"tokens"` // mean output length; null = no request of known length
}

// ProfileIAT describes the gaps between arrivals, in seconds.
type ProfileIAT struct {
	ProfileKey
	N        int64     `parquet:"n"`                               // gaps
	MeanS    *float64  `parquet:"mean_s,optional"`                 // mean gap; null = no gaps
	CVRaw    *float64  `parquet:"cv_raw,optional"`                 // standard deviation / mean; null = fewer than two gaps
	CVOp60   *float64  `parquet:"cv_op60,optional"`                // the same after the rate over 60 s is taken out; null = too few gaps
	CVOp300  *float64  `parquet:"cv_op300,optional"`               // the same over 300 s; null = too few gaps
	CVLo     *float64  `parquet:"cv_raw_lo,optional"`              // 95 % interval of cv_raw by blocks of 5 minutes; null for fewer than 5
	CVHi     *float64  `parquet:"cv_raw_hi,optional"`              // upper end; null as cv_raw_lo
	MinS     *float64  `parquet:"min_s,optional"`                  // shortest gap; null = no gaps
	P50S     *float64  `parquet:"p50_s,optional"`                  // nearest rank; null = no gaps
	P90S     *float64  `parquet:"p90_s,optional"`                  // as p50_s
	P99S     *float64  `parquet:"p99_s,optional"`                  // as p50_s
	MaxS     *float64  `parquet:"max_s,optional"`                  // longest gap; null = no gaps
	ACF      []float64 `parquet:"acf,list"`                        // lags 1..10; empty when too few
	ZeroFrac *float64  `parquet:"zero_frac,optional" unit:"share"` // share of gaps of 0; null = no gaps
}

// ProfileIATFit is one fitted law of the gaps.
type ProfileIATFit struct {
	ProfileKey
	Clock    string   `parquet:"clock,dict"`      // raw | op60 | op300
	Dist     string   `parquet:"dist,dict"`       // exponential | gamma | weibull | lognormal | onoff
	Method   string   `parquet:"method,dict"`     // mle | moments
	P1       *float64 `parquet:"p1,optional"`     // in the order of dist: rate; shape; shape; mu; rate while on; null = not fitted
	P2       *float64 `parquet:"p2,optional"`     // –; scale (s); scale (s); sigma; rate of going off; null = the law has none
	P3       *float64 `parquet:"p3,optional"`     // –; –; –; –; rate of coming back; null = the law has none
	P1Lo     *float64 `parquet:"p1_lo,optional"`  // 95 % interval of p1 by blocks of 5 minutes; null for fewer than 5
	P1Hi     *float64 `parquet:"p1_hi,optional"`  // upper end; null as p1_lo
	LogLik   *float64 `parquet:"loglik,optional"` // log-likelihood; null = not fitted by likelihood
	BIC      *float64 `parquet:"bic,optional"`    // Bayesian information criterion; null = not fitted by likelihood
	KS       *float64 `parquet:"ks,optional"`     // largest distance of the distribution functions; null = not fitted
	Selected bool     `parquet:"selected"`        // the law of this clock that BIC chose
}

// ProfileDispersion is the dispersion of counts at one scale.
type ProfileDispersion struct {
	ProfileKey
	ScaleUs    int64    `parquet:"scale_us"`              // length of a window
	Windows    int64    `parquet:"windows"`               // windows that were counted
	Mean       *float64 `parquet:"mean,optional"`         // mean count of a window; null = no window
	Var        *float64 `parquet:"var,optional"`          // variance of the counts; null = fewer than two windows
	IDC        *float64 `parquet:"idc,optional"`          // index of dispersion: var / mean; null = fewer than two windows
	IDCLo      *float64 `parquet:"idc_lo,optional"`       // 95 % interval by blocks of 5 minutes; null for scales above 60 s and fewer than 5 blocks
	IDCHi      *float64 `parquet:"idc_hi,optional"`       // upper end; null as idc_lo
	PeakToMean *float64 `parquet:"peak_to_mean,optional"` // largest count / mean; null = no window
}

// ProfileLength is one bin of a length histogram; an atom is one exact value.
type ProfileLength struct {
	ProfileKey
	Dim    string `parquet:"dim,dict"`  // input | output
	LoTok  int32  `parquet:"lo_tokens"` // lower end of the bin, inclusive
	HiTok  int32  `parquet:"hi_tokens"` // exclusive
	N      int64  `parquet:"n"`         // requests in the bin
	IsAtom bool   `parquet:"is_atom"`   // the bin is one exact length that many requests have
}

// ProfileSession counts sessions by number of turns.
type ProfileSession struct {
	ProfileKey
	Turns    int32 `parquet:"turns"`    // number of turns
	Sessions int64 `parquet:"sessions"` // sessions of so many turns
}

// ProfileHitCurve is the hit ratio of a prefix cache of one size over this traffic.
type ProfileHitCurve struct {
	ProfileKey
	Policy         string   `parquet:"policy,dict"`                            // lru | infinite
	CapacityBlocks *int64   `parquet:"capacity_blocks,optional"`               // size of the cache; null = infinite
	BlockHit       *float64 `parquet:"block_hit,optional" unit:"share"`        // share of blocks found; null = no blocks
	TokenHit       *float64 `parquet:"token_hit,optional" unit:"share"`        // share of input tokens found; null = no blocks
	RequestMeanHit *float64 `parquet:"request_mean_hit,optional" unit:"share"` // mean of the requests' own shares; null = no blocks
	SampleRate     *float64 `parquet:"sample_rate,optional"`                   // share of the blocks that the row was computed from; null in files of earlier versions
	BlockHitError  *float64 `parquet:"block_hit_error,optional" unit:"share"`  // half the 95 % interval of block_hit that the sample leaves; 0 = exact
}

// ProfileJoint is one cell of the joint lengths. A border range of one value is an exact atom.
type ProfileJoint struct {
	ProfileKey
	Hour  int32 `parquet:"hour"`          // of the UTC day where the wall time is known, else since the schedule's zero
	InLo  int32 `parquet:"in_lo_tokens"`  // input length from, inclusive
	InHi  int32 `parquet:"in_hi_tokens"`  // exclusive
	OutLo int32 `parquet:"out_lo_tokens"` // output length from, inclusive
	OutHi int32 `parquet:"out_hi_tokens"` // exclusive
	N     int64 `parquet:"n"`             // requests in the cell
}

// ProfileJointStat says how much lengths depend on each other and on the load.
type ProfileJointStat struct {
	ProfileKey
	N               int64    `parquet:"n"`                          // requests of which both lengths are known
	Spearman        *float64 `parquet:"spearman,optional"`          // rank correlation of input and output; null = too few requests
	MINats          *float64 `parquet:"mi_nats,optional"`           // mutual information of the binned lengths, corrected for bias
	MIGaussNats     *float64 `parquet:"mi_gauss_nats,optional"`     // what a Gaussian copula of that correlation would have
	SpearmanRateOut *float64 `parquet:"spearman_rate_out,optional"` // rank correlation of requests and mean output in whole minutes; null = too few minutes
}

// ProfileSessionStat sums up sessions.
type ProfileSessionStat struct {
	ProfileKey
	Sessions       int64    `parquet:"sessions"`                       // sessions
	Turns          int64    `parquet:"turns"`                          // their turns
	MultiTurn      *float64 `parquet:"multi_turn_share,optional"`      // sessions of more than one turn; null = no sessions
	LaterTurns     int64    `parquet:"later_turns"`                    // turns that are not the first
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
	LoUs int64  `parquet:"lo_us"`     // lower end of the bin, inclusive
	HiUs int64  `parquet:"hi_us"`     // exclusive
	N    int64  `parquet:"n"`         // turns in the bin
}

// ProfileGrowth is a bin of what a later turn adds to the prompt and the answer of the turn before.
type ProfileGrowth struct {
	ProfileKey
	LoTok int32 `parquet:"lo_tokens"` // may be negative
	HiTok int32 `parquet:"hi_tokens"` // exclusive
	N     int64 `parquet:"n"`         // turns in the bin
}

// ProfileRoot is one of the most used first blocks.
type ProfileRoot struct {
	ProfileKey
	Rank        int32 `parquet:"rank"`         // 1 = used most
	BlockID     int64 `parquet:"block_id"`     // id of the first block
	Requests    int64 `parquet:"requests"`     // requests that begin with it
	Sessions    int64 `parquet:"sessions"`     // sessions that begin with it
	DepthBlocks int32 `parquet:"depth_blocks"` // blocks that at least half of its requests have in common
	// DepthError is half the 95 % interval that a sample of the sessions leaves; 0 = exact, null = none of them begins
	// with the block, or a file of an earlier version.
	DepthError *int32 `parquet:"depth_blocks_error,optional"`
}

// ProfilePopularity counts blocks by how many requests use them.
type ProfilePopularity struct {
	ProfileKey
	LoUses int64 `parquet:"lo_uses"` // from so many requests, inclusive
	HiUses int64 `parquet:"hi_uses"` // exclusive
	Blocks int64 `parquet:"blocks"`  // blocks in the bin
	Uses   int64 `parquet:"uses"`    // their uses together
	// SampleRate is the share of the shared blocks that the row was counted from; null in files of earlier versions.
	SampleRate  *float64 `parquet:"sample_rate,optional"`
	BlocksError *float64 `parquet:"blocks_error,optional"` // half the 95 % interval of blocks that the sample leaves; 0 = exact
	UsesError   *float64 `parquet:"uses_error,optional"`   // that of uses
}

// ProfileReuse is a bin of the distance from one use of a block to its next.
type ProfileReuse struct {
	ProfileKey
	Unit string `parquet:"unit,dict"`         // requests | us
	Lo   int64  `parquet:"lo" unit:"of unit"` // lower end of the bin, inclusive, in unit
	Hi   int64  `parquet:"hi" unit:"of unit"` // exclusive
	N    int64  `parquet:"n"`                 // uses in the bin
	// SampleRate is the share of the blocks that the row was counted from; null in files of earlier versions.
	SampleRate *float64 `parquet:"sample_rate,optional"`
	NError     *float64 `parquet:"n_error,optional"` // half the 95 % interval of n that the sample leaves; 0 = exact
}

// ProfileCrossShare counts the blocks that two tenants share.
type ProfileCrossShare struct {
	ProfileKey
	TenantA string `parquet:"tenant_a,dict"` // t_ token
	TenantB string `parquet:"tenant_b,dict"` // t_ token of the other
	Blocks  int64  `parquet:"blocks"`        // blocks that both use
	// SampleRate is the share of the blocks that the row was counted from; null in files of earlier versions.
	SampleRate  *float64 `parquet:"sample_rate,optional"`
	BlocksError *float64 `parquet:"blocks_error,optional"` // half the 95 % interval of blocks that the sample leaves; 0 = exact
}

// ProfileBurst is one of the windows with the most requests.
type ProfileBurst struct {
	ProfileKey
	Rank      int32    `parquet:"rank"`                              // 1 = the worst
	StartUs   int64    `parquet:"start_us"`                          // since the schedule's zero
	LengthUs  int64    `parquet:"length_us"`                         // length of the window
	Requests  int64    `parquet:"requests"`                          // requests in it
	Expected  *float64 `parquet:"expected,optional" unit:"requests"` // requests of such a window at the mean rate
	TokensIn  int64    `parquet:"tokens_in" unit:"tokens"`           // their input tokens
	TokensOut int64    `parquet:"tokens_out" unit:"tokens"`          // their output tokens
	TopTenant *string  `parquet:"top_tenant,optional,dict"`          // tenant with the most requests; null = no tenants
	TopClass  *string  `parquet:"top_class,optional,dict"`           // class with the most requests; null = no classes
	LongShare *float64 `parquet:"long_input_share,optional"`         // requests with at least 8,192 input tokens
}

// ProfileLatency is one bin of what production itself took; in the total and per class.
type ProfileLatency struct {
	ProfileKey
	Dim  string `parquet:"dim,dict"`     // ttft | duration | tpot
	InLo int32  `parquet:"in_lo_tokens"` // range of input lengths
	InHi int32  `parquet:"in_hi_tokens"` // exclusive
	LoUs int64  `parquet:"lo_us"`        // lower end of the bin, inclusive
	HiUs int64  `parquet:"hi_us"`        // exclusive
	N    int64  `parquet:"n"`            // requests in the bin
}

// ProfileDrift is one figure of a profile beside that of an earlier one.
type ProfileDrift struct {
	ProfileKey
	RefProfileID string   `parquet:"ref_profile_id,dict"`                     // id of the earlier profile
	Metric       string   `parquet:"metric,dict"`                             // figure that is compared
	Value        *float64 `parquet:"value,optional" unit:"of the metric"`     // of this profile; null = it has none
	RefValue     *float64 `parquet:"ref_value,optional" unit:"of the metric"` // of the earlier one; null = it has none
	Distance     *float64 `parquet:"distance,optional"`                       // relative change, KS, PSI or difference, by metric
	Limit        float64  `parquet:"limit"`                                   // distance from which on the figure is flagged
	Flag         bool     `parquet:"flag"`                                    // the distance is above the limit
}
