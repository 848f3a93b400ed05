package jinja

// like is s, all of it content if any of from is: for operations that move bytes about.
func like(s string, from ...Value) Value {
	for _, v := range from {
		if len(spansOf(v)) > 0 {
			return Content(s)
		}
	}
	return s
}

// sub is the bytes [from, to) of v, which is a string, with the content in them.
func sub(v Value, from, to int) Value {
	switch v := v.(type) {
	case string:
		return v[from:to]
	case *Text:
		var spans []Span
		for _, s := range v.Spans {
			a, b := max(s.From, from), min(s.To, to)
			if a < b {
				spans = append(spans, Span{a - from, b - from})
			}
		}
		return textOf(v.S[from:to], spans)
	}
	return ""
}

// appendSpans adds spans, shifted by at, to dst and joins neighbours.
func appendSpans(dst, spans []Span, at int) []Span {
	for _, s := range spans {
		if n := len(dst); n > 0 && dst[n-1].To == s.From+at {
			dst[n-1].To = s.To + at
			continue
		}
		dst = append(dst, Span{s.From + at, s.To + at})
	}
	return dst
}
