package telemetry_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tailgate/internal/parquetio"
	"tailgate/internal/pipenet"
	"tailgate/replay/telemetry"
	"tailgate/schemas"
)

// watch runs a sampler for d against a handler, in virtual time, and returns what was told and the recorder's folder.
func watch(t *testing.T, d time.Duration, h http.HandlerFunc, during func(s *telemetry.Sampler)) ([]telemetry.Told, *telemetry.Recorder, string) {
	t.Helper()
	dir := t.TempDir()
	rec := telemetry.NewRecorder(dir, "run", schemas.Footer{Tool: "test"})
	var told []telemetry.Told
	synctest.Test(t, func(t *testing.T) {
		l := pipenet.Listen()
		srv := &http.Server{Handler: h}
		var served sync.WaitGroup
		served.Go(func() { _ = srv.Serve(l) })
		s, err := telemetry.New(telemetry.Options{Endpoints: []telemetry.Endpoint{{Target: "a", URL: "http://a/metrics"}}, DialContext: l.DialContext})
		if err != nil {
			t.Fatal(err)
		}
		zero := time.Now()
		s.Start(zero, rec)
		time.Sleep(d)
		if during != nil {
			during(s)
		}
		told = s.Stop(zero, rec)
		srv.Close()
		served.Wait()
	})
	return told, rec, dir
}

func rows(t *testing.T, rec *telemetry.Recorder, dir string) []schemas.TelemetrySample {
	t.Helper()
	digest, err := rec.Finish()
	if err != nil {
		t.Fatal(err)
	}
	out, _, err := parquetio.ReadFile[schemas.TelemetrySample](filepath.Join(dir, schemas.TelemetryName))
	if err != nil {
		t.Fatal(err)
	}
	if digest.Rows != int64(len(out)) {
		t.Errorf("digest says %d rows, there are %d", digest.Rows, len(out))
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "telemetry-*")); len(left) > 0 {
		t.Errorf("segments are left: %v", left)
	}
	return out
}

// at lists the instants of a metric in ms with its values.
func at(rows []schemas.TelemetrySample, metric string) (out []string) {
	for _, r := range rows {
		if r.Metric == metric {
			out = append(out, fmt.Sprintf("%d:%g", r.AtUs/1000, r.Value))
		}
	}
	return out
}

func exposition(w http.ResponseWriter, format string, args ...any) {
	_, _ = fmt.Fprintf(w, format, args...)
}

func TestLooksKeepTheirSchedule(t *testing.T) {
	began := time.Now()
	n := 0
	told, rec, dir := watch(t, 5500*time.Millisecond, func(w http.ResponseWriter, r *http.Request) {
		if accept := r.Header.Get("Accept"); !strings.HasPrefix(accept, "text/plain") {
			t.Errorf("accept %q", accept)
		}
		n++
		switch n {
		case 2:
			time.Sleep(1300 * time.Millisecond) // the look at 2 s is missed
		case 3:
			http.Error(w, "busy", http.StatusInternalServerError)
			return
		}
		exposition(w, "# TYPE vllm:num_requests_waiting gauge\nvllm:num_requests_waiting %d\n", n)
	}, nil)
	got := rows(t, rec, dir)
	if s := fmt.Sprint(at(got, "requests_waiting")); s != "[0:1 1000:2 4000:4 5000:5 5500:6]" {
		t.Error(s)
	}
	if s := fmt.Sprint(at(got, schemas.MetricScrapeOK)); s != "[0:1 1000:1 3000:0 4000:1 5000:1 5500:1]" {
		t.Error(s)
	}
	if told[0].Looks != 6 || told[0].Failed != 1 || !strings.Contains(told[0].Fault, "500") || told[0].Restarted {
		t.Errorf("%+v", told)
	}
	if time.Since(began) > time.Minute {
		t.Error("virtual time is real")
	}
}

func TestRestartsAreSeen(t *testing.T) {
	for name, values := range map[string][]string{
		"a total goes back":      {"vllm:num_preemptions_total 9", "vllm:num_preemptions_total 10", "vllm:num_preemptions_total 0"},
		"another start":          {"process_start_time_seconds 100", "process_start_time_seconds 101"},
		"":                       {"vllm:num_preemptions_total 9", "vllm:num_preemptions_total 9", "vllm:num_preemptions_total 11"},
		"- a gauge may go back":  {"vllm:num_requests_running 9", "vllm:num_requests_running 0"},
		"- a series that is new": {"vllm:num_preemptions_total{engine=\"0\"} 9", "vllm:num_preemptions_total{engine=\"1\"} 1"},
	} {
		n := 0
		told, _, _ := watch(t, 4500*time.Millisecond, func(w http.ResponseWriter, _ *http.Request) {
			line := values[min(n, len(values)-1)]
			n++
			kind := "gauge"
			if strings.Contains(line, "_total") {
				kind = "counter"
			}
			family, _, _ := strings.Cut(strings.Fields(line)[0], "{")
			exposition(w, "# TYPE %s %s\n%s\n", family, kind, line)
		}, nil)
		want := name != "" && !strings.HasPrefix(name, "-")
		if told[0].Restarted != want || (len(telemetry.Doubts(told)) == 1) != want {
			t.Errorf("%s: %+v", name, told[0])
		}
	}
}

