package profile

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"text/tabwriter"

	"tailgate/internal/percent"
	"tailgate/schemas"
)

// Limits are the distances above which a figure has drifted, by metric.
type Limits map[string]float64

// DefaultLimits are the limits of every metric of Drift:
//
//	request_rate, iat_cv, idc_60s, burstiness, mean_turns   relative change
//	input_length_ks, output_length_ks                       largest distance of the distribution functions
//	input_length_psi, output_length_psi                     population stability index; above 0.2 is taken for a shift
//	hit_curve                                               largest difference of the block hit ratio at a capacity
//	failed_share                                            difference
func DefaultLimits() Limits {
	return Limits{
		"request_rate": 0.25, "iat_cv": 0.25, "idc_60s": 0.5, "burstiness": 0.25, "mean_turns": 0.25,
		"input_length_ks": 0.1, "output_length_ks": 0.1, "input_length_psi": 0.2, "output_length_psi": 0.2,
		"hit_curve": 0.05, "failed_share": 0.02,
	}
}

// Set changes the limit of a metric to 0.25, 25% or off, which leaves the metric out.
func (l Limits) Set(metric, value string) error {
	if _, ok := DefaultLimits()[metric]; !ok {
		return fmt.Errorf("%q is no metric", metric)
	}
	if value == "off" {
		delete(l, metric)
		return nil
	}
	v, err := percent.Parse(value)
	if err != nil || v < 0 {
		return fmt.Errorf("%q is not a limit such as 0.25 or 25%%", value)
	}
	l[metric] = v
	return nil
}

// Drift holds the totals of p against those of an earlier profile ref: one row per metric of limits, in the order of
// their names. A figure that one of them does not tell has no distance and never flags. An unknown metric is a usage
// error of the caller and gives a row without figures.
func Drift(ref, p *Profile, limits Limits) []schemas.ProfileDrift {
	d := drift{ref: ref, p: p}
	var out []schemas.ProfileDrift
	for _, metric := range slices.Sorted(maps.Keys(limits)) {
		row := schemas.ProfileDrift{Metric: metric, Limit: limits[metric], ProfileKey: p.Meta[0].ProfileKey, RefProfileID: ref.Meta[0].ProfileID}
		row.RefValue, row.Value, row.Distance = d.of(metric)
		row.Flag = row.Distance != nil && *row.Distance > row.Limit
		out = append(out, row)
	}
	return out
}

type drift struct{ ref, p *Profile }

// of gives the figure before and now, and their distance.
func (d drift) of(metric string) (before, now, distance *float64) {
	relative := func(f func(p *Profile) *float64) (*float64, *float64, *float64) {
		a, b := f(d.ref), f(d.p)
		if a == nil || b == nil || *a == 0 {
			return a, b, nil
		}
		return a, b, val(math.Abs(*b / *a - 1))
	}
	switch metric {
	case "request_rate":
		return relative((*Profile).totalRate)
	case "iat_cv":
		return relative(func(p *Profile) *float64 {
			if r := p.totalIAT(); r != nil {
				return r.CVRaw
			}
			return nil
		})
	case "idc_60s":
		return relative((*Profile).totalIDC60)
	case "burstiness":
		return relative((*Profile).totalBurstiness)
	case "mean_turns":
		return relative((*Profile).meanTurns)
	case "failed_share":
		share := func(p *Profile) *float64 { return val(float64(p.Meta[0].Failed) / float64(p.Meta[0].Requests)) }
		a, b := share(d.ref), share(d.p)
		if a == nil || b == nil {
			return a, b, nil
		}
		return a, b, val(math.Abs(*b - *a))
	case "hit_curve":
		return d.hits()
	case "input_length_ks", "output_length_ks", "input_length_psi", "output_length_psi":
		return d.lengths(metric)
	}
	return nil, nil, nil
}

func (p *Profile) totalRate() *float64 {
	return val(float64(p.Meta[0].Requests) / p.seconds())
}

// seconds is the length of all windows.
func (p *Profile) seconds() (sum float64) {
	for _, w := range p.windows() {
		sum += w.end.Sub(w.start).Seconds()
	}
	return sum
}

