// Package telemetry looks at the targets of a run once a second: it scrapes their metrics and those of the machines beside
// them, maps the names of each engine to canonical ones, and records them.
//
// It judges nothing, but it tells what makes a run doubtful: an engine that restarted, looks that failed.
//
// In: the /metrics of vLLM, SGLang, TensorRT-LLM, Triton, TGI, llama.cpp, Dynamo, DCGM, node_exporter and any process, in the
// text format of Prometheus. Out: rows of the telemetry table.
package telemetry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"tailgate/internal/fault"
)

const (
	// DefaultEvery is the time between two looks.
	DefaultEvery = time.Second
	// histogramsEvery is the number of looks between two records of the histograms, which are long and explain only.
	histogramsEvery = 10
	// patience is how long an endpoint may take; the looks that it misses meanwhile are counted.
	patience = 5 * time.Second
	// stale is the age at which a gauge is no longer known.
	stale = 5 * time.Second
	// maxExposition bounds one answer in bytes.
	maxExposition = 64 << 20
)

// Endpoint is one exposition.
type Endpoint struct {
	Target string // as in results, or a name of its own
	URL    string
	Key    string // bearer token; "" = none
}

// Options of a sampler.
type Options struct {
	Endpoints []Endpoint
	Every     time.Duration // 0 = DefaultEvery
	// DialContext replaces the network, for tests; nil = TCP.
	DialContext func(ctx context.Context, network, addr string) (net.Conn, error)
	Logger      *slog.Logger // nil = discard
}

// Validate reports every fault. The error is fault.Usage.
func (o *Options) Validate() error {
	var errs []error
	for _, e := range o.Endpoints {
		if u, err := url.Parse(e.URL); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			errs = append(errs, fmt.Errorf("telemetry: %q is not a URL such as http://host:9400/metrics", e.URL))
		}
	}
	if o.Every < 0 {
		errs = append(errs, fmt.Errorf("telemetry: the time between looks must be >= 0, not %v", o.Every))
	}
	return fault.Mark(errors.Join(errs...), fault.Usage, "")
}

// MetricsURL is where an engine at base shows its metrics.
func MetricsURL(base string) string {
	return strings.TrimSuffix(strings.TrimSuffix(base, "/"), "/v1") + "/metrics"
}

// engines are the engines by what their raw names begin with.
var engines = []struct{ prefix, engine string }{
	{"vllm_", "vllm"}, {"sglang_", "sglang"}, {"trtllm_", "tensorrt_llm"}, {"nv_trt_llm_", "triton"}, {"tgi_", "tgi"},
	{"llamacpp_", "llama_cpp"}, {"dynamo_", "dynamo"}, {"DCGM_", "dcgm"}, {"node_", "node_exporter"},
}

// engineOf names the engine whose samples these are; "" = none that is known.
func engineOf(samples []Sample) string {
	for _, e := range engines {
		for i := range samples {
			if strings.HasPrefix(samples[i].Name, e.prefix) {
				return e.engine
			}
		}
	}
	return ""
}

// look asks an endpoint once.
func (s *Sampler) look(ctx context.Context, e *Endpoint) ([]Sample, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, e.URL, nil)
	if err != nil {
		return nil, err
	}
	// Any other format would have other names: see Sample.
	req.Header.Set("Accept", "text/plain;version=0.0.4")
	if e.Key != "" {
		req.Header.Set("Authorization", "Bearer "+e.Key)
	}
	resp, err := s.http.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		// Only the connection's reuse is at stake.
		_, _ = io.CopyN(io.Discard, resp.Body, 64<<10)
		return nil, fmt.Errorf("%s answers %s", e.URL, resp.Status)
	}
	return Parse(io.LimitReader(resp.Body, maxExposition))
}
