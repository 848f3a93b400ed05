package capacity

// matrix is a small square matrix by rows.
type matrix [][]float64

func newMatrix(n int) matrix {
	m := make(matrix, n)
	for i := range m {
		m[i] = make([]float64, n)
	}
	return m
}

// addOuter adds w·z·zᵀ.
func (m matrix) addOuter(z []float64, w float64) {
	for i := range m {
		for j := range m {
			m[i][j] += w * z[i] * z[j]
		}
	}
}

// form is zᵀ·m·z.
func (m matrix) form(z []float64) float64 {
	sum := 0.0
	for i, x := range m.apply(z) {
		sum += x * z[i]
	}
	return sum
}

func (m matrix) apply(z []float64) []float64 {
	out := make([]float64, len(m))
	for i, row := range m {
		for j, x := range row {
			out[i] += x * z[j]
		}
	}
	return out
}

func (m matrix) times(o matrix) matrix {
	out := newMatrix(len(m))
	for i := range m {
		for j := range m {
			for k := range m {
				out[i][j] += m[i][k] * o[k][j]
			}
		}
	}
	return out
}

// inverse inverts a positive definite matrix by Gauss and Jordan.
func (m matrix) inverse() matrix {
	n := len(m)
	a, out := newMatrix(n), newMatrix(n)
	for i := range m {
		copy(a[i], m[i])
		out[i][i] = 1
	}
	for col := range n {
		p := a[col][col]
		for j := range n {
			a[col][j] /= p
			out[col][j] /= p
		}
		for i := range n {
			if f := a[i][col]; i != col && f != 0 {
				for j := range n {
					a[i][j] -= f * a[col][j]
					out[i][j] -= f * out[col][j]
				}
			}
		}
	}
	return out
}
