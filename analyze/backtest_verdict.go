package analyze

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// failuresApart is the difference of the shares of failures above which the percentiles of those answered are not alike.
const failuresApart = .01

// settle corrects the p values of all p99s for their number (Holm 1979) and gives the verdicts.
//
// A p99 is not calibrated when its ratio is beyond 1 ± the tolerance (above 1 + t or below 1/(1 + t)) and a ratio of 1 is
// refuted at the confidence, after the correction. It is calibrated when its ratio is within, and so is the whole interval
// within twice the tolerance. Else it cannot be told. The run is not calibrated when any p99 is not; it is calibrated when
// those over all requests are, of every metric that production tells.
func (b *Backtested) settle() {
	var p99 []*Figure
	for c := range b.Cells {
		for k := range b.Cells[c].Ratios {
			if r := &b.Cells[c].Ratios[k]; r.Percentile == .99 && r.P.Known() {
				p99 = append(p99, &r.P)
			}
		}
	}
	holm(p99, len(p99))
	for c := range b.Cells {
		cell := &b.Cells[c]
		for k := range cell.Ratios {
			if r := &cell.Ratios[k]; r.Percentile == .99 {
				r.judge(b, cell)
			}
		}
	}
	b.conclude()
}

// holm makes known p values those of a family of so many tests (Holm 1979): the smallest times the number of all, the next
// times one less, and none below the one before.
func holm(p []*Figure, tests int) {
	slices.SortFunc(p, func(a, b *Figure) int { return cmp.Compare(*a, *b) })
	least := 0.0
	for rank, x := range p {
		least = max(least, min(1, float64(*x)*float64(tests-rank)))
		*x = Figure(least)
	}
}

// off is the distance of a ratio from 1 on the log scale.
func off(ratio Figure) float64 { return math.Abs(math.Log(float64(ratio))) }

func (r *Ratio) judge(b *Backtested, cell *BacktestCell) {
	tolerated := math.Log(1 + b.Tolerance)
	r.Verdict = CannotTell
	apart := math.Abs(float64(cell.ReplayOK - cell.ProdOK))
	switch {
	case r.Reason != "":
	case off(r.Ratio) > tolerated && float64(r.P) <= 1-b.Confidence:
		r.Verdict = NotCalibrated
	case off(r.Ratio) > tolerated:
		r.Reason = "over the tolerance, but a ratio of 1 is not refuted"
	case apart > failuresApart:
		r.Reason = fmt.Sprintf("%s of the replay's requests succeed and %s of production's: those that were answered are not alike", share(cell.ReplayOK), share(cell.ProdOK))
	case max(off(r.Lower), off(r.Upper)) > math.Log(1+2*b.Tolerance):
		r.Reason = "within the tolerance, but its interval reaches beyond twice of it"
	default:
		r.Verdict = Calibrated
	}
}

// conclude gives the verdict of the run, with its reasons.
func (b *Backtested) conclude() {
	told, calibrated := 0, 0
	for c, cell := range b.Cells {
		for _, r := range cell.Ratios {
			if r.Percentile != .99 {
				continue
			}
			f := Factor{cell.By, r.Metric, r.Ratio, r.Lower, r.Upper}
			switch {
			case r.Verdict == NotCalibrated:
				b.Reasons = append(b.Reasons, fmt.Sprintf("p99 %s of %s is %s times production's", metricWord(r.Metric), cell.By, ratioText(r)))
				if b.Worst == nil || off(r.Ratio) > off(b.Worst.Ratio) {
					b.Worst = &f
				}
			case r.Verdict == CannotTell && r.ProdN > 0 && c > 0:
				b.Unchecked = append(b.Unchecked, fmt.Sprintf("p99 %s of %s: %s", metricWord(r.Metric), cell.By, r.Reason))
			case r.ProdN == 0 && cell.Replay > 0:
				b.Unchecked = append(b.Unchecked, fmt.Sprintf("%s of %s: %s", metricWord(r.Metric), cell.By, r.Reason))
			}
			if c > 0 {
				continue
			}
			if r.Ratio.Known() {
				b.Factors = append(b.Factors, f)
			}
			if r.ProdN > 0 {
				told++
				switch r.Verdict {
				case Calibrated:
					calibrated++
				case CannotTell:
					b.Reasons = append(b.Reasons, fmt.Sprintf("p99 %s of %s: %s", metricWord(r.Metric), cell.By, r.Reason))
				}
			}
		}
	}
	switch {
	case b.Worst != nil:
		b.Verdict = NotCalibrated
	case told > 0 && calibrated == told:
		b.Verdict = Calibrated
	default:
		b.Verdict = CannotTell
		if told == 0 {
			b.Reasons = append(b.Reasons, "production tells no latency of these requests")
		}
	}
}

// metricWord is ttft for ttft_ms.
func metricWord(json string) string { return json[:len(json)-len("_ms")] }

// ratioText is "1.31 [1.22, 1.45]".
func ratioText(r Ratio) string {
	return fmt.Sprintf("%.3g [%.3g, %.3g]", float64(r.Ratio), float64(r.Lower), float64(r.Upper))
}
