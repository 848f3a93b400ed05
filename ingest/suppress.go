package ingest

import (
	"slices"

	"tailgate/schemas"
)

// Suppressed says what happened to the labels of one column.
type Suppressed struct {
	Column string `json:"column"`
	Labels int    `json:"labels"` // labels that were merged into "other"
	Rows   int64  `json:"rows"`   // rows that lost their label
	Nulled bool   `json:"nulled"` // "other" was too small as well
}

// labelColumn is a column whose labels name groups of requests.
type labelColumn struct {
	name string
	get  func(*schemas.Request) *string
	set  func(*schemas.Request, *string)
}

var labelColumns = []labelColumn{
	{"tenant", func(r *schemas.Request) *string { return r.Tenant }, func(r *schemas.Request, s *string) { r.Tenant = s }},
	{"class", func(r *schemas.Request) *string { return r.Class }, func(r *schemas.Request, s *string) { r.Class = s }},
	{"model", modelLabel, setModelLabel},
}

func modelLabel(r *schemas.Request) *string {
	if r.Model == "" {
		return nil
	}
	return &r.Model
}

func setModelLabel(r *schemas.Request, s *string) {
	r.Model = ""
	if s != nil {
		r.Model = *s
	}
}

// suppressLabels merges the labels of groups with fewer than k sessions or minRequests rows into "other",
// column by column, and drops "other" where it is as small. sessions has a number for each row's session.
func suppressLabels(rows []schemas.Request, sessions []uint32, k, minRequests int, r *PublishReport) {
	for _, c := range labelColumns {
		r.Suppressed = append(r.Suppressed, c.suppress(rows, sessions, k, minRequests))
	}
}

func (c labelColumn) suppress(rows []schemas.Request, sessions []uint32, k, minRequests int) Suppressed {
	out := Suppressed{Column: c.name}
	other := schemas.LabelOther
	small := func(g groupSize) bool { return g.sessions < k || g.rows < minRequests }
	replace := map[string]*string{}
	for label, g := range c.groups(rows, sessions) {
		if label != other && small(g) {
			replace[label] = &other
			out.Labels++
			out.Rows += int64(g.rows)
		}
	}
	c.replace(rows, replace)
	if g, ok := c.groups(rows, sessions)[other]; ok && small(g) {
		out.Nulled = true
		c.replace(rows, map[string]*string{other: nil})
	}
	return out
}

func (c labelColumn) replace(rows []schemas.Request, by map[string]*string) {
	for i := range rows {
		if l := c.get(&rows[i]); l != nil {
			if to, ok := by[*l]; ok {
				c.set(&rows[i], to)
			}
		}
	}
}

// groupSize is how large the group of one label is.
type groupSize struct{ rows, sessions int }

// groups measures the group of each label.
func (c labelColumn) groups(rows []schemas.Request, sessions []uint32) map[string]groupSize {
	numbers := map[string]uint32{}
	var labels []string
	pairs := make([]uint64, 0, len(rows)) // label and session of each row
	for i := range rows {
		l := c.get(&rows[i])
		if l == nil {
			continue
		}
		n, ok := numbers[*l]
		if !ok {
			n = uint32(len(labels))
			numbers[*l] = n
			labels = append(labels, *l)
		}
		pairs = append(pairs, uint64(n)<<32|uint64(sessions[i]))
	}
	slices.Sort(pairs)
	sizes := make([]groupSize, len(labels))
	for i, p := range pairs {
		g := &sizes[p>>32]
		g.rows++
		if i == 0 || pairs[i-1] != p {
			g.sessions++
		}
	}
	out := make(map[string]groupSize, len(labels))
	for i, l := range labels {
		out[l] = sizes[i]
	}
	return out
}
