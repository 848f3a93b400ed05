package sim

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"tailgate/schemas"
)

// Bucket bounds in seconds as in vLLM 0.33.
var (
	ttftBuckets = []float64{.001, .005, .01, .02, .04, .06, .08, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560}
	itlBuckets  = []float64{.01, .025, .05, .075, .1, .15, .2, .3, .4, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80}
	e2eBuckets  = []float64{.3, .5, .8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680}
	tokenCounts = []float64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000, 100000}
	lateBuckets = []float64{25e-6, 50e-6, 100e-6, 250e-6, 500e-6, .001, .0025, .005, .01, .025, .05, .1, .25, 1}
)

// metrics is the registry behind /metrics: vLLM's names with its labels model_name and engine (the replica),
// and the simulator's own lateness.
type metrics struct {
	registry      *prometheus.Registry
	byReplica     []latencies
	stepLateness  prometheus.Histogram
	writeLateness prometheus.Histogram
}

// latencies are the histograms of one replica.
type latencies struct {
	ttft, itl, e2e, queue, prefill, decode, inference, tpot prometheus.Observer
	prompt, generation                                      prometheus.Observer // tokens
}

func newMetrics(s *Server) *metrics {
	m := &metrics{registry: prometheus.NewRegistry()}
	model := s.cfg.served()
	vec := func(name, help string, buckets []float64) *prometheus.HistogramVec {
		v := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, []string{"model_name", "engine"})
		m.registry.MustRegister(v)
		return v
	}
	histograms := []struct {
		name, help string
		buckets    []float64
		of         func(*latencies) *prometheus.Observer
	}{
		{"time_to_first_token_seconds", "Time from arrival to the first token.", ttftBuckets, func(l *latencies) *prometheus.Observer { return &l.ttft }},
		{"inter_token_latency_seconds", "Time between tokens.", itlBuckets, func(l *latencies) *prometheus.Observer { return &l.itl }},
		{"e2e_request_latency_seconds", "Time from arrival to the last token.", e2eBuckets, func(l *latencies) *prometheus.Observer { return &l.e2e }},
		{"request_queue_time_seconds", "Time from arrival to the first scheduling.", e2eBuckets, func(l *latencies) *prometheus.Observer { return &l.queue }},
		{"request_prefill_time_seconds", "Time from the first scheduling to the first token.", e2eBuckets, func(l *latencies) *prometheus.Observer { return &l.prefill }},
		{"request_decode_time_seconds", "Time from the first token to the last.", e2eBuckets, func(l *latencies) *prometheus.Observer { return &l.decode }},
		{"request_inference_time_seconds", "Time from the first scheduling to the last token.", e2eBuckets, func(l *latencies) *prometheus.Observer { return &l.inference }},
		{"request_time_per_output_token_seconds", "Decode time over the tokens behind the first.", itlBuckets, func(l *latencies) *prometheus.Observer { return &l.tpot }},
		{"request_prompt_tokens", "Prompt tokens of a request.", tokenCounts, func(l *latencies) *prometheus.Observer { return &l.prompt }},
		{"request_generation_tokens", "Tokens generated for a request.", tokenCounts, func(l *latencies) *prometheus.Observer { return &l.generation }},
	}
	m.byReplica = make([]latencies, s.cfg.Replicas)
	for _, h := range histograms {
		v := vec("vllm:"+h.name, h.help, h.buckets)
		for i := range m.byReplica {
			*h.of(&m.byReplica[i]) = v.WithLabelValues(model, strconv.Itoa(i))
		}
	}
	m.stepLateness = prometheus.NewHistogram(prometheus.HistogramOpts{Name: "tailgate_sim_step_lateness_seconds",
		Help: "How late the simulator noticed the end of a step.", Buckets: lateBuckets})
	m.writeLateness = prometheus.NewHistogram(prometheus.HistogramOpts{Name: "tailgate_sim_write_lateness_seconds",
		Help: "How late after the end of its step a token was written.", Buckets: lateBuckets})
	m.registry.MustRegister(m.stepLateness, m.writeLateness, newEngineCollector(s),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// observe adds an event to the histograms. The server's mutex is held.
func (m *metrics) observe(st *stream, ev *schemas.EngineEvent) {
	h := &m.byReplica[ev.Target]
	if ev.Tokens > 0 {
		if st.last == 0 {
			h.ttft.Observe(seconds(ev.AtNs - st.r.arrived))
		} else {
			h.itl.Observe(seconds(ev.AtNs - st.last))
		}
		st.last = ev.AtNs
	}
	if ev.Done {
		h.ended(st, ev)
	}
}

// ended adds what is told of a request once it has ended.
func (h *latencies) ended(st *stream, ev *schemas.EngineEvent) {
	h.queue.Observe(seconds(ev.QueueNs))
	if ev.Status != schemas.ResultOK {
		return
	}
	scheduled := st.r.arrived + ev.QueueNs
	decode := st.last - scheduled - ev.PrefillNs
	h.e2e.Observe(seconds(st.last - st.r.arrived))
	h.prefill.Observe(seconds(ev.PrefillNs))
	h.decode.Observe(seconds(decode))
	h.inference.Observe(seconds(st.last - scheduled))
	if n := ev.OutputTokens - 1; n > 0 {
		h.tpot.Observe(seconds(decode) / float64(n))
	}
	h.prompt.Observe(float64(ev.InputTokens))
	h.generation.Observe(float64(ev.OutputTokens))
}

func seconds(ns int64) float64 { return float64(ns) / 1e9 }

// engineCollector reads the cluster's gauges and counters when it is scraped.
type engineCollector struct {
	server   *Server
	gauges   []reading
	success  *prometheus.Desc
	cache    *prometheus.Desc
	settings []string // label values of cache
}

type reading struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	of   func(*ReplicaStats) float64
}

