package sim

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Key is one key of a spec.
type Key struct {
	Name  string
	Doc   string
	Steps bool // applies to the step model
	Fixed bool // applies to the fixed-service engine

	set func(*Config, string) error
	get func(*Config) string
}

// Keys lists every key that ParseSpec knows, in the order in which Config.String writes them.
func Keys() []Key {
	return []Key{
		durationKey("service", "service time of a request, such as 300ms", func(c *Config) *time.Duration { return &c.Service }),
		intKey("slots", "requests served at once", false, true, func(c *Config) *int { return &c.MaxNumSeqs }),
		floatKey("a", "ms per step", func(c *Config) *float64 { return &c.A }),
		floatKey("b", "ms per prompt token", func(c *Config) *float64 { return &c.B }),
		floatKey("c", "ms per decoding sequence", func(c *Config) *float64 { return &c.C }),
		floatKey("d", "ms per context token of the decoding sequences", func(c *Config) *float64 { return &c.D }),
		floatKey("e", "ms per token² of prefill attention", func(c *Config) *float64 { return &c.E }),
		floatKey("f", "ms of a step that reads every expert", func(c *Config) *float64 { return &c.F }),
		intKey("active_experts", "experts read per token", true, false, func(c *Config) *int { return &c.ActiveExperts }),
		intKey("experts", "experts of the model", true, false, func(c *Config) *int { return &c.Experts }),
		kvKey(),
		intKey("max_num_batched_tokens", "token budget of a step", true, false, func(c *Config) *int { return &c.MaxBatchedTokens }),
		intKey("max_num_seqs", "running requests of a replica", true, false, func(c *Config) *int { return &c.MaxNumSeqs }),
		intKey("max_model_len", "prompt + output tokens of a request", true, true, func(c *Config) *int { return &c.MaxModelLen }),
		intKey("replicas", "equal replicas behind the router", true, true, func(c *Config) *int { return &c.Replicas }),
		stringKey("router", RoundRobin+" or "+LeastInFlight, func(c *Config) *string { return &c.Router }),
		intKey("block_size", "tokens of a hash id in the trace", true, false, func(c *Config) *int { return &c.BlockSize }),
		intKey("engine_block", "tokens of a KV page", true, false, func(c *Config) *int { return &c.EngineBlock }),
		seedKey(),
		stringKey("model", "served model name; others get 404", func(c *Config) *string { return &c.Model }),
		shareKey("http_503", "share of requests answered 503", func(c *Config) *float64 { return &c.Faults.HTTP503 }),
		shareKey("http_429", "share of requests answered 429", func(c *Config) *float64 { return &c.Faults.HTTP429 }),
		shareKey("error_event", "share that ends in an error object", func(c *Config) *float64 { return &c.Faults.ErrorEvent }),
		shareKey("cut", "share whose stream is cut", func(c *Config) *float64 { return &c.Faults.Cut }),
		slowKey(),
	}
}

func intKey(name, doc string, steps, fixed bool, at func(*Config) *int) Key {
	return Key{Name: name, Doc: doc, Steps: steps, Fixed: fixed,
		set: func(c *Config, s string) (err error) { *at(c), err = wholeNumber(s); return err },
		get: func(c *Config) string { return strconv.Itoa(*at(c)) }}
}

func wholeNumber(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0, errors.New("not a whole number")
	}
	return n, nil
}

func floatKey(name, doc string, at func(*Config) *float64) Key {
	return Key{Name: name, Doc: doc, Steps: true,
		set: func(c *Config, s string) (err error) { *at(c), err = number(s); return err },
		get: func(c *Config) string { return strconv.FormatFloat(*at(c), 'g', -1, 64) }}
}

func number(s string) (float64, error) {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return 0, errors.New("not a number")
	}
	return v, nil
}

// shareKey reads 0.01 and 1%.
func shareKey(name, doc string, at func(*Config) *float64) Key {
	k := floatKey(name, doc, at)
	k.Fixed = true
	k.set = func(c *Config, s string) error {
		digits, percent := strings.CutSuffix(s, "%")
		v, err := number(digits)
		if percent {
			v /= 100
		}
		*at(c) = v
		return err
	}
	return k
}

func stringKey(name, doc string, at func(*Config) *string) Key {
	return Key{Name: name, Doc: doc, Steps: true, Fixed: true,
		set: func(c *Config, s string) error { *at(c) = s; return nil },
		get: func(c *Config) string { return *at(c) }}
}

func durationKey(name, doc string, at func(*Config) *time.Duration) Key {
	return Key{Name: name, Doc: doc, Fixed: true,
		set: func(c *Config, s string) error {
			d, err := time.ParseDuration(s)
			if err != nil || d <= 0 {
				return errors.New("not a duration above 0 such as 300ms")
			}
			*at(c) = d
			return nil
		},
		get: func(c *Config) string { return at(c).String() }}
}

func kvKey() Key {
	return Key{Name: "kv_tokens", Doc: "KV capacity of a replica in tokens", Steps: true,
		set: func(c *Config, s string) error {
			n, err := wholeNumber(s)
			c.KVTokens = int64(n)
			return err
		},
		get: func(c *Config) string { return strconv.FormatInt(c.KVTokens, 10) }}
}

func seedKey() Key {
	return Key{Name: "seed", Doc: "seed of the faults", Steps: true, Fixed: true,
		set: func(c *Config, s string) error {
			n, err := strconv.ParseUint(s, 10, 64)
			if err != nil {
				return errors.New("not a whole number from 0")
			}
			c.Seed = n
			return nil
		},
		get: func(c *Config) string { return strconv.FormatUint(c.Seed, 10) }}
}

// slowKey reads replica:factor.
func slowKey() Key {
	return Key{Name: "slow", Doc: "replica:factor, steps of this replica take factor times as long", Steps: true, Fixed: true,
		set: func(c *Config, s string) error {
			r, f, ok := strings.Cut(s, ":")
			n, errN := wholeNumber(r)
			v, errV := number(f)
			if !ok || errN != nil || errV != nil || v <= 0 {
				return errors.New("not replica:factor such as 0:2.5")
			}
			c.Faults.SlowReplica, c.Faults.SlowFactor = n, v
			return nil
		},
		get: func(c *Config) string {
			return fmt.Sprintf("%d:%s", c.Faults.SlowReplica, strconv.FormatFloat(c.Faults.SlowFactor, 'g', -1, 64))
		}}
}
