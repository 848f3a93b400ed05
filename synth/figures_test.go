package synth_test

import (
	"bytes"
	"fmt"
	"os"
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tailgate/synth"
)

// figures is the table of docs/rescale.md: what rescaling the public traces keeps.
type figures struct{ table strings.Builder }

const (
	docs       = "../docs/rescale.md"
	tableBegin = "<!-- figures: go test ./synth -run TestLawsOnPublicTraces -update -->\n"
	tableEnd   = "<!-- end of figures -->"
)

func (x *figures) add(name string, f float64, res *synth.Result) {
	if f == 1 {
		return
	}
	if x.table.Len() == 0 {
		x.table.WriteString("| trace | f | rows / f·n | tokens in, out / f | KS in, out | shape60 | IDC 60 s / f | hit ratio at f·C |\n|---|---|---|---|---|---|---|---|\n")
	}
	before, after := map[string]float64{}, map[string]float64{}
	for _, v := range res.Invariants {
		before[v.Name], after[v.Name] = v.Before, v.After
	}
	times := func(name string) float64 { return after[name] / before[name] / f }
	hit := "no blocks"
	if _, ok := after["hit_ratio"]; ok {
		hit = fmt.Sprintf("%.4f → %.4f", before["hit_ratio"], after["hit_ratio"])
	}
	name = strings.NewReplacer("AzureLLMInferenceTrace", "Azure", "_trace", "", ".jsonl", "", ".csv", "", "_", " ").Replace(path.Base(name))
	fmt.Fprintf(&x.table, "| %s | %v | %.5f | %.4f, %.4f | %.4f, %.4f | %.4f | %.3f | %s |\n", name, f, times("rows"), times("tokens_in"),
		times("tokens_out"), after["ks_input"], after["ks_output"], after["shape60"], times("idc60"), hit)
}

// compare holds the documented table to what was measured. It does nothing where not all traces are at hand.
func (x *figures) compare(t *testing.T) {
	if strings.Count(x.table.String(), "\n") != 2+4*(len(scales)-1) {
		t.Log("not all public traces are at hand: the table of " + docs + " is not checked")
		return
	}
	page, err := os.ReadFile(docs)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := bytes.Cut(page, []byte(tableBegin))
	table, tail, ok2 := bytes.Cut(rest, []byte(tableEnd))
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the table", docs)
	}
	if *update {
		page = append(append(append(head, tableBegin...), x.table.String()...), append([]byte(tableEnd), tail...)...)
		if err := os.WriteFile(docs, page, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(x.table.String(), string(table)); diff != "" {
		t.Errorf("%s (-update rewrites it):\n%s", docs, diff)
	}
}