func TestGauges(t *testing.T) {
	down := false
	var mu sync.Mutex
	watch(t, 2500*time.Millisecond, func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if down {
			http.Error(w, "", http.StatusBadGateway)
			return
		}
		exposition(w, "# TYPE vllm:num_requests_waiting gauge\nvllm:num_requests_waiting{engine=\"0\"} 3\nvllm:num_requests_waiting{engine=\"1\"} 4\n"+
			"# TYPE vllm:kv_cache_usage_perc gauge\nvllm:kv_cache_usage_perc{engine=\"0\"} 0.3\nvllm:kv_cache_usage_perc{engine=\"1\"} 0.6\n")
	}, func(s *telemetry.Sampler) {
		for name, want := range map[string]float64{"waiting": 7, "requests_waiting": 7, "kv_usage": .6} {
			if v, ok := s.Gauge(name); !ok || v != want {
				t.Errorf("%s: %v, %v", name, v, ok)
			}
		}
		if _, ok := s.Gauge("running"); ok {
			t.Error("running is known")
		}
		mu.Lock()
		down = true
		mu.Unlock()
		time.Sleep(6 * time.Second)
		if v, ok := s.Gauge("waiting"); ok {
			t.Errorf("a stale gauge tells %v", v)
		}
	})
}

func TestHistogramsAreRecordedNowAndThen(t *testing.T) {
	_, rec, dir := watch(t, 12500*time.Millisecond, func(w http.ResponseWriter, _ *http.Request) {
		exposition(w, "# TYPE vllm:e2e_request_latency_seconds histogram\nvllm:e2e_request_latency_seconds_bucket{le=\"+Inf\"} 4\n"+
			"vllm:e2e_request_latency_seconds_sum 8\nvllm:e2e_request_latency_seconds_count 4\n")
	}, nil)
	if s := fmt.Sprint(at(rows(t, rec, dir), "e2e_s_count")); s != "[0:4 10000:4 12500:4]" {
		t.Error(s)
	}
}

// What was flushed is readable before the end, as a killed run leaves it.
func TestSegments(t *testing.T) {
	dir := t.TempDir()
	rec := telemetry.NewRecorder(dir, "run", schemas.Footer{})
	for i := range 3 {
		rec.Add(int64(i), "a", []telemetry.Value{{Metric: "requests_waiting", Labels: map[string]string{"engine": "0"}, Value: float64(i)}})
		if err := rec.Flush(); err != nil {
			t.Fatal(err)
		}
		names, _ := filepath.Glob(filepath.Join(dir, "telemetry-*.parquet"))
		if len(names) != i+1 {
			t.Errorf("%v", names)
		}
	}
	if s := fmt.Sprint(at(rows(t, rec, dir), "requests_waiting")); s != "[0:0 0:1 0:2]" {
		t.Error(s)
	}
}

func TestNothingIsNoFile(t *testing.T) {
	dir := t.TempDir()
	if d, err := telemetry.NewRecorder(dir, "run", schemas.Footer{}).Finish(); err != nil || d.Name != "" {
		t.Errorf("%+v, %v", d, err)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("%v", left)
	}
}

func TestProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := pipenet.Listen()
		srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/metrics" {
				http.NotFound(w, r)
				return
			}
			exposition(w, "# TYPE sglang:num_running_reqs gauge\nsglang:num_running_reqs 1\n")
		})}
		var served sync.WaitGroup
		served.Go(func() { _ = srv.Serve(l) })
		s, err := telemetry.New(telemetry.Options{DialContext: l.DialContext, Endpoints: []telemetry.Endpoint{
			{Target: "a", URL: telemetry.MetricsURL("http://a/v1/")}, {Target: "b", URL: "http://b/none"}}})
		if err != nil {
			t.Fatal(err)
		}
		told := s.Probe(t.Context())
		if told[0].Engine != "sglang" || !slices.Equal(told[0].Metrics, []string{"requests_running"}) || told[0].Failed != 0 {
			t.Errorf("%+v", told[0])
		}
		if told[1].Failed != 1 || !strings.Contains(told[1].Fault, "404") {
			t.Errorf("%+v", told[1])
		}
		s.Stop(time.Now(), telemetry.NewRecorder(t.TempDir(), "r", schemas.Footer{}))
		srv.Close()
		served.Wait()
	})
}
