package telemetry

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"tailgate/schemas"
)

// Sampler looks at endpoints once a second. Make it with New.
type Sampler struct {
	opts   Options
	http   *http.Transport
	mapper *mapper
	states []*state
	stop   context.CancelFunc
	group  sync.WaitGroup
}

// state is what is known of one endpoint.
type state struct {
	Endpoint
	mu        sync.Mutex
	at        time.Time // of the last look that worked
	values    []Value
	totals    map[string]float64 // cumulative values of the last look
	looks     int
	failed    int
	lastFault string
	restarted bool
	engine    string   // of the first look
	metrics   []string // of the first look
}

// Told is what one endpoint told in a first look, or over a run.
type Told struct {
	Target    string   `json:"target"`
	URL       string   `json:"url"`
	Engine    string   `json:"engine,omitempty"`
	Metrics   []string `json:"metrics,omitempty"` // canonical names
	Looks     int      `json:"looks"`
	Failed    int      `json:"failed"`
	Fault     string   `json:"fault,omitempty"` // of the last failed look
	Restarted bool     `json:"restarted,omitempty"`
}

// New makes a sampler; it does not look yet.
func New(o Options) (*Sampler, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if o.Every == 0 {
		o.Every = DefaultEvery
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Sampler{opts: o, http: &http.Transport{DialContext: o.DialContext, Proxy: nil}, mapper: newMapper()}
	for _, e := range o.Endpoints {
		s.states = append(s.states, &state{Endpoint: e})
	}
	return s, nil
}

// Probe looks at every endpoint once and says what it has.
func (s *Sampler) Probe(ctx context.Context) []Told {
	out := make([]Told, len(s.states))
	var group sync.WaitGroup
	for i, st := range s.states {
		group.Go(func() {
			t := Told{Target: st.Target, URL: st.URL, Looks: 1}
			samples, err := s.look(ctx, &st.Endpoint)
			if err != nil {
				t.Failed, t.Fault = 1, err.Error()
			}
			t.Engine = engineOf(samples)
			values := s.mapper.canonical(samples)
			for _, v := range values {
				if !slices.Contains(t.Metrics, v.Metric) && !strings.HasSuffix(v.Metric, "_bucket") {
					t.Metrics = append(t.Metrics, v.Metric)
				}
			}
			if err == nil {
				st.note(time.Now(), values)
			}
			st.engine, st.metrics = t.Engine, t.Metrics
			out[i] = t
		})
	}
	group.Wait()
	return out
}

// Start looks at every endpoint at each multiple of the pause since zero and records into rec, until Stop.
func (s *Sampler) Start(zero time.Time, rec *Recorder) {
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	for _, st := range s.states {
		s.group.Go(func() { s.watch(ctx, st, zero, rec) })
	}
}

// watch is the life of one endpoint: a slow one delays no other, and its own next look is at the next free instant.
func (s *Sampler) watch(ctx context.Context, st *state, zero time.Time, rec *Recorder) {
	for n := 0; ; n++ {
		s.record(ctx, st, zero, rec, n%histogramsEvery == 0)
		since := time.Since(zero)
		next := since.Truncate(s.opts.Every)
		if next <= since {
			next += s.opts.Every
		}
		timer := time.NewTimer(next - since)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}

func (s *Sampler) record(ctx context.Context, st *state, zero time.Time, rec *Recorder, histograms bool) {
	at := time.Now()
	samples, err := s.look(ctx, &st.Endpoint)
	if ctx.Err() != nil {
		return
	}
	values := s.mapper.canonical(samples)
	ok := Value{Metric: schemas.MetricScrapeOK, Labels: map[string]string{}, Value: 1}
	st.mu.Lock()
	st.looks++
	if err != nil {
		st.failed++
		st.lastFault = err.Error()
		ok.Value = 0
		if st.failed == 1 {
			s.opts.Logger.Warn("a look at a target's metrics failed", "target", st.Target, "error", err)
		}
	}
	st.mu.Unlock()
	if err == nil {
		st.note(at, values)
	}
	if !histograms {
		values = slices.DeleteFunc(slices.Clone(values), isHistogram)
	}
	rec.Add(at.Sub(zero).Microseconds(), st.Target, append([]Value{ok}, values...))
}

func isHistogram(v Value) bool {
	return strings.HasSuffix(v.Metric, "_s_bucket") || strings.HasSuffix(v.Metric, "_s_sum") || strings.HasSuffix(v.Metric, "_s_count")
}

// note keeps the values of a look, and sees a restart: a total that went back, or another start of the process.
func (st *state) note(at time.Time, values []Value) {
	st.mu.Lock()
	defer st.mu.Unlock()
	totals := make(map[string]float64, len(values))
	for _, v := range values {
		if !v.Cumulative && v.Metric != schemas.MetricProcessStart {
			continue
		}
		key := seriesKey(v.Metric, v.Labels)
		totals[key] = v.Value
		if old, seen := st.totals[key]; seen && (v.Value < old || v.Metric == schemas.MetricProcessStart && v.Value != old) {
			st.restarted = true
		}
	}
	st.at, st.values, st.totals = at, values, totals
}

// aliases are the short names of rules that stop a run.
var aliases = map[string]string{"waiting": schemas.MetricRequestsWaiting, "running": schemas.MetricRequestsRunning, "kv_usage": schemas.MetricKVUsedRatio}

// Canonical is the name under which a metric of a rule is recorded.
func Canonical(metric string) string {
	if name, ok := aliases[metric]; ok {
		return name
	}
	return metric
}

// Gauge tells a metric of now over all endpoints: sums of counts, the maximum of shares (*_ratio). It is false when no
// endpoint has told it in the last seconds.
func (s *Sampler) Gauge(metric string) (float64, bool) {
	metric = Canonical(metric)
	total, known := 0.0, false
	for _, st := range s.states {
		st.mu.Lock()
		if time.Since(st.at) < stale {
			for _, v := range st.values {
				switch {
				case v.Metric != metric:
				case strings.HasSuffix(metric, "_ratio"):
					total, known = max(total, v.Value), true
				default:
					total, known = total+v.Value, true
				}
			}
		}
		st.mu.Unlock()
	}
	return total, known
}

// Stop ends the looks, after a last one with histograms, and says what was seen over the run.
func (s *Sampler) Stop(zero time.Time, rec *Recorder) []Told {
	if s.stop != nil {
		s.stop()
		s.group.Wait()
	}
	for _, st := range s.states {
		s.group.Go(func() { s.record(context.Background(), st, zero, rec, true) })
	}
	s.group.Wait()
	s.http.CloseIdleConnections()
	out := make([]Told, len(s.states))
	for i, st := range s.states {
		out[i] = Told{Target: st.Target, URL: st.URL, Engine: st.engine, Metrics: st.metrics, Looks: st.looks, Failed: st.failed, Fault: st.lastFault, Restarted: st.restarted}
	}
	return out
}

// Doubts says what a run's telemetry speaks against its validity.
func Doubts(told []Told) []string {
	var out []string
	for _, t := range told {
		if t.Restarted {
			out = append(out, fmt.Sprintf("target %s restarted during the run", t.Target))
		}
	}
	return out
}
