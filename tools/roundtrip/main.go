// Command roundtrip measures what traffic drawn from a profile keeps of the trace that was profiled: it prints, in
// Markdown, figures of each trace given and, beside them, the median and the range of the same figures over traces
// drawn with different seeds. docs/synth.md keeps its output.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"

	"tailgate/profile"
	"tailgate/schemas"
	"tailgate/synth"
	"tailgate/trace"
)

func main() {
	seeds := flag.Int("seeds", 12, "traces to draw from each profile")
	flag.Parse()
	if flag.NArg() == 0 || *seeds < 1 {
		fmt.Fprintln(os.Stderr, "usage: roundtrip [-seeds 12] TRACE…")
		os.Exit(2)
	}
	for _, path := range flag.Args() {
		if err := measure(context.Background(), os.Stdout, path, *seeds); err != nil {
			fmt.Fprintln(os.Stderr, "roundtrip:", err)
			os.Exit(1)
		}
	}
}

// figure is one row of the table.
type figure struct {
	name string
	of   func(p *profile.Profile) *float64
}

func measure(ctx context.Context, w io.Writer, path string, seeds int) error {
	src, err := trace.Load(ctx, path, trace.Options{Seed: 1})
	if err != nil {
		return err
	}
	p, err := profile.Compute(ctx, src, profile.Options{})
	if err != nil {
		return err
	}
	drawn := make([]*profile.Profile, seeds)
	notes := ""
	for i := range drawn {
		res, err := synth.FromProfile(ctx, p, synth.ModelOptions{Seed: uint64(i + 1)})
		if err != nil {
			return err
		}
		if drawn[i], err = profile.Compute(ctx, res.Trace, profile.Options{}); err != nil {
			return err
		}
		notes = res.Notes[0]
	}
	fmt.Fprintf(w, "**%s**: %s\n\n| figure | trace | drawn, median | range |\n|---|---|---|---|\n", filepath.Base(path), notes)
	for _, f := range figures(p) {
		want := f.of(p)
		if want == nil {
			continue
		}
		var got []float64
		for _, d := range drawn {
			if v := f.of(d); v != nil {
				got = append(got, *v)
			}
		}
		if len(got) == 0 {
			continue
		}
		slices.Sort(got)
		median := (got[(len(got)-1)/2] + got[len(got)/2]) / 2
		fmt.Fprintf(w, "| %s | %s | %s | %s – %s |\n", f.name, short(*want), short(median), short(got[0]), short(got[len(got)-1]))
	}
	fmt.Fprintln(w)
	return nil
}

// figures lists what is measured; what a trace does not have gives no row.
func figures(p *profile.Profile) []figure {
	out := []figure{
		{"requests", func(p *profile.Profile) *float64 { return num(float64(p.Meta[0].Requests)) }},
		{"CV of the gaps", func(p *profile.Profile) *float64 { return p.IAT[0].CVRaw }},
		{"CV, 60 s rate taken out", func(p *profile.Profile) *float64 { return p.IAT[0].CVOp60 }},
		{"Gamma shape of the gaps", shape(profile.Gamma)},
		{"Weibull shape of the gaps", shape(profile.Weibull)},
	}
	for _, s := range []int64{100_000, 1_000_000, 10_000_000, 60_000_000, 300_000_000} {
		out = append(out, figure{fmt.Sprintf("IDC at %g s", float64(s)/1e6), func(p *profile.Profile) *float64 {
			for _, d := range p.Dispersion {
				if d.ScaleUs == s {
					return d.IDC
				}
			}
			return nil
		}})
	}
	out = append(out,
		figure{"mean input", mean(profile.DimInput)},
		figure{"KS of inputs to the trace's (bins)", distance(p, profile.DimInput)},
		figure{"mean output", mean(profile.DimOutput)},
		figure{"KS of outputs to the trace's (bins)", distance(p, profile.DimOutput)},
		figure{"Spearman of input and output", func(p *profile.Profile) *float64 { return p.JointStat[0].Spearman }},
		figure{"mutual information, nats", func(p *profile.Profile) *float64 { return p.JointStat[0].MINats }},
		figure{"Spearman of requests and mean output by minute", func(p *profile.Profile) *float64 { return p.JointStat[0].SpearmanRateOut }},
	)
	if p.SessionStat[0].LaterTurns == 0 {
		return out
	}
	out = append(out,
		figure{"turns of a session", func(p *profile.Profile) *float64 {
			s := &p.SessionStat[0]
			return num(float64(s.Turns) / float64(s.Sessions))
		}},
		figure{"later turns shorter than prompt and answer before", func(p *profile.Profile) *float64 { return p.SessionStat[0].NegativeGrowth }},
		figure{"blocks of the parent that later turns share", func(p *profile.Profile) *float64 { return p.SessionStat[0].Carry }},
		figure{"blocks hit, infinite cache", hit(0)},
	)
	for _, c := range []int64{1_000, 10_000, 30_000, 100_000} {
		out = append(out, figure{fmt.Sprintf("blocks hit, LRU of %d", c), hit(c)})
	}
	return out
}

