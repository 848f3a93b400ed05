package profile_test

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tailgate/internal/fault"
	"tailgate/internal/testshared"
	"tailgate/profile"
)

// clientFiles writes a folder in the layout of ServeGen: two clients, two windows of lengths.
func clientFiles(t *testing.T, change map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	files := map[string]string{
		"chunk-2-trace.csv":     "21000,0.5,2,Gamma,0.25,8\n21600,0.01,0.5,,0,0\n",
		"chunk-2-dataset.json":  `{"0": {"input_tokens": "{10: 0.5, 20: 0.5}", "output_tokens": "{1: 1.0}", "reason_ratio": "{0.5: 1.0}"}, "21600": {"input_tokens": "{7: 1.0}", "output_tokens": "{3: 1e0}"}}`,
		"chunk-10-trace.csv":    "21000,0.1,1.2,Weibull,0.8,9.5\n21600,0,0,,0,0\n",
		"chunk-10-dataset.json": `{"0": {"input_tokens": "{100: 0.24, 5: 0.76}", "output_tokens": "{2: 1.0}"}, "21600": {"input_tokens": "{}", "output_tokens": "{}"}}`,
		"README.md":             "not a client",
	}
	for name, text := range change {
		files[name] = text
	}
	for name, text := range files {
		if text == "" {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestServeGenFixture(t *testing.T) {
	s, err := profile.ReadServeGen(clientFiles(t, nil))
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Clients) != 2 || s.Clients[0].Label != "client-2" || s.Clients[1].Label != "client-10" || len(s.Files) != 4 {
		t.Fatalf("%+v", s)
	}
	want := []profile.ServeGenWindow{{StartS: 21000, Rate: .5, CV: 2, Law: "Gamma", Shape: .25, Scale: 8}, {StartS: 21600, Rate: .01, CV: .5}}
	if diff := cmp.Diff(want, s.Clients[0].Windows); diff != "" {
		t.Error(diff)
	}
	near(t, "mean input", profile.MeanTokens(s.Clients[1].Lengths[0].Input), 27.8, 1e-9)
	if profile.MeanTokens(s.Clients[1].Lengths[1].Input) != nil {
		t.Error("an empty distribution has a mean")
	}
	p := s.Profile()
	noNaN(t, p)
	type rate struct {
		Tenant             string
		Start, N, In, Outs int64
	}
	var rates []rate
	for _, r := range p.Rate {
		rates = append(rates, rate{r.Tenant, r.BinStartUs / 1e6, r.Requests, r.TokensIn, r.TokensOut})
	}
	if diff := cmp.Diff([]rate{{"*", 0, 360, 4500 + 1668, 420}, {"*", 600, 6, 42, 18},
		{"client-2", 0, 300, 4500, 300}, {"client-2", 600, 6, 42, 18}, {"client-10", 0, 60, 1668, 120}}, rates); diff != "" {
		t.Error(diff)
	}
	type length struct {
		Tenant, Window, Dim string
		Lo                  int32
		N                   int64
	}
	var lengths []length
	for _, l := range p.Lengths {
		if l.Dim == profile.DimInput {
			lengths = append(lengths, length{l.Tenant, l.WindowStart.Format("15:04") + "-" + l.WindowEnd.Format("15:04"), l.Dim, l.LoTok, l.N})
		}
	}
	if diff := cmp.Diff([]length{
		{"*", "05:50-06:10", "input", 5, 46}, {"*", "05:50-06:10", "input", 7, 6}, {"*", "05:50-06:10", "input", 10, 150},
		{"*", "05:50-06:10", "input", 20, 150}, {"*", "05:50-06:10", "input", 100, 14},
		{"client-2", "05:50-06:00", "input", 10, 150}, {"client-2", "05:50-06:00", "input", 20, 150}, {"client-2", "06:00-06:10", "input", 7, 6},
		{"client-10", "05:50-06:00", "input", 5, 46}, {"client-10", "05:50-06:00", "input", 100, 14}}, lengths); diff != "" {
		t.Error(diff)
	}
	if len(p.IATFit) != 2 || p.IATFit[0].Dist != profile.Gamma || *p.IATFit[0].P1 != .25 || *p.IATFit[0].P2 != 8 || p.IATFit[0].Method != profile.MethodMoments ||
		p.IATFit[1].Dist != profile.Weibull || p.IATFit[1].WindowStart.Format("15:04") != "05:50" || p.IATFit[1].Tenant != "client-10" {
		t.Errorf("%+v", p.IATFit)
	}
	var text bytes.Buffer
	p.WriteText(&text)
	for _, want := range []string{"366 requests", "0.305/s over 1,200 s, peak 600s 360", "the source tells no arrivals", "client-2"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is not in\n%s", want, &text)
		}
	}
}

func TestServeGenNamesWhatIsBroken(t *testing.T) {
	cases := []struct {
		name, file, text string
		kind             fault.Kind
		says             string
	}{
		{"a field is missing", "chunk-2-trace.csv", "0,1,1,,0,0\n600,1,1,,0\n", fault.Data, "line 2"},
		{"not a number", "chunk-2-trace.csv", "0,1,1,,0,0\n600,x,1,,0,0\n", fault.Data, "line 2: field 2"},
		{"infinite", "chunk-2-trace.csv", "0,Inf,1,,0,0\n", fault.Data, "line 1: field 2"},
		{"another law", "chunk-2-trace.csv", "0,1,1,Pareto,1,1\n", fault.Data, "neither Gamma nor Weibull"},
		{"no shape", "chunk-2-trace.csv", "0,1,1,Gamma,0,1\n", fault.Data, "no shape"},
		{"off the grid", "chunk-2-trace.csv", "7,1,1,,0,0\n", fault.Data, "multiple of 600 s"},
		{"far away", "chunk-2-trace.csv", "6e300,1,1,,0,0\n", fault.Data, "ten years"},
		{"backwards", "chunk-2-trace.csv", "600,1,1,,0,0\n0,1,1,,0,0\n", fault.Data, "line 2: windows are not in order"},
		{"cut off", "chunk-2-dataset.json", `{"0": {"input_tokens": "{1: 1.0}"`, fault.Data, "chunk-2-dataset.json"},
		{"two objects", "chunk-2-dataset.json", `{} {}`, fault.Data, "more follows"},
		{"window", "chunk-2-dataset.json", `{"5": {}}`, fault.Data, "multiple of 21600 s"},
		{"twice", "chunk-2-dataset.json", `{"0": {}, "00": {}}`, fault.Data, "window 0 is there twice"},
		{"code", "chunk-2-dataset.json", `{"0": {"input_tokens": "__import__('os')"}}`, fault.Data, "window 0: input_tokens: offset 0: want {"},
		{"not one", "chunk-2-dataset.json", `{"0": {"output_tokens": "{1: 0.5}"}}`, fault.Data, "output_tokens: probabilities sum up to 0.5"},
		{"no lengths", "chunk-2-dataset.json", "", fault.Failure, "chunk-2-dataset.json"},
		{"the same client", "chunk-02-trace.csv", "0,1,1,,0,0\n", fault.Failure, "chunk-02-dataset.json"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := profile.ReadServeGen(clientFiles(t, map[string]string{c.file: c.text}))
			if err == nil || fault.Of(err) != c.kind || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error %v, want %q", err, c.says)
			}
		})
	}
	if _, err := profile.ReadServeGen(t.TempDir()); err == nil || !strings.Contains(err.Error(), "no chunk-") {
		t.Errorf("error %v", err)
	}
	twice := clientFiles(t, map[string]string{"chunk-02-trace.csv": "0,1,1,,0,0\n", "chunk-02-dataset.json": "{}"})
	if _, err := profile.ReadServeGen(twice); err == nil || fault.Of(err) != fault.Data || !strings.Contains(err.Error(), "client 2 twice") {
		t.Errorf("error %v", err)
	}
}

