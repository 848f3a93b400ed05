package analyze_test

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"

	"tailgate/analyze"
)

// A tenant with fewer than k requests is named by no output; what it did counts in other.
func TestSmallTenantsMergeInEveryOutput(t *testing.T) {
	var lines []string
	for i, tenant := range strings.Fields("big big big big big big tiny tiny small big other none") {
		label := row(`,"tenant":%q`, tenant)
		if tenant == "none" {
			label = ""
		}
		lines = append(lines, row(`{"row":%d,"scheduled":%d,"sent":%d,"first":%d,"last":%d,"output_tokens":2,"status":"ok"%s}`, i, i*1000, i*1000, i*1000+50, i*1000+60, label))
	}
	path := jsonl(t, lines...)
	d := load(t, path)
	if n := d.MergeTenants(3); n != 2 {
		t.Errorf("%d merged", n)
	}
	r := report(t, d, "capacity_gate: {success_rate: 0.9}\nbuckets: [{by: {tenant: other}, ttft_p50: 1s}]", "tenant", "tenant*class")
	var names []string
	for _, b := range r.Buckets[1:4] {
		names = append(names, row("%s %d", b.By, b.Scheduled))
	}
	if got := strings.Join(names, ", "); got != "tenant big 7, tenant other 4, tenant unknown 1" {
		t.Errorf("buckets %s", got)
	}
	if n := r.Gate.Rules[1].N; n != 4 {
		t.Errorf("a rule on other has %d values", n)
	}
	by, err := analyze.ParseBy("tenant")
	if err != nil {
		t.Fatal(err)
	}
	again := load(t, path)
	again.MergeTenants(3)
	c, err := analyze.Compare(context.Background(), []analyze.Arm{{Name: "a", Data: d}, {Name: "b", Data: again}},
		analyze.CompareOptions{By: []analyze.By{by}, Resamples: 10})
	if err != nil {
		t.Fatal(err)
	}
	buckets, verdicts := r.Tables()
	outputs := renderings(t, r)
	outputs["tables"] = row("%+v %+v other", buckets, verdicts)
	for what, write := range map[string]func(io.Writer) error{"compare": c.WriteJSON, "compare text": c.WriteText, "compare markdown": c.WriteMarkdown} {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		outputs[what] = b.String()
	}
	for what, text := range outputs {
		if strings.Contains(text, "tiny") || strings.Contains(text, "small") || !strings.Contains(text, "other") {
			t.Errorf("%s names a small tenant, or not the others", what)
		}
	}
	if load(t, path).MergeTenants(1) != 0 {
		t.Error("k 1 merges")
	}
}