func newEngineCollector(s *Server) *engineCollector {
	labels := []string{"model_name", "engine"}
	c := &engineCollector{
		server:  s,
		success: prometheus.NewDesc("vllm:request_success_total", "Requests ended, by reason.", append(labels, "finished_reason"), nil),
		cache:   prometheus.NewDesc("vllm:cache_config_info", "KV cache settings.", []string{"engine", "block_size", "num_gpu_blocks", "enable_prefix_caching"}, nil),
		settings: []string{strconv.Itoa(s.cfg.EngineBlock), strconv.FormatInt(s.cfg.KVTokens/int64(s.cfg.EngineBlock), 10),
			strconv.FormatBool(s.cfg.Service == 0)},
	}
	add := func(name, help string, kind prometheus.ValueType, of func(*ReplicaStats) float64) {
		c.gauges = append(c.gauges, reading{prometheus.NewDesc("vllm:"+name, help, labels, nil), kind, of})
	}
	gauge, counter := prometheus.GaugeValue, prometheus.CounterValue
	add("num_requests_running", "Requests admitted.", gauge, func(r *ReplicaStats) float64 { return float64(r.Running) })
	add("num_requests_waiting", "Requests queued.", gauge, func(r *ReplicaStats) float64 { return float64(r.Waiting) })
	add("kv_cache_usage_perc", "Share of KV blocks held, 0 to 1.", gauge, func(r *ReplicaStats) float64 { return r.KVUsage })
	add("prefix_cache_queries_total", "Prompt tokens looked up.", counter, func(r *ReplicaStats) float64 { return float64(r.PrefixQueries) })
	add("prefix_cache_hits_total", "Prompt tokens found.", counter, func(r *ReplicaStats) float64 { return float64(r.PrefixHits) })
	add("num_preemptions_total", "Preemptions by recompute.", counter, func(r *ReplicaStats) float64 { return float64(r.Preemptions) })
	add("prompt_tokens_total", "Prompt tokens computed, cached ones included.", counter, func(r *ReplicaStats) float64 { return float64(r.PromptTokens) })
	add("generation_tokens_total", "Tokens generated.", counter, func(r *ReplicaStats) float64 { return float64(r.GenerationTokens) })
	return c
}

func (c *engineCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, g := range c.gauges {
		ch <- g.desc
	}
	ch <- c.success
	ch <- c.cache
}

func (c *engineCollector) Collect(ch chan<- prometheus.Metric) {
	model := c.server.cfg.served()
	for i, s := range c.server.stats() {
		engine := strconv.Itoa(i)
		for _, g := range c.gauges {
			ch <- prometheus.MustNewConstMetric(g.desc, g.kind, g.of(&s), model, engine)
		}
		for _, f := range []struct {
			reason string
			n      int64
		}{{"length", s.FinishedLength}, {"error", s.FinishedError}, {"abort", s.FinishedAborted}} {
			ch <- prometheus.MustNewConstMetric(c.success, prometheus.CounterValue, float64(f.n), model, engine, f.reason)
		}
		ch <- prometheus.MustNewConstMetric(c.cache, prometheus.GaugeValue, 1, append([]string{engine}, c.settings...)...)
	}
}