// TestServeGenPublic reads the 13 public clients of deepseek-r1.
func TestServeGenPublic(t *testing.T) {
	s, err := profile.ReadServeGen(testshared.Path(t, "data/servegen/data/reason/deepseek-r1"))
	if err != nil {
		t.Fatal(err)
	}
	gamma, weibull, worst := 0, 0, 0.0
	for _, c := range s.Clients {
		for _, w := range c.Windows {
			switch w.Law {
			case "Gamma":
				gamma++
				worst = max(worst, math.Abs(w.Shape*w.CV*w.CV-1))
			case "Weibull":
				weibull++
			}
		}
		if c.Number != 35 {
			continue
		}
		for i, want := range []float64{1484, 4491, 3003, 758} {
			near(t, "mean output of client 35", profile.MeanTokens(c.Lengths[i].Output), want, .5)
		}
	}
	if len(s.Clients) != 13 || gamma != 281 || weibull != 83 || worst > 1e-8 {
		t.Errorf("%d clients, %d Gamma and %d Weibull windows, shape·CV² off by %g", len(s.Clients), gamma, weibull, worst)
	}
	p := s.Profile()
	noNaN(t, p)
	if p.Meta[0].Requests != 742_169 || len(p.IATFit) != gamma+weibull {
		t.Errorf("%d requests, %d laws", p.Meta[0].Requests, len(p.IATFit))
	}
	sums := map[string]int64{}
	tokens := map[string]float64{}
	for _, l := range p.Lengths {
		who := l.Dim + " of " + map[bool]string{true: "all", false: "clients"}[l.Tenant == profile.All]
		sums[who] += l.N
		if l.Tenant == "client-35" && l.Dim == profile.DimOutput {
			k := l.WindowStart.Format("15")
			sums[k] += l.N
			tokens[k] += float64(l.N) * float64(l.LoTok+l.HiTok-1) / 2
		}
	}
	for _, who := range []string{"input of all", "input of clients", "output of all", "output of clients"} {
		if sums[who] != 742_169 {
			t.Errorf("%s: %d lengths", who, sums[who])
		}
	}
	for k, want := range map[string]float64{"00": 1484, "06": 4491, "12": 3003, "18": 758} { // bins of 1/16
		if mean := tokens[k] / float64(sums[k]); math.Abs(mean/want-1) > .01 {
			t.Errorf("mean output of client 35 from %s h: %.1f, want %v", k, mean, want)
		}
	}
}
