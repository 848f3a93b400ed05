package profile

import (
	"cmp"
	"slices"

	"gonum.org/v1/gonum/stat"
)

// spearman is Spearman's rank correlation, ties at their mean rank; NaN when one side is constant.
func spearman(x, y []float64) float64 { return stat.Correlation(ranks(x), ranks(y), nil) }

func ranks(x []float64) []float64 {
	order := make([]int, len(x))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(x[a], x[b]) })
	out := make([]float64, len(x))
	for i := 0; i < len(order); {
		end := i
		for end < len(order) && x[order[end]] == x[order[i]] {
			end++
		}
		for _, k := range order[i:end] {
			out[k] = float64(i+end-1)/2 + 1
		}
		i = end
	}
	return out
}
