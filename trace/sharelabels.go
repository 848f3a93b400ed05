package trace

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"tailgate/internal/rng"
	"tailgate/schemas"
)

// labels merges small groups and gives new names.
func (s *sharing) labels() {
	rows := s.out.Rows
	held := map[string]map[int32]bool{}
	for i := range rows {
		if tenant := rows[i].Tenant; tenant != nil {
			if held[*tenant] == nil {
				held[*tenant] = map[int32]bool{}
			}
			held[*tenant][s.sessions.Of[i]] = true
		}
	}
	s.rep.Tenants = len(held)
	other := otherLabel
	for i := range rows {
		row := &rows[i]
		if row.Tenant != nil && len(held[*row.Tenant]) < s.o.K {
			row.Tenant = &other
			s.rep.TenantRows++
		}
		if row.Class != nil && !slices.Contains(s.o.Classes, *row.Class) {
			row.Class = &other
			s.rep.ClassRows++
		}
	}
	type cell struct {
		tenant, class string
		in, out       int32
	}
	of := func(row *schemas.TraceRow) cell {
		c := cell{in: row.InputTokens, out: -1}
		if row.OutputTokens != nil {
			c.out = *row.OutputTokens
		}
		if row.Tenant != nil {
			c.tenant = *row.Tenant
		}
		if row.Class != nil {
			c.class = *row.Class
		}
		return c
	}
	// What is rare with both labels may be common without the tenant, or without both.
	small := func() func(row *schemas.TraceRow) bool {
		n := map[cell]int{}
		for i := range rows {
			n[of(&rows[i])]++
		}
		return func(row *schemas.TraceRow) bool { return n[of(row)] < s.o.K }
	}
	rare := small()
	s.merge(rare, func(row *schemas.TraceRow) **string { return &row.Tenant }, &s.rep.TenantRows)
	rare = small()
	s.merge(rare, func(row *schemas.TraceRow) **string { return &row.Class }, &s.rep.ClassRows)
	rare = small()
	for i := range rows {
		if rare(&rows[i]) {
			s.rep.RareLengths++
		}
	}
	s.rename()
}

// merge makes a label of rare rows "other".
func (s *sharing) merge(rare func(*schemas.TraceRow) bool, label func(*schemas.TraceRow) **string, n *int) {
	other := otherLabel
	var which []int
	for i := range s.out.Rows {
		if p := label(&s.out.Rows[i]); *p != nil && **p != otherLabel && rare(&s.out.Rows[i]) {
			which = append(which, i)
		}
	}
	for _, i := range which {
		*label(&s.out.Rows[i]) = &other
		*n++
	}
}

// rename numbers tenants, models and sessions anew; an order drawn at random tells nothing of their size or age.
func (s *sharing) rename() {
	r := rng.New(s.o.Secret, "share", "names")
	for kind, label := range map[string]func(*schemas.TraceRow) **string{
		"tenant": func(row *schemas.TraceRow) **string { return &row.Tenant },
		"model":  func(row *schemas.TraceRow) **string { return &row.Model },
	} {
		s.number(kind, label, rng.New(s.o.Secret, "share", kind))
	}
	order := r.Perm(len(s.sessions.Rows))
	for i := range s.out.Rows {
		row := &s.out.Rows[i]
		row.SourceRow, row.Copy = row.Row, 0
		if row.Session != nil {
			name := fmt.Sprintf("s_%d", order[s.sessions.Of[i]])
			row.Session = &name
		}
	}
}

func (s *sharing) number(kind string, label func(*schemas.TraceRow) **string, r *rand.Rand) {
	names := map[string]bool{}
	for i := range s.out.Rows {
		if p := *label(&s.out.Rows[i]); p != nil && *p != otherLabel {
			names[*p] = true
		}
	}
	list := make([]string, 0, len(names))
	for n := range names {
		list = append(list, n)
	}
	slices.Sort(list)
	fresh := map[string]*string{}
	for i, place := range r.Perm(len(list)) {
		name := fmt.Sprintf("%s_%d", kind, place)
		fresh[list[i]] = &name
	}
	for i := range s.out.Rows {
		if p := label(&s.out.Rows[i]); *p != nil && **p != otherLabel {
			*p = fresh[**p]
		}
	}
}
