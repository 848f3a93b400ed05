package chart

// Sparkline draws values from 0 to their maximum as one character each.
func Sparkline(v []float64) string {
	levels := []rune("▁▂▃▄▅▆▇█")
	top := 0.0
	for _, x := range v {
		top = max(top, x)
	}
	out := make([]rune, len(v))
	for i, x := range v {
		k := 0
		if top > 0 {
			k = min(max(int(x/top*float64(len(levels))), 0), len(levels)-1)
		}
		out[i] = levels[k]
	}
	return string(out)
}
