package analyze

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// foreignFiles are results of each tool, of one trace (testdata/foreign/README.md).
var foreignFiles = []struct{ tool, file string }{
	{"aiperf", "aiperf.jsonl"}, {"vllm", "vllm.json"}, {"guidellm", "guidellm.json"}, {"inference-perf", "inference-perf.json"},
}

func foreignData(t *testing.T, file string) *Data {
	t.Helper()
	d, err := Load(context.Background(), []string{filepath.Join("testdata", "foreign", file)})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// okValues are the values of a metric over successful requests, in ms, ascending.
func okValues(d *Data, m metric) []float64 {
	var out []float64
	for i := range int32(d.n) {
		switch {
		case !d.ok(i):
		case m.pooled():
			for _, gap := range d.gapsOf(m, i) {
				out = append(out, float64(gap)/1000)
			}
		default:
			if x := d.value(m, i); !math.IsNaN(x) {
				out = append(out, x/1000)
			}
		}
	}
	slices.Sort(out)
	return out
}

// interpolated is the percentile between two values that Python's numpy takes by default.
func interpolated(sorted []float64, p float64) float64 {
	at := p * float64(len(sorted)-1)
	k := int(at)
	if k+1 == len(sorted) {
		return sorted[k]
	}
	return sorted[k] + (at-float64(k))*(sorted[k+1]-sorted[k])
}

// What a tool prints of its run comes out of the rows that are read, where both mean the same: its mean, extremes and
// percentiles. GuideLLM takes the value above the rank, the others interpolate. What inference-perf prints of gaps and
// TPOT is over tokens as its own tokenizer counts them, and is not compared.
func TestForeignRowsGiveWhatTheToolPrinted(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "foreign", "printed.json"))
	if err != nil {
		t.Fatal(err)
	}
	var printed map[string]map[string]map[string]float64
	if err := json.Unmarshal(text, &printed); err != nil {
		t.Fatal(err)
	}
	compared := 0
	for _, f := range foreignFiles {
		d := foreignData(t, f.file)
		for _, m := range metrics {
			want, ok := printed[f.tool][m.json]
			if !ok {
				continue
			}
			x := okValues(d, m.metric)
			if len(x) == 0 {
				t.Errorf("%s: no %s", f.tool, m.json)
				continue
			}
			sum := 0.0
			for _, v := range x {
				sum += v
			}
			got := map[string]float64{"mean": sum / float64(len(x)), "min": x[0], "max": x[len(x)-1]}
			for name, p := range map[string]float64{"p50": .5, "p90": .9, "p99": .99} {
				got[name] = interpolated(x, p)
				if f.tool == "guidellm" {
					got[name] = x[int(p*float64(len(x)))]
				}
			}
			for name, w := range want {
				if compared++; math.Abs(got[name]-w) > .0021 { // times are read in whole µs
					t.Errorf("%s: %s of %s is %.4f, the tool printed %.4f", f.tool, name, m.json, got[name], w)
				}
			}
		}
	}
	if compared < 45 {
		t.Errorf("%d figures were compared", compared)
	}
}
