package synth

// event is what comes at a moment: a turn of a session, or the next start of a source.
type event struct {
	us      int64
	seq     int64 // order of events at one instant
	session *dialog
	source  *source
}

// events is a binary heap by time.
type events []event

func (e events) less(a, b int) bool {
	return e[a].us < e[b].us || e[a].us == e[b].us && e[a].seq < e[b].seq
}

func (e *events) push(x event) {
	*e = append(*e, x)
	h := *e
	for i := len(h) - 1; i > 0; {
		up := (i - 1) / 2
		if !h.less(i, up) {
			break
		}
		h[i], h[up] = h[up], h[i]
		i = up
	}
}

// replaceTop puts x in the place of the first event; pop removes it.
func (e *events) replaceTop(x event) {
	(*e)[0] = x
	e.sink()
}

func (e *events) pop() {
	h := *e
	h[0] = h[len(h)-1]
	h[len(h)-1] = event{}
	*e = h[:len(h)-1]
	e.sink()
}

func (e *events) sink() {
	h := *e
	for i := 0; ; {
		low := i
		for _, k := range [2]int{2*i + 1, 2*i + 2} {
			if k < len(h) && h.less(k, low) {
				low = k
			}
		}
		if low == i {
			return
		}
		h[i], h[low] = h[low], h[i]
		i = low
	}
}
