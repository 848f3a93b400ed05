package cli

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/prometheus/client_golang/prometheus"

	"tailgate/analyze"
	"tailgate/ingest"
	"tailgate/refresh"
)

var metricName = regexp.MustCompile(`tailgate_[a-z0-9_]+`)

// jobs are labels that look like metrics.
var jobs = []string{refresh.MetricsJob, "tailgate_ingest", "tailgate_publish", "tailgate_replay"}

// exported are the names of all metrics that commands tell.
func exported(t *testing.T) []string {
	t.Helper()
	var names []string
	described := func(r *prometheus.Registry) {
		ch := make(chan *prometheus.Desc)
		go func() { r.Describe(ch); close(ch) }()
		for d := range ch {
			names = append(names, metricName.FindString(d.String()))
		}
	}
	m := newIngestMetrics(&metricsFlags{})
	qualityMetrics(m.registry, "ingest", &ingest.Quality{})
	described(m.registry)
	described(publishMetrics(&ingest.PublishReport{}))
	for _, g := range replayGauges {
		names = append(names, "tailgate_replay_"+g.name)
	}
	var all analyze.Metrics
	for _, name := range []string{"ttft_ms", "tpot_ms", "e2e_ms"} {
		all = append(all, analyze.Metric{Name: name, N: 1})
	}
	described(replayEnd(&replayFlags{}, &analyze.Report{Buckets: []analyze.Bucket{{Metrics: all}}}, 0))
	for path, pattern := range map[string]string{
		"../../../refresh/testdata/metrics.prom": `(?m)^# HELP (tailgate_refresh_[a-z0-9_]+) `, // which its test holds to the code
		"../../../capacity/headroomprom.go":      `(?:p\.add\(|\{)"([a-z0-9_]+)", "[^"]+",`,
	} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		found := regexp.MustCompile(pattern).FindAllStringSubmatch(string(text), -1)
		if len(found) < 10 {
			t.Errorf("%s: %d metrics", path, len(found))
		}
		for _, hit := range found {
			if !strings.HasPrefix(hit[1], "tailgate_") {
				hit[1] = "tailgate_headroom_" + hit[1]
			}
			names = append(names, hit[1])
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// mentioned are the names in a text.
func mentioned(text string) []string {
	names := metricName.FindAllString(text, -1)
	names = slices.DeleteFunc(names, func(n string) bool { return slices.Contains(jobs, n) })
	slices.Sort(names)
	return slices.Compact(names)
}

func readText(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile("../../../" + path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// Alerts and dashboard look at what there is, and the documentation lists all of it and nothing else.
func TestMetricsThatAreNamedExist(t *testing.T) {
	have := exported(t)
	for _, path := range []string{"deploy/prometheus/alerts.yaml", "deploy/prometheus/alerts_test.yaml", "deploy/grafana/tailgate.json", "docs/runbook.md"} {
		names := mentioned(readText(t, path))
		if len(names) < 5 {
			t.Errorf("%s names %d metrics", path, len(names))
		}
		for _, name := range names {
			if !slices.Contains(have, name) {
				t.Errorf("%s has %s, which nobody tells", path, name)
			}
		}
	}
	listed := mentioned(readText(t, "docs/observability.md"))
	for _, name := range have {
		if !slices.Contains(listed, name) {
			t.Errorf("docs/observability.md lacks %s", name)
		}
	}
	for _, name := range listed {
		if !slices.Contains(have, name) {
			t.Errorf("docs/observability.md has %s, which nobody tells", name)
		}
	}
}

// Every alert has a severity, a sentence, a section of the runbook, and cases in the rules' own tests.
func TestAlertsHaveARunbook(t *testing.T) {
	var file struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr         string
				Labels, Annotations map[string]string
			}
		}
	}
	if err := yaml.Unmarshal([]byte(readText(t, "deploy/prometheus/alerts.yaml")), &file); err != nil {
		t.Fatal(err)
	}
	runbook, tests := readText(t, "docs/runbook.md"), readText(t, "deploy/prometheus/alerts_test.yaml")
	n := 0
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			n++
			_, section, ok := strings.Cut(r.Annotations["runbook_url"], "RUNBOOK/runbook.md#")
			heading := "\n## " + strings.ToUpper(section[:min(1, len(section))]) + strings.ReplaceAll(section[min(1, len(section)):], "-", " ") + "\n"
			if !ok || !strings.Contains(runbook, heading) {
				t.Errorf("%s: docs/runbook.md has no section %q", r.Alert, heading)
			}
			if !slices.Contains([]string{"critical", "warning", "info"}, r.Labels["severity"]) || r.Annotations["summary"] == "" {
				t.Errorf("%s: %v, %v", r.Alert, r.Labels, r.Annotations)
			}
			if !strings.Contains(runbook, r.Alert) {
				t.Errorf("docs/runbook.md does not name %s", r.Alert)
			}
			if strings.Count(tests, "alertname: "+r.Alert+"\n") < 2 {
				t.Errorf("%s is not tested both ways", r.Alert)
			}
		}
	}
	if n < 15 {
		t.Errorf("%d alerts", n)
	}
}

// The dashboard is JSON with a query in every panel, and no data source of one installation.
func TestDashboard(t *testing.T) {
	var board struct {
		UID    string
		Panels []struct {
			ID      int
			Type    string
			Title   string
			Targets []struct{ Expr string }
			GridPos struct{ H, W, X, Y int }
		}
	}
	text := readText(t, "deploy/grafana/tailgate.json")
	if err := json.Unmarshal([]byte(text), &board); err != nil {
		t.Fatal(err)
	}
	ids, places := map[int]bool{}, map[[2]int]bool{}
	for _, p := range board.Panels {
		at := [2]int{p.GridPos.X, p.GridPos.Y}
		if ids[p.ID] || p.Title == "" || places[at] || p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("panel %d %q is there twice, or out of place", p.ID, p.Title)
		}
		ids[p.ID], places[at] = true, true
		if p.Type != "row" && (len(p.Targets) == 0 || p.Targets[0].Expr == "") {
			t.Errorf("panel %q has no query", p.Title)
		}
	}
	if len(board.Panels) < 12 || board.UID == "" || strings.Count(text, `"uid": "${datasource}"`) < 12 {
		t.Errorf("%d panels", len(board.Panels))
	}
}

// All metrics of the four stages are seen by this test at all.
func TestExportedSeesEveryStage(t *testing.T) {
	have := exported(t)
	for _, name := range []string{"tailgate_ingest_dead_letters", "tailgate_ingest_not_rows", "tailgate_publish_lost_hit_ratio", "tailgate_replay_valid",
		"tailgate_replay_lag_p99_seconds", "tailgate_refresh_last_good_time_seconds", "tailgate_headroom_peak_request_rate"} {
		if !slices.Contains(have, name) {
			t.Errorf("%s is not seen", name)
		}
	}
}