// short has four digits, and no exponent.
func short(x float64) string {
	if math.Abs(x) >= 1000 {
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.4g", x)
}

func num(x float64) *float64 { return &x }

func shape(dist string) func(p *profile.Profile) *float64 {
	return func(p *profile.Profile) *float64 {
		for _, f := range p.IATFit {
			if f.Clock == profile.ClockRaw && f.Dist == dist && f.Method == profile.MethodMLE {
				return f.P1
			}
		}
		return nil
	}
}

func hit(capacity int64) func(p *profile.Profile) *float64 {
	return func(p *profile.Profile) *float64 {
		for _, h := range p.HitCurve {
			if capacity == 0 && h.CapacityBlocks == nil || h.CapacityBlocks != nil && *h.CapacityBlocks == capacity {
				return h.BlockHit
			}
		}
		return nil
	}
}

func mean(dim string) func(p *profile.Profile) *float64 {
	return func(p *profile.Profile) *float64 {
		var tokens, n float64
		for _, r := range p.Rate {
			if r.BinUs != 600_000_000 {
				continue
			}
			n += float64(r.Requests - r.Errors)
			if dim == profile.DimInput {
				tokens += float64(r.TokensIn)
			} else {
				tokens += float64(r.TokensOut)
			}
		}
		return num(tokens / n)
	}
}

// distance is the Kolmogorov–Smirnov distance of the lengths of a profile to p's, at the borders of the bins.
func distance(p *profile.Profile, dim string) func(q *profile.Profile) *float64 {
	want := cumulative(p.Lengths, dim)
	return func(q *profile.Profile) *float64 {
		got, d := cumulative(q.Lengths, dim), 0.0
		var a, b float64
		for _, k := range borders(want, got) {
			if v, ok := want[k]; ok {
				a = v
			}
			if v, ok := got[k]; ok {
				b = v
			}
			d = max(d, math.Abs(a-b))
		}
		return &d
	}
}

// cumulative is the share of lengths up to the bin of 16 to the octave that begins at a value.
func cumulative(rows []schemas.ProfileLength, dim string) map[int32]float64 {
	counts, total := map[int32]float64{}, 0.0
	for _, l := range rows {
		if l.Dim != dim {
			continue
		}
		lo := l.LoTok
		if lo >= 32 {
			step := int32(1) << (int(math.Log2(float64(lo))) - 4)
			lo = lo / step * step
		}
		counts[lo] += float64(l.N)
		total += float64(l.N)
	}
	sum := 0.0
	for _, k := range borders(counts, nil) {
		sum += counts[k]
		counts[k] = sum / total
	}
	return counts
}

func borders(a, b map[int32]float64) []int32 {
	out := slices.Collect(maps.Keys(a))
	for k := range b {
		if _, ok := a[k]; !ok {
			out = append(out, k)
		}
	}
	slices.Sort(out)
	return out
}
