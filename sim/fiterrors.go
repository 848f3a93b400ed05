package sim

import (
	"errors"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"tailgate/internal/stats"
)

// errors sets the standard errors, sandwich with the products of neighbours (Newey and West, lag 1), and the
// residuals.
func (e *equations) errors(s *solution, keep []bool) {
	k := len(s.used)
	scale := e.scales(s.used, keep)
	bread, meat := mat.NewSymDense(k, nil), mat.NewSymDense(k, nil)
	u := make([]float64, k)
	var before []float64
	var shares []float64
	for i := range e.y {
		if !keep[i] {
			before = nil
			continue
		}
		r := e.residual(s, i)
		shares = append(shares, math.Abs(r)/e.y[i])
		for c, j := range s.used {
			u[c] = e.x[i][j] / scale[c] * r / e.y[i]
		}
		for c, j := range s.used {
			for d := c; d < k; d++ {
				bread.SetSym(c, d, bread.At(c, d)+e.x[i][j]/scale[c]*e.x[i][s.used[d]]/scale[d]/e.y[i])
				m := u[c] * u[d]
				if before != nil {
					m += .5 * (u[c]*before[d] + u[d]*before[c])
				}
				meat.SetSym(c, d, meat.At(c, d)+m)
			}
		}
		before = nil
		if e.next[i] {
			before = slices.Clone(u)
		}
	}
	slices.Sort(shares)
	s.residualP50, _ = stats.Quantile(shares, .5)
	s.residualP95, _ = stats.Quantile(shares, .95)
	var inv mat.Dense
	if err := inv.Inverse(bread); err != nil {
		// Close to singular is what wide intervals say.
		var cond mat.Condition
		if !errors.As(err, &cond) {
			return
		}
	}
	var cov mat.Dense
	cov.Mul(&inv, meat)
	cov.Mul(&cov, &inv)
	e.stampBias(s, keep, scale, &inv)
	small := float64(s.n) / float64(max(1, s.n-k))
	for c, j := range s.used {
		s.se[j] = math.Sqrt(max(0, cov.At(c, c))*small) / scale[c]
	}
}

// resolution is that of the stamps, in ms.
const resolution = 1e-3

// stampBias bounds what the resolution of the stamps does to each coefficient: Σ |its derivative by a span's
// length| times the resolution.
func (e *equations) stampBias(s *solution, keep []bool, scale []float64, inv *mat.Dense) {
	k := len(s.used)
	for i := range e.y {
		if !keep[i] {
			continue
		}
		for c, j := range s.used {
			h := 0.0
			for d := range k {
				h += inv.At(c, d) * e.x[i][s.used[d]] / scale[d]
			}
			s.bias[j] += math.Abs(h) / scale[c] / e.y[i] * resolution
		}
	}
}
