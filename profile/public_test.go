package profile_test

import (
	"context"
	"math"
	"testing"

	"tailgate/internal/testshared"
	"tailgate/profile"
	"tailgate/trace"
)

func public(t *testing.T, name string) *profile.Profile {
	t.Helper()
	tr, err := trace.Load(context.Background(), testshared.Path(t, name), trace.Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	return compute(t, tr, profile.Options{})
}

func idcOf(p *profile.Profile, scaleUs int64) *float64 {
	for _, d := range p.Dispersion {
		if d.ScaleUs == scaleUs {
			return d.IDC
		}
	}
	return nil
}

func percent(t *testing.T, name string, got *float64, want float64) {
	t.Helper()
	near(t, name, got, want, .01*want)
}

func TestAzureConversation(t *testing.T) {
	p := public(t, "data/azure-llm-2023/AzureLLMInferenceTrace_conv.csv")
	if n := p.Meta[0].Requests; n != 19_366 {
		t.Errorf("%d requests", n)
	}
	span := *p.IAT[0].MeanS * float64(p.IAT[0].N)
	percent(t, "span", &span, 3502)
	percent(t, "CV", p.IAT[0].CVRaw, 1.094)
	percent(t, "CV after 60 s", p.IAT[0].CVOp60, 1.026)
	percent(t, "Gamma shape", fitOf(t, p, profile.ClockRaw, profile.Gamma, profile.MethodMLE).P1, .871)
	percent(t, "Weibull shape", fitOf(t, p, profile.ClockRaw, profile.Weibull, profile.MethodMLE).P1, .922)
	near(t, "lognormal KS", fitOf(t, p, profile.ClockRaw, profile.LogNormal, profile.MethodMLE).KS, .091, .001)
	near(t, "Spearman of load and output", p.JointStat[0].SpearmanRateOut, -.88, .0088)
	near(t, "Spearman", p.JointStat[0].Spearman, .07, .01)
	near(t, "MI", p.JointStat[0].MINats, .67, .05)
	for scale, want := range map[int64]float64{100_000: 1.06, 1_000_000: 1.39, 10_000_000: 3.87, 60_000_000: 16.4, 300_000_000: 61.7} {
		percent(t, "IDC", idcOf(p, scale), want)
	}
	for _, l := range p.Lengths {
		if l.Dim == profile.DimOutput && l.LoTok == 396 && l.IsAtom && l.N != 425 {
			t.Errorf("output 396 was seen %d times", l.N)
		}
	}
}

func TestAzureCode(t *testing.T) {
	p := public(t, "data/azure-llm-2023/AzureLLMInferenceTrace_code.csv")
	percent(t, "CV", p.IAT[0].CVRaw, 13.15)
	w := fitOf(t, p, profile.ClockRaw, profile.Weibull, profile.MethodMLE)
	percent(t, "Weibull shape", w.P1, .42)
	if !w.Selected {
		t.Error("Weibull is not selected")
	}
	percent(t, "IDC 60 s", idcOf(p, 60_000_000), 167)
	percent(t, "CV after 60 s", p.IAT[0].CVOp60, 7.15)
	percent(t, "CV after 300 s", p.IAT[0].CVOp300, 12.6)
}

func TestMooncakeConversation(t *testing.T) {
	p := public(t, "data/mooncake-fast25/conversation_trace.jsonl")
	near(t, "CV", p.IAT[0].CVRaw, 1.01, .02)
	near(t, "IDC 60 s", idcOf(p, 60_000_000), 2.95, .1)
	if p.Meta[0].Sessions != 7373 {
		t.Errorf("%d sessions", p.Meta[0].Sessions)
	}
	s := p.SessionStat[0]
	near(t, "multi-turn", s.MultiTurn, .306, .001)
	near(t, "negative growth", s.NegativeGrowth, .186, .005)
	near(t, "branches", s.Branches, 1-.847, .01)
	blocks, once := int64(0), int64(0)
	for _, r := range p.Popularity {
		blocks += r.Blocks
		if r.LoUses == 1 {
			once += r.Blocks
		}
	}
	share := float64(once) / float64(blocks)
	near(t, "blocks used once", &share, .758, .001)
	want := map[int64]float64{1_000: .045, 3_000: .065, 10_000: .212, 30_000: .326, 50_000: .355, 100_000: .364}
	seen := 0
	for _, h := range p.HitCurve {
		if h.CapacityBlocks == nil {
			near(t, "infinite", h.BlockHit, .3664, .001)
			near(t, "infinite by tokens", h.TokenHit, .3736, .001)
			seen++
		} else if hit, ok := want[*h.CapacityBlocks]; ok {
			near(t, "LRU", h.BlockHit, hit, .003)
			seen++
		}
	}
	if seen != 7 {
		t.Errorf("%d of 7 points of the hit curve", seen)
	}
}

func TestMooncakeSynthetic(t *testing.T) {
	p := public(t, "data/mooncake-fast25/synthetic_trace.jsonl")
	percent(t, "CV", p.IAT[0].CVRaw, 1.01)
	near(t, "infinite", p.HitCurve[0].BlockHit, .64, .005)
	if idc := idcOf(p, 1_000_000); idc == nil || math.Abs(*idc-1) > .15 {
		t.Errorf("IDC 1 s %v", idc)
	}
	for _, f := range p.IATFit {
		if f.Clock == profile.ClockRaw && f.Selected && f.Dist != profile.Exponential {
			t.Errorf("%s selected for a Poisson process", f.Dist)
		}
	}
}