func (p *Profile) totalIDC60() *float64 {
	for _, r := range p.Dispersion {
		if p.inWhole(r.ProfileKey) && r.ScaleUs == 60_000_000 {
			return r.IDC
		}
	}
	return nil
}

// totalBurstiness is the Gamma shape of the gaps by maximum likelihood.
func (p *Profile) totalBurstiness() *float64 {
	for _, r := range p.IATFit {
		if p.inWhole(r.ProfileKey) && r.Clock == ClockRaw && r.Dist == Gamma && r.Method == MethodMLE {
			return r.P1
		}
	}
	return nil
}

func (p *Profile) meanTurns() *float64 {
	sessions, turns := 0.0, 0.0
	for _, r := range p.Sessions {
		if isTotal(r.ProfileKey) {
			sessions, turns = sessions+float64(r.Sessions), turns+float64(r.Sessions)*float64(r.Turns)
		}
	}
	return val(turns / sessions)
}

// hits is the capacity at which the hit ratios differ most.
func (d drift) hits() (before, now, distance *float64) {
	of := func(p *Profile) map[int64]*float64 {
		m := map[int64]*float64{}
		for _, r := range p.HitCurve {
			if !p.inWhole(r.ProfileKey) {
				continue
			}
			c := int64(0)
			if r.CapacityBlocks != nil {
				c = *r.CapacityBlocks
			}
			m[c] = r.BlockHit
		}
		return m
	}
	x, y := of(d.ref), of(d.p)
	for _, c := range slices.Sorted(maps.Keys(x)) {
		a, b := x[c], y[c]
		if a == nil || b == nil {
			continue
		}
		if off := math.Abs(*b - *a); distance == nil || off > *distance {
			before, now, distance = a, b, &off
		}
	}
	return before, now, distance
}

// lengths compares the length histograms in bins of a quarter octave; the figures beside are the means.
func (d drift) lengths(metric string) (before, now, distance *float64) {
	dim := DimInput
	if strings.HasPrefix(metric, DimOutput) {
		dim = DimOutput
	}
	of := func(p *Profile) (bins map[int32]float64, n, mean float64) {
		bins = map[int32]float64{}
		for _, r := range p.Lengths {
			if !isTotal(r.ProfileKey) || r.Dim != dim {
				continue
			}
			middle := (float64(r.LoTok) + float64(r.HiTok-1)) / 2
			lo, _ := logBin(int64(middle))
			bins[int32(lo)] += float64(r.N)
			n, mean = n+float64(r.N), mean+float64(r.N)*middle
		}
		return bins, n, mean / n
	}
	x, nx, mx := of(d.ref)
	y, ny, my := of(d.p)
	if nx == 0 || ny == 0 {
		return nil, nil, nil
	}
	all := maps.Clone(x)
	maps.Copy(all, y)
	var ks, psi, fx, fy float64
	for _, lo := range slices.Sorted(maps.Keys(all)) {
		fx, fy = fx+x[lo]/nx, fy+y[lo]/ny
		ks = max(ks, math.Abs(fx-fy))
		// Half a request in an empty bin keeps the logarithm finite.
		a, b := max(x[lo], 0.5)/nx, max(y[lo], 0.5)/ny
		psi += (b - a) * math.Log(b/a)
	}
	if strings.HasSuffix(metric, "_ks") {
		return val(mx), val(my), val(ks)
	}
	return val(mx), val(my), val(psi)
}

// Drifted counts the flags.
func Drifted(rows []schemas.ProfileDrift) (n int) {
	for _, r := range rows {
		if r.Flag {
			n++
		}
	}
	return n
}

// WriteDrift writes the rows as a table. Errors of w are dropped: the caller's writer keeps its own.
func WriteDrift(w io.Writer, rows []schemas.ProfileDrift) {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	defer t.Flush()
	fmt.Fprintln(t, "metric\tbefore\tnow\tdistance\tlimit\t")
	for _, r := range rows {
		mark := ""
		if r.Flag {
			mark = "DRIFTED"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%g\t%s\n", r.Metric, opt(r.RefValue), opt(r.Value), opt(r.Distance), r.Limit, mark)
	}
}
