package sim

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"tailgate/internal/fault"
)

// Routers of a cluster. A replica that is dead gets nothing.
const (
	RoundRobin    = "round_robin"
	LeastInFlight = "least_in_flight" // ties go round robin
	// PrefixAware takes the replica that holds most of the prompt, where that is worth it and the load allows.
	PrefixAware = "prefix_aware"
	// SessionAffine keeps a session on its replica; requests without one go round robin.
	SessionAffine = "session_affine"
)

// Routers lists the routers.
func Routers() []string { return []string{RoundRobin, LeastInFlight, PrefixAware, SessionAffine} }

// Laws of the service time.
const (
	Fixed       = "fixed"
	Exponential = "exponential"
	Lognormal   = "lognormal"
)

// Distributions lists the laws of the service time.
func Distributions() []string { return []string{Fixed, Exponential, Lognormal} }

// Defaults of a Config whose field is zero.
const (
	DefaultBlockSize   = 512
	DefaultEngineBlock = 16
)

// Config describes a cluster of equal replicas. Step times follow
//
//	step_ms = A + B·P + C·S + D·K + E·Q + F·(1 − (1 − ActiveExperts/Experts)^(P+S))
//
// where in one step P is prompt tokens computed, S decoding sequences, K the KV tokens of these sequences, and
// Q = Σ x·(prior + x/2) over prompt chunks of x tokens whose prompt has prior tokens in KV already.
type Config struct {
	Preset string // name in [Presets], "fixed", or "" for coefficients of one's own; a label only
	Model  string // name served over HTTP, the only one accepted; "" accepts every name

	A float64 // ms per step, > 0
	B float64 // ms per prompt token
	C float64 // ms per decoding sequence
	D float64 // ms per context token
	E float64 // ms per token² of causal prefill attention; 0 = linear form
	F float64 // ms when every expert is read; 0 = no expert term
	// ActiveExperts of Experts are read per token; both 0 when F is 0.
	ActiveExperts, Experts int

	// Service > 0 replaces the step model: each of MaxNumSeqs slots serves one request at a time, in this time,
	// and spreads its tokens evenly over it. There is no KV then, and the fields above and below are unused.
	Service time.Duration
	// Dist is the law of the service times, each drawn by (Seed, request id); "" = Fixed. Service is its mean.
	Dist       string
	CV         float64       // Lognormal: standard deviation ÷ mean, > 0
	MaxService time.Duration // longer draws are cut to this; 0 = none
	// Prefill + Exp(PrefillExp) is when the first token comes, within the service time; the others come evenly
	// over the rest. Both 0: the first token comes like the others. A single token comes at the end.
	Prefill, PrefillExp time.Duration

	KVTokens         int64 // KV capacity of one replica in tokens
	MaxBatchedTokens int   // token budget of a step
	MaxNumSeqs       int   // running requests of one replica
	MaxModelLen      int   // prompt + output tokens of a request

	Replicas    int    // 0 = 1
	Router      string // "" = RoundRobin
	BlockSize   int    // tokens of a hash id at Submit; 0 = DefaultBlockSize
	EngineBlock int    // tokens of a KV page, and of a prefix block over HTTP; 0 = DefaultEngineBlock
	Seed        uint64 // of the faults, the service times and the block chain
	Faults      []Fault
}

// withDefaults returns c with its zero fields filled in.
func (c Config) withDefaults() Config {
	if c.Replicas == 0 {
		c.Replicas = 1
	}
	if c.Router == "" {
		c.Router = RoundRobin
	}
	if c.BlockSize == 0 {
		c.BlockSize = DefaultBlockSize
	}
	if c.EngineBlock == 0 {
		c.EngineBlock = DefaultEngineBlock
	}
	if c.Dist == "" {
		c.Dist = Fixed
	}
	return c
}

// Validate reports every fault of c, marked as wrong usage.
func (c Config) Validate() error {
	c = c.withDefaults()
	errs := append(c.rangeFaults(), checkFaults(c.Faults, c.Replicas)...)
	if c.Service == 0 {
		errs = append(errs, c.stepFaults()...)
	} else {
		errs = append(errs, c.serviceFaults()...)
	}
	return fault.Mark(errors.Join(errs...), fault.Usage, "")
}

