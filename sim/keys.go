package sim

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

// Key is one key of a spec.
type Key struct {
	Name  string
	Doc   string
	Steps bool // applies to the step model
	Fixed bool // applies to the fixed-service engine, and to the queue engine
	Queue bool // applies to the queue engine
	Fault bool // a fault; may be given several times

	set func(*Config, string) error
	get func(*Config) string
}

// Keys lists every key that ParseSpec knows, in the order in which Config.String writes them.
func Keys() []Key {
	keys := []Key{
		serviceKey(),
		intKey("slots", "requests served at once", fixedKeys, func(c *Config) *int { return &c.MaxNumSeqs }),
		floatKey("a", "ms per step", stepKeys, func(c *Config) *float64 { return &c.A }),
		floatKey("b", "ms per prompt token", stepKeys, func(c *Config) *float64 { return &c.B }),
		floatKey("c", "ms per decoding sequence", stepKeys, func(c *Config) *float64 { return &c.C }),
		floatKey("d", "ms per context token of the decoding sequences", stepKeys, func(c *Config) *float64 { return &c.D }),
		floatKey("e", "ms per token² of prefill attention", stepKeys, func(c *Config) *float64 { return &c.E }),
		floatKey("f", "ms of a step that reads every expert", stepKeys, func(c *Config) *float64 { return &c.F }),
		intKey("active_experts", "experts read per token", stepKeys, func(c *Config) *int { return &c.ActiveExperts }),
		intKey("experts", "experts of the model", stepKeys, func(c *Config) *int { return &c.Experts }),
		kvKey(),
		intKey("max_num_batched_tokens", "token budget of a step", stepKeys, func(c *Config) *int { return &c.MaxBatchedTokens }),
		intKey("max_num_seqs", "running requests of a replica", stepKeys, func(c *Config) *int { return &c.MaxNumSeqs }),
		stringKey("dist", "law of the service time: "+strings.Join(Distributions(), ", "), queueKeys, func(c *Config) *string { return &c.Dist }),
		floatKey("cv", "standard deviation ÷ mean of a lognormal service time", queueKeys, func(c *Config) *float64 { return &c.CV }),
		durationKey("max_service", "cap of the service time", queueKeys, func(c *Config) *time.Duration { return &c.MaxService }),
		durationKey("prefill", "time to the first token inside the service time", queueKeys, func(c *Config) *time.Duration { return &c.Prefill }),
		durationKey("prefill_exp", "mean of an exponential time added to prefill", queueKeys, func(c *Config) *time.Duration { return &c.PrefillExp }),
		intKey("max_model_len", "prompt + output tokens of a request", allKeys, func(c *Config) *int { return &c.MaxModelLen }),
		intKey("replicas", "equal replicas behind the router", allKeys, func(c *Config) *int { return &c.Replicas }),
		stringKey("router", strings.Join(Routers(), ", "), allKeys, func(c *Config) *string { return &c.Router }),
		intKey("block_size", "tokens of a hash id in the trace", stepKeys, func(c *Config) *int { return &c.BlockSize }),
		intKey("engine_block", "tokens of a KV page", stepKeys, func(c *Config) *int { return &c.EngineBlock }),
		seedKey(),
		stringKey("model", "served model name; others get 404", allKeys, func(c *Config) *string { return &c.Model }),
	}
	for _, d := range FaultDocs() {
		keys = append(keys, faultKey(d))
	}
	return keys
}

// reach says which engines a key applies to.
type reach struct{ steps, fixed, queue bool }

var (
	stepKeys  = reach{steps: true}
	fixedKeys = reach{fixed: true}
	queueKeys = reach{queue: true}
	allKeys   = reach{steps: true, fixed: true}
)

func (a reach) key(name, doc string, set func(*Config, string) error, get func(*Config) string) Key {
	return Key{Name: name, Doc: doc, Steps: a.steps, Fixed: a.fixed, Queue: a.queue, set: set, get: get}
}

// applies tells whether the key belongs to the engine of the given label.
func (k *Key) applies(preset string) bool {
	switch preset {
	case fixedPreset:
		return k.Fixed
	case queuePreset:
		return k.Fixed || k.Queue
	}
	return k.Steps
}

func intKey(name, doc string, on reach, at func(*Config) *int) Key {
	return on.key(name, doc,
		func(c *Config, s string) (err error) { *at(c), err = wholeNumber(s); return err },
		func(c *Config) string { return strconv.Itoa(*at(c)) })
}

func wholeNumber(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0, errors.New("not a whole number")
	}
	return n, nil
}

func floatKey(name, doc string, on reach, at func(*Config) *float64) Key {
	return on.key(name, doc,
		func(c *Config, s string) (err error) { *at(c), err = number(s); return err },
		func(c *Config) string { return strconv.FormatFloat(*at(c), 'g', -1, 64) })
}

func number(s string) (float64, error) {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return 0, errors.New("not a number")
	}
	return v, nil
}

func stringKey(name, doc string, on reach, at func(*Config) *string) Key {
	return on.key(name, doc,
		func(c *Config, s string) error { *at(c) = s; return nil },
		func(c *Config) string { return *at(c) })
}

func durationKey(name, doc string, on reach, at func(*Config) *time.Duration) Key {
	return on.key(name, doc,
		func(c *Config, s string) error {
			d, err := time.ParseDuration(s)
			if err != nil || d < 0 {
				return errors.New("not a duration such as 300ms")
			}
			*at(c) = d
			return nil
		},
		func(c *Config) string { return at(c).String() })
}

func serviceKey() Key {
	k := durationKey("service", "service time of a request, its mean for queue:, such as 300ms", fixedKeys, func(c *Config) *time.Duration { return &c.Service })
	set := k.set
	k.set = func(c *Config, s string) error {
		if err := set(c, s); err != nil || c.Service == 0 {
			return errors.New("not a duration above 0 such as 300ms")
		}
		return nil
	}
	return k
}

func kvKey() Key {
	return stepKeys.key("kv_tokens", "KV capacity of a replica in tokens",
		func(c *Config, s string) error {
			n, err := wholeNumber(s)
			c.KVTokens = int64(n)
			return err
		},
		func(c *Config) string { return strconv.FormatInt(c.KVTokens, 10) })
}

func seedKey() Key {
	return allKeys.key("seed", "seed of the faults and the service times",
		func(c *Config, s string) error {
			n, err := strconv.ParseUint(s, 10, 64)
			if err != nil {
				return errors.New("not a whole number from 0")
			}
			c.Seed = n
			return nil
		},
		func(c *Config) string { return strconv.FormatUint(c.Seed, 10) })
}

// faultKey adds one fault of its kind.
func faultKey(d FaultDoc) Key {
	k := allKeys.key(d.Kind, d.Value+": "+d.Doc, func(c *Config, s string) error {
		f, err := parseFaultValue(d.Kind, s)
		if err != nil {
			return err
		}
		c.Faults = append(c.Faults, f)
		return nil
	}, nil)
	k.Fault = true
	return k
}
