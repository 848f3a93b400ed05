package capacity

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"tailgate/schemas"
)

// moved compares the day with the band in which the envelope was tested, and names the cells to test again.
func (h *headroomMaker) moved() {
	b := h.e.Tested
	if b == nil {
		h.note("the envelope does not say on what traffic it was tested (band unknown): whether it is stale cannot be told")
		return
	}
	h.shares(b)
	h.lengths(b)
	h.hits(b)
	stale := len(h.out.Moved) > 0
	h.out.Stale = &stale
	for _, m := range h.out.Moved {
		for _, r := range h.e.Rows {
			if cell := (Cell{r.Class, r.Pattern}).String(); r.Class == m.Class && !slices.Contains(h.out.Again, cell) {
				h.out.Again = append(h.out.Again, cell)
			}
		}
	}
}

func (h *headroomMaker) left(class, figure string, v float64, r Range, text string) {
	h.out.Moved = append(h.out.Moved, schemas.HeadroomMoved{Class: class, Figure: figure, Value: v, Low: r.Low, High: r.High, Text: text})
}

// shares holds the classes' shares of the requests against the mix that was tested. A class that is new has a band around 0.
func (h *headroomMaker) shares(b *Band) {
	total := h.today.classes[Mix]
	if total == nil || total.requests == 0 {
		return
	}
	if len(h.today.classes) == 1 && len(b.Shares) > 1 {
		h.note("the profile has no rows for classes: the mix was not compared")
		return
	}
	names := map[string]bool{}
	for c := range b.Shares {
		names[c] = true
	}
	for c := range h.today.classes {
		names[c] = c != Mix
	}
	for _, class := range slices.Sorted(maps.Keys(names)) {
		r, tested := b.Shares[class]
		if !names[class] {
			continue
		}
		if !tested {
			r = around(0, shareMargin, 1)
		}
		v := 0.0
		if c := h.today.classes[class]; c != nil {
			v = float64(c.requests) / float64(total.requests)
		}
		if len(h.today.classes) > 1 && !r.holds(v) {
			h.left(Mix, "mix_share", v, r, fmt.Sprintf("class %s has %.3g %% of the requests, tested with %.3g %% (%.3g to %.3g %%)", orNone(class), 100*v, 100*r.Value, 100*r.Low, 100*r.High))
		}
	}
}

// lengths holds quantiles of lengths against those that were tested: of the mix, and of classes with rows of their own.
func (h *headroomMaker) lengths(b *Band) {
	for _, l := range b.Lengths {
		if !slices.ContainsFunc(h.e.Rows, func(r EnvelopeRow) bool { return r.Class == l.Class }) {
			continue
		}
		v, n := h.today.quantile(l.Class, l.Dim, l.P)
		if n < leastOfClass || l.P > .98 && n < leastOfP99 || l.holds(v) {
			continue
		}
		h.left(l.Class, l.name(), v, l.Range, fmt.Sprintf("%s tokens of %s: p%.0f is %.0f, tested with %.0f (%.0f to %.0f)", l.Dim, l.Class, 100*l.P, v, l.Value, l.Low, l.High))
	}
}

// hits holds the hit curve against the tested one, at the capacity where they differ most.
func (h *headroomMaker) hits(b *Band) {
	switch {
	case len(b.Hits) == 0:
		h.note("the envelope has no hit curve to compare with")
		return
	case len(h.today.hits) == 0:
		h.note("the profile has no hit curve: it was not compared")
		return
	case b.BlockSize != h.today.BlockSize:
		h.note("the hit curve was not compared: blocks of %d tokens were tested, the profile has blocks of %d", b.BlockSize, h.today.BlockSize)
		return
	}
	worst, by := -1, 0.0
	var value float64
	for i, r := range b.Hits {
		for _, p := range h.today.hits {
			if off := math.Abs(p.BlockHit - r.Value); p.CapacityBlocks == r.CapacityBlocks && !r.holds(p.BlockHit) && off > by {
				worst, by, value = i, off, p.BlockHit
			}
		}
	}
	if worst >= 0 {
		r := b.Hits[worst]
		h.left(Mix, fmt.Sprintf("hit_ratio_at_%d", r.CapacityBlocks), value, r.Range,
			fmt.Sprintf("a prefix cache of %d blocks hits %.3g %%, tested with %.3g %% (%.3g to %.3g %%)", r.CapacityBlocks, 100*value, 100*r.Value, 100*r.Low, 100*r.High))
	}
}
