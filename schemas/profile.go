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

// ProfileMeta describes one profile (one row).
type ProfileMeta struct {
	ProfileKey
	Source           string `parquet:"source"` // lake | trace
	InputsSHA256     string `parquet:"inputs_sha256"`
	Tokenizer        string `parquet:"tokenizer"`
	Model            string `parquet:"model"`
	BlockSize        int32  `parquet:"block_size"`
	TimeResolutionUs int64  `parquet:"time_resolution_us"`
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
	Clock    string   `parquet:"clock,dict"`  // raw | op60 | op300
	Dist     string   `parquet:"dist,dict"`   // exponential | gamma | weibull | lognormal
	Method   string   `parquet:"method,dict"` // mle | moments
	P1       *float64 `parquet:"p1,optional"` // rate; shape; shape; mu
	P2       *float64 `parquet:"p2,optional"` // –; scale (s); scale (s); sigma
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
	IDC        *float64 `parquet:"idc,optional"` // var/mean
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
}
