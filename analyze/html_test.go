package analyze_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tailgate/analyze"
	"tailgate/internal/jsonleaf"
	"tailgate/internal/parquetio"
	"tailgate/internal/testshared"
	"tailgate/schemas"
)

func pageOf(t testing.TB, r *analyze.Report) string {
	t.Helper()
	var b bytes.Buffer
	if err := r.WriteHTML(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// element is one element of a page.
type element struct {
	XMLName  xml.Name
	Attrs    []xml.Attr `xml:",any,attr"`
	Children []element  `xml:",any"`
	Text     string     `xml:",chardata"`
}

func (e *element) attr(name string) string {
	for _, a := range e.Attrs {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// all walks the elements of a name in order.
func (e *element) all(name string) []*element {
	var out []*element
	for i := range e.Children {
		if c := &e.Children[i]; c.XMLName.Local == name {
			out = append(out, c)
		}
		out = append(out, e.Children[i].all(name)...)
	}
	return out
}

func (e *element) text() string {
	s := e.Text
	for i := range e.Children {
		s += e.Children[i].text()
	}
	return s
}

// parse reads a page as a browser would, as far as our pages go.
func parse(t testing.TB, page string) *element {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(page))
	d.Strict, d.AutoClose, d.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	var root element
	if err := d.Decode(&root); err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	return &root
}

// pageNumbers are the numbers of the tables by their place in the JSON.
func pageNumbers(t testing.TB, page string) map[string]string {
	t.Helper()
	out := map[string]string{}
	put := func(path, value string) {
		if old, ok := out[path]; ok && old != value {
			t.Errorf("%s is %s and %s", path, old, value)
		}
		out[path] = value
	}
	root := parse(t, page)
	for _, table := range root.all("table") {
		var keys []string
		for _, th := range table.all("thead")[0].all("th") {
			keys = append(keys, th.attr("data-key"))
		}
		for _, tr := range table.all("tr") {
			if tr.attr("data-row") == "" {
				continue
			}
			for i, td := range tr.Children {
				if keys[i] == "" {
					continue
				}
				value := strings.TrimSpace(td.Text)
				for _, data := range td.all("data") {
					if key := data.attr("data-key"); key != "" {
						put(table.attr("data-path")+"."+tr.attr("data-row")+"."+key, data.attr("value"))
					} else {
						value = data.attr("value")
					}
				}
				put(table.attr("data-path")+"."+tr.attr("data-row")+"."+keys[i], value)
			}
		}
	}
	for _, data := range root.all("data") {
		if path := data.attr("data-json"); path != "" {
			put(path, data.attr("value"))
		}
	}
	return out
}

// numbersOf are the numbers of the JSON by their place.
func numbersOf(t testing.TB, r *analyze.Report) map[string]string {
	t.Helper()
	var b bytes.Buffer
	if err := r.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	all, err := jsonleaf.Read(&b)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, l := range all {
		out[l.Path] = l.Exact
	}
	return out
}

var inTables = regexp.MustCompile(`^(buckets\.\d+\.([^.]+|throughput\..*|metrics\.[^.]+\.(tail\.)?[^.]+)|gate\.rules\.\d+\.[^.]+)$`)

// The tables of the page carry the very numbers of the JSON: every rule, and every bucket × metric.
func TestHTMLTablesEqualJSON(t *testing.T) {
	for name, r := range map[string]*analyze.Report{"small": small(t), "two runs with telemetry": busy(t, 2)} {
		page := pageOf(t, r)
		got, want := pageNumbers(t, page), numbersOf(t, r)
		tabled := 0
		for path, value := range want {
			if shown, ok := got[path]; inTables.MatchString(path) && value != "null" && (!ok || shown != value) {
				t.Errorf("%s: %s is %q in the page, %q in the JSON", name, path, shown, value)
			} else if ok {
				tabled++
			}
		}
		for path, shown := range got {
			if value, ok := want[path]; ok && value == shown || shown == "" && (!ok || value == "null") {
				continue
			}
			t.Errorf("%s: the page shows %s = %q, the JSON has %q", name, path, shown, want[path])
		}
		if least := len(r.Buckets) * 11 * 16; tabled < least {
			t.Errorf("%s: only %d numbers, at least %d wanted", name, tabled, least)
		}
	}
}

// busy is a report on runs with telemetry of two targets, failures, a gate and buckets.
func busy(t testing.TB, runs int) *analyze.Report {
	t.Helper()
	var dirs []string
	for i := range runs {
		q := queueRun{seed: uint64(i + 1), minutes: 12, rate: 3 + float64(i), serveMs: 280, slots: 1, failEvery: 50}
		rows := q.rows()
		for k := range rows {
			rows[k].RunID = fmt.Sprintf("r_%d", i)
		}
		dir := folder(t, rows, func(m *schemas.Manifest) {
			m.RunID = fmt.Sprintf("r_%d", i)
			m.Run.Bursts = []schemas.BurstSpan{{FromUs: 200e6, ToUs: 260e6}}
		})
		writeTelemetry(t, dir, 720, "http://a", "http://b")
		dirs = append(dirs, dir)
	}
	return report(t, load(t, dirs...), "capacity_gate: {ttft_p95: 2s, ttft_p99: 4s, tpot_p99: 60ms, e2e_p99: 9s, queue_growth: no_sustained_growth}\n"+
		"buckets: [{by: {class: agent}, e2e_p95: 6s}]", "class", "input_length=0,1024,8192")
}

// writeTelemetry writes a look a second at each target, from before the schedule's zero on.
func writeTelemetry(t testing.TB, dir string, seconds int, targets ...string) {
	t.Helper()
	var rows []schemas.TelemetrySample
	for s := -2; s < seconds; s++ {
		for k, target := range targets {
			add := func(metric string, v float64, labels ...string) {
				l := map[string]string{}
				for i := 0; i+1 < len(labels); i += 2 {
					l[labels[i]] = labels[i+1]
				}
				rows = append(rows, schemas.TelemetrySample{RunID: "r", AtUs: int64(s) * 1e6, Target: target, Metric: metric, Labels: l, Value: v})
			}
			x := float64(s + 2)
			add("generation_tokens_total", 100*x)
			add("gpu_busy_ratio", .5, "gpu", "0")
			add("gpu_busy_ratio", .9, "gpu", "1")
			add("gpu_mem_free_bytes", 20e9)
			add("gpu_mem_used_bytes", 60e9)
			add("kv_used_ratio", .3+.1*float64(k), "engine", "0")
			add("node_cpu_idle_s_total", 3*x)
			add("node_cpu_s_total", 4*x)
			add("prefix_hit_tokens_total", 30*x)
			add("prefix_query_tokens_total", 120*x)
			add("preemptions_total", math.Floor(x/100))
			add("requests_running", 5, "engine", "0")
			add("requests_running", 2, "engine", "1")
			add("requests_waiting", float64(s%7))
			add("ttft_s_bucket", x, "le", "1")
		}
	}
	if err := parquetio.WriteFile(filepath.Join(dir, "telemetry.parquet"), schemas.Footer{Schema: schemas.TableTelemetry}.Map(), rows); err != nil {
		t.Fatal(err)
	}
}

// What the servers showed is summed up right: labels joined, counters as growth, shares as shares.
func TestServers(t *testing.T) {
	r := busy(t, 1)
	if len(r.Servers) != 2 || r.Servers[1].Target != "http://b" {
		t.Fatalf("%+v", r.Servers)
	}
	want := map[string][3]float64{ // mean, max, total
		"requests_running": {7, 7, nan}, "kv_used_ratio": {.4, .4, nan}, "prefix_hit_ratio": {.25, nan, nan}, "gpu_busy_ratio": {.9, .9, nan},
		"generation_tokens_per_s": {100, 100, 65_800}, "gpu_mem_used_ratio": {.75, .75, nan}, "node_cpu_busy_ratio": {.25, nan, nan},
	}
	for _, m := range r.Servers[1].Metrics {
		if w, ok := want[m.Metric]; ok {
			same(t, m.Metric+" mean", m.Mean, w[0])
			same(t, m.Metric+" max", m.Max, w[1])
			if m.Metric != "generation_tokens_per_s" {
				same(t, m.Metric+" total", m.Total, w[2])
			} else if d := float64(m.Total) - w[2]; math.Abs(d) > 300 { // the looks from the first measured request on
				t.Errorf("%v tokens", m.Total)
			}
			delete(want, m.Metric)
		}
	}
	if len(want) > 0 {
		t.Errorf("missing: %v", want)
	}
}

// Several runs are points of a curve, in order of their rates.
func TestRates(t *testing.T) {
	r := busy(t, 3)
	if len(r.Rates) != 3 || r.Rates[0].RequestRate > r.Rates[1].RequestRate || r.Rates[1].RequestRate > r.Rates[2].RequestRate {
		t.Fatalf("%+v", r.Rates)
	}
	total := 0
	for _, p := range r.Rates {
		total += p.Scheduled
	}
	if total != r.Scheduled || math.Abs(float64(r.Rates[2].RequestRate)-5) > .4 {
		t.Errorf("%d of %d requests, %v/s", total, r.Scheduled, r.Rates[2].RequestRate)
	}
	if one := busy(t, 1); one.Rates != nil {
		t.Errorf("one run is no curve: %+v", one.Rates)
	}
}

// The figures of a page, in order: which have data, and why the others have none.
func figures(t testing.TB, page string) (shown, why []string) {
	t.Helper()
	for _, f := range parse(t, page).all("figure") {
		title := strings.TrimSpace(f.all("figcaption")[0].Text)
		switch {
		case len(f.all("svg")) == 1:
			shown = append(shown, title)
			if note := f.all("p")[0].text(); !strings.Contains(note, "n = ") {
				t.Errorf("%s has no n: %q", title, note)
			}
			svg := f.all("svg")[0]
			if label := svg.attr("aria-label"); len(label) < len(title)+10 {
				t.Errorf("%s is not described: %q", title, label)
			}
			if !slices.ContainsFunc(svg.all("text"), func(e *element) bool { return e.attr("class") == "axis" && e.Text != "" }) {
				t.Errorf("%s has no unit", title)
			}
		case len(f.all("p")) == 1 && len(f.all("p")[0].text()) > 10:
			why = append(why, title)
		default:
			t.Errorf("%s shows nothing and does not say why", title)
		}
	}
	return shown, why
}

func TestHTMLFigures(t *testing.T) {
	tails := []string{"Time to first token (TTFT)", "Time between tokens (ITL)", "Time per output token (TPOT)", "End-to-end time (E2E)"}
	overTime := []string{"Time to first token (TTFT)", "Time per output token (TPOT)", "End-to-end time (E2E)", "In flight and in the servers' queue", "Request rate", "Failures by kind"}
	rest := []string{"Lag of the client over time", "Distribution of the client's lag", "Input tokens", "Output tokens",
		"Requests running", "Requests waiting", "KV cache in use", "Preemptions", "Prefix cache hits", "Tokens generated", "GPU busy", "HBM in use", "CPU busy"}
	shown, why := figures(t, pageOf(t, busy(t, 1)))
	if diff := cmp.Diff(slices.Concat(tails, overTime, tails, rest), shown); diff != "" || len(why) > 0 {
		t.Errorf("%s, without data: %q", diff, why)
	}
	shown, why = figures(t, pageOf(t, busy(t, 2)))
	sweep := []string{"Time to first token (TTFT)", "Time per output token (TPOT)", "End-to-end time (E2E)", "Achieved rate"}
	if diff := cmp.Diff(slices.Concat(sweep, tails, overTime, tails, rest), shown); diff != "" || len(why) > 0 {
		t.Errorf("two runs: %s, without data: %q", diff, why)
	}
}

// Of runs whose every request failed there is no curve, and the page says why.
func TestHTMLOfFailedRuns(t *testing.T) {
	var dirs []string
	for i := range 2 {
		rows := queueRun{seed: uint64(i + 1), minutes: 3, rate: 2, serveMs: 100, slots: 1, failEvery: 1}.rows()
		dirs = append(dirs, folder(t, rows, func(m *schemas.Manifest) { m.RunID = fmt.Sprintf("r_%d", i) }))
	}
	page := pageOf(t, report(t, load(t, dirs...), "capacity_gate: {ttft_p99: 4s}"))
	if _, after, ok := strings.Cut(page, `<section id="sweep">`); !ok || !strings.Contains(after, "No request succeeded.") {
		t.Error("the curves do not say why they are missing")
	}
}

var folded = regexp.MustCompile(`(?s)<(table|style)\b.*?</(table|style)>`)

func TestHTMLPage(t *testing.T) {
	page := pageOf(t, small(t))
	for _, bad := range []string{"<script", "http://", "https://", "@import", "url(", "a <b>", "ZgotmplZ", "NaN", "Inf"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page holds %q", bad)
		}
	}
	if strings.Index(page, `class="verdict fail"`) > strings.Index(page, `id="rules"`) {
		t.Error("the verdict does not come first")
	}
	for _, svg := range regexp.MustCompile(`(?s)<svg .*?</svg>`).FindAllString(page, -1) {
		if err := xml.Unmarshal([]byte(svg), new(struct{})); err != nil {
			t.Errorf("a chart is not well formed: %v", err)
		}
	}
	// The tables are held to the JSON by another test.
	golden(t, "small.html", folded.ReplaceAllString(page, "<$1></$1>"))
}

func TestHTMLWithoutGateOrData(t *testing.T) {
	for name, lines := range map[string][]string{
		"nothing sent": {`{"scheduled":0,"status":"not_sent"}`},
		"one row":      {`{"sent":0,"first":0,"last":0,"status":"ok"}`},
		"all warm-up":  {`{"sent":0,"first":0,"last":0,"status":"ok","phase":"warmup"}`},
		"not streamed": {`{"sent":0,"last":9,"stream":false,"status":"ok"}`},
		"only failed":  {`{"sent":0,"status":"timeout"}`, `{"sent":5,"status":"reset"}`},
	} {
		page := pageOf(t, report(t, load(t, jsonl(t, lines...)), "", "class"))
		if strings.Contains(page, "NaN") || strings.Contains(page, "Inf") || !strings.Contains(page, "no gate") {
			t.Errorf("%s: broken page", name)
		}
		if _, why := figures(t, page); len(why) == 0 {
			t.Errorf("%s: every figure has data", name)
		}
	}
}

// Labels come from outside: they show as they are and change nothing else.
func TestHTMLHostileLabels(t *testing.T) {
	labels := []string{`</script><script>alert(1)</script>`, `" onload="alert(1)`, `'><img src=x onerror=alert(1)>`, "\u202eevil\u202c", `</title></svg></table>`,
		`{{.R}}`, `&lt;b&gt;`, "العربية", "a\u0000b", strings.Repeat("long", 100)}
	var lines []string
	for i, l := range labels {
		text, err := json.Marshal(l)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, row(`{"scheduled":%d,"sent":%d,"first":%d,"last":%d,"output_tokens":9,"input_length":9,"tenant":%s,"status":%s}`,
			1000*i, 1000*i+1, 1000*i+90, 1000*i+500, text, map[bool]string{true: `"ok"`, false: string(text)}[i%2 == 0]))
	}
	page := pageOf(t, report(t, load(t, jsonl(t, lines...)), "", "tenant"))
	for _, bad := range []string{"<script", "<img", `" onload`, "ZgotmplZ"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page holds %q", bad)
		}
	}
	root := parse(t, page)
	var heads []string
	for _, th := range root.all("tbody")[0].all("th") {
		heads = append(heads, th.text())
		if len(th.all("bdi")) != 1 {
			t.Errorf("%q may turn the direction of what follows", th.text())
		}
	}
	for _, l := range labels {
		l = strings.ReplaceAll(l, "\x00", "\ufffd") // as HTML has it
		if !slices.Contains(heads, "tenant "+l) {
			t.Errorf("no bucket of %q among %q", l, heads)
		}
	}
}

// A page stays small and is quickly made however many rows, buckets and targets there are.
func TestHTMLStaysSmall(t *testing.T) {
	testshared.NotUnderRace(t, "large; no goroutines of its own")
	var targets []string
	for i := range 40 {
		targets = append(targets, fmt.Sprintf("http://10.0.0.%d:8000", i))
	}
	q := queueRun{seed: 5, minutes: 60, rate: 10, serveMs: 90, slots: 1, failEvery: 1000}
	dir := folder(t, q.rows(), nil)
	writeTelemetry(t, dir, 600, targets...)
	var edges []string
	for i := range 40 {
		edges = append(edges, strconv.Itoa(225*i))
	}
	page := pageOf(t, report(t, load(t, dir), "capacity_gate: {ttft_p99: 1s}", "class*input_length="+strings.Join(edges, ",")))
	if len(page) > 2<<20 {
		t.Errorf("the page has %d bytes", len(page))
	}
	t.Logf("%d bytes", len(page))
	if !strings.Contains(page, "Too many targets") || !strings.Contains(page, "15 largest of 120 buckets") {
		t.Error("nothing was left out of the figures")
	}
}