// maxTokens bounds every token count of a request: sums of two stay in an int32.
const maxTokens = 1 << 30

func (c *Config) rangeFaults() []error {
	var errs []error
	for _, f := range []struct {
		name     string
		v        int64
		min, max int64
	}{
		{"service (ns)", int64(c.Service), 0, int64(24 * time.Hour)},
		{"max_num_seqs", int64(c.MaxNumSeqs), 1, 1 << 20},
		{"max_model_len", int64(c.MaxModelLen), 2, maxTokens},
		{"replicas", int64(c.Replicas), 1, 1 << 12},
		{"block_size", int64(c.BlockSize), 1, 1 << 20},
		{"engine_block", int64(c.EngineBlock), 1, 1 << 20},
	} {
		if f.v < f.min || f.v > f.max {
			errs = append(errs, fmt.Errorf("%s must be %d to %d, not %d", f.name, f.min, f.max, f.v))
		}
	}
	if !slices.Contains(Routers(), c.Router) {
		errs = append(errs, fmt.Errorf("router must be one of %s, not %q", strings.Join(Routers(), ", "), c.Router))
	}
	return errs
}

func (c *Config) serviceFaults() []error {
	var errs []error
	if !slices.Contains(Distributions(), c.Dist) {
		errs = append(errs, fmt.Errorf("dist must be one of %s, not %q", strings.Join(Distributions(), ", "), c.Dist))
	}
	if c.Dist == Lognormal && !(c.CV > 0 && c.CV <= 100) {
		errs = append(errs, fmt.Errorf("cv of a lognormal service time must be above 0 and at most 100, not %v", c.CV))
	}
	if c.Dist != Lognormal && c.CV != 0 {
		errs = append(errs, fmt.Errorf("cv is of the lognormal law only, not of %s", c.Dist))
	}
	for _, d := range []struct {
		name string
		v    time.Duration
	}{{"max_service", c.MaxService}, {"prefill", c.Prefill}, {"prefill_exp", c.PrefillExp}} {
		if d.v < 0 || d.v > 24*time.Hour {
			errs = append(errs, fmt.Errorf("%s must be 0 to 24h, not %v", d.name, d.v))
		}
	}
	return errs
}

func (c *Config) stepFaults() []error {
	var errs []error
	for _, f := range []struct {
		name string
		v    float64
	}{{"a", c.A}, {"b", c.B}, {"c", c.C}, {"d", c.D}, {"e", c.E}, {"f", c.F}} {
		if !(f.v >= 0 && f.v <= 1e6) {
			errs = append(errs, fmt.Errorf("%s must be 0 to 1e6 ms, not %v", f.name, f.v))
		}
	}
	if c.A == 0 {
		errs = append(errs, errors.New("a must be > 0: every step takes time"))
	}
	if c.F != 0 && (c.ActiveExperts <= 0 || c.ActiveExperts > c.Experts) {
		errs = append(errs, fmt.Errorf("f needs 0 < active_experts <= experts, not %d of %d", c.ActiveExperts, c.Experts))
	}
	if c.KVTokens < 1 || c.KVTokens > 1<<40 {
		errs = append(errs, fmt.Errorf("kv_tokens must be 1 to %d, not %d", int64(1)<<40, c.KVTokens))
	}
	if c.MaxBatchedTokens < c.MaxNumSeqs || c.MaxBatchedTokens > maxTokens {
		errs = append(errs, fmt.Errorf("max_num_batched_tokens must be %d (max_num_seqs) to %d, not %d",
			c.MaxNumSeqs, maxTokens, c.MaxBatchedTokens))
	}
	if int64(c.MaxModelLen) > c.KVTokens {
		errs = append(errs, fmt.Errorf("max_model_len %d does not fit in kv_tokens %d", c.MaxModelLen, c.KVTokens))
	}
	return errs
}
