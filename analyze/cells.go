package analyze

import (
	"cmp"
	"slices"
	"sort"
	"strings"
)

// cell is one bucket with its rows, in order of the schedule.
type cell struct {
	by   Tuple
	rows []int32
}

// slot is the place of a row under one part: 0 is unknown, 1 + the code of a label or the number of a range.
// A row below the first edge has no place (−1).
func (k key) slot(i int32, edges []int64) int {
	if k.words != nil {
		return int(k.words.at(i)) + 1
	}
	n := k.number(i)
	if n == noTime {
		return 0
	}
	at, found := slices.BinarySearch(edges, n)
	if found {
		at++
	}
	if at == 0 {
		return -1
	}
	return at
}

// slots counts the places of a part.
func (k key) slots(p Part) int {
	if k.words != nil {
		return len(k.words.dict.Words) + 1
	}
	if p.Every > 0 { // the last edge is the end
		return len(p.Edges)
	}
	return len(p.Edges) + 1
}

// value names a place.
func (k key) value(p Part, slot int) KeyValue {
	v := KeyValue{Key: p.Key}
	switch {
	case slot == 0:
	case k.words != nil:
		v.Text = &k.words.dict.Words[slot-1]
	default:
		v.Lo = &p.Edges[slot-1]
		if slot < len(p.Edges) {
			v.Hi = &p.Edges[slot]
		}
	}
	return v
}

// cut sorts rows into the buckets of by, which come in order of their values, unknown ones last. Labels give the
// buckets that have rows; a By of ranges alone gives every range, the empty ones too.
func (d *Data) cut(by By, rows []int32) []cell {
	keys := make([]key, len(by.Parts))
	ranges := true
	for i, p := range by.Parts {
		keys[i] = d.key(p.Key)
		ranges = ranges && keys[i].words == nil
	}
	byPlace := d.byPlace(by, keys, rows)
	if ranges {
		addEmptyRanges(by, keys, byPlace)
	}
	cells := make([]cell, 0, len(byPlace))
	for place, rows := range byPlace {
		cells = append(cells, cell{by: tuple(by, keys, place), rows: rows})
	}
	sort.Slice(cells, func(a, b int) bool { return less(cells[a].by, cells[b].by) })
	return cells
}

// byPlace sorts rows by their places under the parts of by, those below a first edge left out.
func (d *Data) byPlace(by By, keys []key, rows []int32) map[int][]int32 {
	numbers := map[int]int32{} // of places, in order of first sight
	var places []int
	var counts []int32
	numberOf := make([]int32, len(rows))
	last, number := -1, int32(-1)
	for r, i := range rows {
		place, known := 0, true
		for j, p := range by.Parts {
			s := keys[j].slot(i, p.Edges)
			known = known && s >= 0
			place = place*keys[j].slots(p) + max(s, 0)
		}
		if !known {
			numberOf[r] = -1
			continue
		}
		if place != last {
			n, seen := numbers[place]
			if !seen {
				n = int32(len(places))
				numbers[place] = n
				places, counts = append(places, place), append(counts, 0)
			}
			last, number = place, n
		}
		numberOf[r] = number
		counts[number]++
	}
	out := make(map[int][]int32, len(places))
	lists := make([][]int32, len(places))
	for n, count := range counts {
		lists[n] = make([]int32, 0, count)
	}
	for r, i := range rows {
		if n := numberOf[r]; n >= 0 {
			lists[n] = append(lists[n], i)
		}
	}
	for n, place := range places {
		out[place] = lists[n]
	}
	return out
}

// tuple takes a place apart.
func tuple(by By, keys []key, place int) Tuple {
	t := make(Tuple, len(by.Parts))
	for j := len(by.Parts) - 1; j >= 0; j-- {
		n := keys[j].slots(by.Parts[j])
		t[j] = keys[j].value(by.Parts[j], place%n)
		place /= n
	}
	return t
}

func addEmptyRanges(by By, keys []key, byPlace map[int][]int32) {
	places := []int{0}
	for j, p := range by.Parts {
		var next []int
		n := keys[j].slots(p)
		for _, at := range places {
			for s := 1; s < n; s++ {
				next = append(next, at*n+s)
			}
		}
		places = next
	}
	for _, place := range places {
		if _, ok := byPlace[place]; !ok {
			byPlace[place] = nil
		}
	}
}

func less(a, b Tuple) bool {
	for i := range a {
		if c := a[i].compare(b[i]); c != 0 {
			return c < 0
		}
	}
	return false
}

// compare orders values of one key: labels by their bytes, ranges upwards, unknown last.
func (v KeyValue) compare(w KeyValue) int {
	known := func(v KeyValue) bool { return v.Text != nil || v.Lo != nil || v.Hi != nil }
	switch {
	case !known(v) || !known(w):
		switch {
		case known(v):
			return -1
		case known(w):
			return 1
		}
		return 0
	case v.Text != nil:
		return strings.Compare(*v.Text, *w.Text)
	}
	return cmp.Compare(*v.Lo, *w.Lo)
}

// matcher says whether a row lies in every value of t.
func (d *Data) matcher(t Tuple) func(i int32) bool {
	keys := make([]key, len(t))
	for j, v := range t {
		keys[j] = d.key(v.Key)
	}
	return func(i int32) bool {
		for j, v := range t {
			if !keys[j].match(i, v) {
				return false
			}
		}
		return true
	}
}

// matching returns the rows that lie in every value of t.
func (d *Data) matching(t Tuple, rows []int32) []int32 {
	if len(t) == 0 {
		return rows
	}
	in := d.matcher(t)
	var out []int32
	for _, i := range rows {
		if in(i) {
			out = append(out, i)
		}
	}
	return out
}
