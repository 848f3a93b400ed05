package analyze_test

import (
	"fmt"
	"strings"
	"testing"

	"tailgate/schemas"
)

// Every metric may be ruled at every percentile, and every rule of the design gets a verdict with a reason.
func TestEveryRuleIsJudged(t *testing.T) {
	var b strings.Builder
	b.WriteString("capacity_gate:\n  success_rate: 0.5\n  queue_growth: no_sustained_growth\n  queue_depth_max: 100000\n  output_tokens_per_s: 1\n")
	rules := 4
	for _, m := range strings.Fields("ttft ttfo tpot itl inter_chunk e2e ttft_sent e2e_sent lag queue queue_time output_tokens") {
		for _, p := range strings.Fields("p50 p90 p95 p99 p995 p999 p99.9") {
			limit := "100s"
			if m == "output_tokens" {
				limit = "100000"
			}
			fmt.Fprintf(&b, "  %s_%s: %s\n", m, p, limit)
			rules++
		}
	}
	d := load(t, folder(t, queueRun{seed: 5, minutes: 70, rate: 2, serveMs: 1000, slots: 4}.rows(), nil))
	r := report(t, d, b.String())
	if len(r.Gate.Rules) != rules {
		t.Fatalf("%d rules of %d", len(r.Gate.Rules), rules)
	}
	for _, v := range r.Gate.Rules {
		switch {
		case v.Verdict == schemas.VerdictPass:
		// Above p99 the rule needs longer runs: 69 minutes are a provisional pass at most.
		case v.Verdict == schemas.VerdictInconclusive && strings.HasPrefix(v.Rule[strings.LastIndex(v.Rule, "_"):], "_p99"):
			if !v.NeedsMinutes.Known() || float64(v.NeedsMinutes) < 1 {
				t.Errorf("%s: no minutes are named: %s", v.Rule, v.Reason)
			}
		default:
			t.Errorf("%s: %s, %s", v.Rule, v.Verdict, v.Reason)
		}
		if v.Reason == "" || v.Provisional && !strings.Contains(v.Reason, "provisional") {
			t.Errorf("%s: reason %q, provisional %v", v.Rule, v.Reason, v.Provisional)
		}
	}
}

// A provisional pass says so in every output.
func TestProvisionalIsSaidEverywhere(t *testing.T) {
	d := load(t, folder(t, queueRun{seed: 5, minutes: 13, rate: 2, serveMs: 500, slots: 4}.rows(), nil))
	r := report(t, d, "capacity_gate: {ttft_p95: 20s}")
	if r.Verdict() != schemas.VerdictPass || !r.Gate.Provisional {
		t.Fatalf("%s: %s", r.Verdict(), r.Gate.Rules[0].Reason)
	}
	for what, out := range renderings(t, r) {
		if !strings.Contains(strings.ReplaceAll(out, `"provisional": false`, ""), "provisional") {
			t.Errorf("%s does not say that the pass is provisional", what)
		}
	}
	if _, verdicts := r.Tables(); !verdicts[0].Provisional || verdicts[0].N == 0 || verdicts[0].NEff == nil {
		t.Errorf("the table: %+v", verdicts[0])
	}
}
