package sim

import (
	"errors"
	"fmt"
	"math"
	"time"

	"tailgate/internal/fault"
)

// Routers of a cluster.
const (
	RoundRobin    = "round_robin"
	LeastInFlight = "least_in_flight" // ties go round robin
)

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

	// Service > 0 replaces the step model: each of MaxNumSeqs slots serves one request in exactly this time and
	// spreads its tokens evenly over it. There is no KV then, and the fields above and below it are unused.
	Service time.Duration

	KVTokens         int64 // KV capacity of one replica in tokens
	MaxBatchedTokens int   // token budget of a step
	MaxNumSeqs       int   // running requests of one replica
	MaxModelLen      int   // prompt + output tokens of a request

	Replicas    int    // 0 = 1
	Router      string // "" = RoundRobin
	BlockSize   int    // tokens of a hash id at Submit; 0 = DefaultBlockSize
	EngineBlock int    // tokens of a KV page, and of a prefix block over HTTP; 0 = DefaultEngineBlock
	Seed        uint64 // of the faults and of the block chain
	Faults      Faults // zero = none
}

// Faults are injected at random shares, each decided by (seed, request id) alone, so that both clocks hit the
// same requests. Over HTTP the id is the decimal suffix of X-Request-Id, else a hash of it, else a counter.
type Faults struct {
	HTTP503    float64 // share answered 503 at once
	HTTP429    float64 // share answered 429 at once
	ErrorEvent float64 // share whose stream ends in an error object inside a 200 answer
	Cut        float64 // share whose connection is cut before its last token
	// SlowFactor > 0 multiplies every step of replica SlowReplica; 0 = none.
	SlowReplica int
	SlowFactor  float64
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
	return c
}

// Validate reports every fault of c, marked as wrong usage.
func (c Config) Validate() error {
	c = c.withDefaults()
	errs := append(c.rangeFaults(), c.Faults.faults(c.Replicas)...)
	if c.Service == 0 {
		errs = append(errs, c.stepFaults()...)
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
	if c.Router != RoundRobin && c.Router != LeastInFlight {
		errs = append(errs, fmt.Errorf("router must be %s or %s, not %q", RoundRobin, LeastInFlight, c.Router))
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

func (f *Faults) faults(replicas int) []error {
	var errs []error
	for _, s := range []struct {
		name string
		v    float64
	}{{"http_503", f.HTTP503}, {"http_429", f.HTTP429}, {"error_event", f.ErrorEvent}, {"cut", f.Cut}} {
		if !(s.v >= 0 && s.v <= 1) {
			errs = append(errs, fmt.Errorf("%s must be a share from 0 to 1, not %v", s.name, s.v))
		}
	}
	// A rounding error of the sum is not a fault of the user.
	if sum := f.HTTP503 + f.HTTP429 + f.ErrorEvent + f.Cut; sum > 1+1e-9 {
		errs = append(errs, fmt.Errorf("fault shares must add up to at most 1, not %v", sum))
	}
	if !(f.SlowFactor >= 0 && f.SlowFactor <= 1e3) || math.IsNaN(f.SlowFactor) {
		errs = append(errs, fmt.Errorf("slow factor must be above 0 and at most 1000, not %v", f.SlowFactor))
	}
	if f.SlowFactor != 0 && (f.SlowReplica < 0 || f.SlowReplica >= replicas) {
		errs = append(errs, fmt.Errorf("slow names replica %d of %d (they count from 0)", f.SlowReplica, replicas))
	}
	return errs
}
