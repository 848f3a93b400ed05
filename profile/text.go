package profile

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"tailgate/internal/chart"
	"tailgate/schemas"
)

// WriteText writes one screen about the total: rate, gaps, fitted laws with the chosen one, dispersion,
// lengths, sessions and cache hits, and the largest groups when the profile has groups. A figure that cannot
// be told is a dash. Errors of w are dropped: the caller's writer keeps its own.
func (p *Profile) WriteText(w io.Writer) {
	b := bufio.NewWriter(w)
	defer b.Flush()
	if len(p.Meta) == 0 {
		fmt.Fprintln(b, "no profile")
		return
	}
	m := p.Meta[0]
	fmt.Fprintf(b, "profile    %s: %s requests, %s sessions, %s failed (%.2f %%)\n", m.ProfileID,
		group3(m.Requests), group3(m.Sessions), group3(m.Failed), 100*float64(m.Failed)/float64(max(m.Requests, 1)))
	if m.Requests == 0 {
		fmt.Fprintln(b, "           no requests: nothing to profile")
		return
	}
	p.textClock(b)
	p.textRate(b)
	if p.merged() {
		p.textWindows(b)
		p.textLengths(b, DimInput)
		p.textLengths(b, DimOutput)
		p.textGroups(b)
		return
	}
	p.textGaps(b)
	p.textLaws(b)
	p.textDispersion(b)
	p.textLengths(b, DimInput)
	p.textLengths(b, DimOutput)
	p.textJoint(b)
	p.textSessions(b)
	p.textHits(b)
	p.textLatency(b)
	p.textBursts(b)
	p.textGroups(b)
}

func isTotal(k schemas.ProfileKey) bool { return k.Tenant == All && k.Class == All }

func (p *Profile) textClock(w io.Writer) {
	m := p.Meta[0]
	fmt.Fprintf(w, "clock      resolution %s", width(m.TimeResolutionUs))
	if m.Dequantised {
		fmt.Fprint(w, "; stamps were spread inside their slot: what is told below that describes the spreading")
	}
	fmt.Fprintln(w)
}

func (p *Profile) textRate(w io.Writer) {
	bin := max(p.finestBin(), 60_000_000)
	var bins []schemas.ProfileRate
	for _, r := range p.Rate {
		if isTotal(r.ProfileKey) && r.BinUs == bin {
			bins = append(bins, r)
		}
	}
	if len(bins) == 0 {
		return
	}
	first, last := bins[0].BinStartUs/bin, bins[len(bins)-1].BinStartUs/bin
	peak := int64(0)
	counts := make([]float64, min(last-first+1, sparkWidth))
	for _, r := range bins {
		peak = max(peak, r.Requests)
		i := (r.BinStartUs/bin - first) * int64(len(counts)) / (last - first + 1)
		counts[i] += float64(r.Requests)
	}
	line := "rate       "
	iat := p.totalIAT()
	if iat == nil && p.Meta[0].Requests > 1 { // several windows, or a source without arrivals
		line += fmt.Sprintf("%s/s over %s", opt(p.totalRate()), seconds(p.seconds()))
		if p.merged() {
			line += fmt.Sprintf(" in %d windows", len(p.windows()))
		}
		line += ", "
	} else if iat != nil && *iat.MeanS > 0 {
		line += fmt.Sprintf("%s/s over %s, ", sig(1 / *iat.MeanS), seconds(*iat.MeanS*float64(iat.N)))
	} else {
		line += "all arrivals at one instant, "
	}
	unit := "minute"
	if bin > 60_000_000 {
		unit = width(bin)
	}
	fmt.Fprintf(w, "%speak %s %s%s\n           %s\n", line, unit, group3(peak), p.peaks(), chart.Sparkline(counts))
}

// finestBin is the width of the narrowest bins of the total's rate, 0 without any.
func (p *Profile) finestBin() (bin int64) {
	for _, r := range p.Rate {
		if isTotal(r.ProfileKey) && (bin == 0 || r.BinUs < bin) {
			bin = r.BinUs
		}
	}
	return bin
}

func (p *Profile) peaks() string {
	var parts []string
	for _, d := range p.Dispersion {
		if p.inWhole(d.ProfileKey) && d.PeakToMean != nil {
			parts = append(parts, fmt.Sprintf("%s %.2f", width(d.ScaleUs), *d.PeakToMean))
		}
	}
	if parts == nil {
		return ""
	}
	return ", peak/mean " + strings.Join(parts, " · ")
}

func (p *Profile) totalIAT() *schemas.ProfileIAT {
	for i := range p.IAT {
		if p.inWhole(p.IAT[i].ProfileKey) {
			return &p.IAT[i]
		}
	}
	return nil
}

func (p *Profile) textGaps(w io.Writer) {
	g := p.totalIAT()
	if g == nil && p.Meta[0].Requests > 1 {
		fmt.Fprintln(w, "gaps       not known: the source tells no arrivals")
		return
	}
	if g == nil {
		fmt.Fprintln(w, "gaps       none: one request")
		return
	}
	fmt.Fprintf(w, "gaps       n %s  mean %s  p50 %s  p90 %s  p99 %s  max %s  equal stamps %.1f %%\n", group3(g.N),
		optSeconds(g.MeanS), optSeconds(g.P50S), optSeconds(g.P90S), optSeconds(g.P99S), optSeconds(g.MaxS), 100**g.ZeroFrac)
	acf := "—"
	if len(g.ACF) > 0 {
		acf = fmt.Sprintf("%.2f", g.ACF[0])
	}
	fmt.Fprintf(w, "           CV (sample) %s, %s with the 60 s rate taken out, %s with 300 s; autocorrelation at lag 1 %s\n",
		opt(g.CVRaw), opt(g.CVOp60), opt(g.CVOp300), acf)
}

func (p *Profile) textLaws(w io.Writer) {
	for _, clock := range []string{ClockRaw, ClockOp60, ClockOp300} {
		var parts []string
		chosen := "too few gaps to choose"
		for _, f := range p.IATFit {
			if !isTotal(f.ProfileKey) || f.Clock != clock {
				continue
			}
			if f.Method == MethodMoments {
				parts = append(parts, f.Dist+" by moments, "+parameter(f))
				continue
			}
			if f.Selected {
				chosen = f.Dist
			}
			parts = append(parts, fmt.Sprintf("%s %s KS %s", f.Dist, parameter(f), opt(f.KS)))
		}
		if parts != nil {
			fmt.Fprintf(w, "law %-6s %s ← %s\n", clock, chosen, strings.Join(parts, " · "))
		}
	}
}

func parameter(f schemas.ProfileIATFit) string {
	switch f.Dist {
	case Exponential:
		return "rate " + opt(f.P1)
	case LogNormal:
		return "sigma " + opt(f.P2)
	case OnOff:
		if f.P2 != nil && f.P3 != nil {
			return fmt.Sprintf("rate %s for %.0f %% of the time", opt(f.P1), 100**f.P3/(*f.P2+*f.P3))
		}
	}
	return "shape " + opt(f.P1)
}

func (p *Profile) textDispersion(w io.Writer) {
	var parts []string
	for _, d := range p.Dispersion {
		if isTotal(d.ProfileKey) {
			parts = append(parts, fmt.Sprintf("%s %s", width(d.ScaleUs), opt(d.IDC)))
		}
	}
	if parts == nil {
		return
	}
	fmt.Fprintf(w, "IDC        %s  (1 = Poisson; — = fewer than %d windows or below the clock)\n", strings.Join(parts, " · "), MinWindows)
}
