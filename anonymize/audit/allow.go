package audit

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"tailgate/schemas"
)

// tableRules are the rules of the table that a file says it holds.
type tableRules struct {
	columns map[string]*columnRule
	unknown func(path string) *columnRule
}

// columnRule is what the values of one column are held to.
type columnRule struct {
	path string
	fits func(string) bool // nil = not a string column
	rule schemas.StringRule
}

func (t *tableRules) column(meta *format.ColumnMetaData) *columnRule {
	path := columnPath(meta.PathInSchema)
	if c := t.columns[path]; c != nil {
		return c
	}
	return t.unknown(path)
}

// columnPath is a column's dotted path without the inner names of lists and maps.
func columnPath(path []string) string {
	return strings.Join(slices.DeleteFunc(slices.Clone(path), func(s string) bool {
		return s == "key_value" || s == "list" || s == "element"
	}), ".")
}

// rules finds the rules of a file by its footer. A file of no table of ours, and a column that the table has not,
// are findings: nothing says what may stand there.
func (a *auditor) rules(pf *parquet.File) *tableRules {
	name, _ := pf.Lookup(schemas.KeySchema)
	out := &tableRules{columns: map[string]*columnRule{}, unknown: func(path string) *columnRule {
		return &columnRule{path: a.tell(path)}
	}}
	var row any
	for _, t := range schemas.Tables() {
		if t.Name == name {
			row = t.Row
		}
	}
	if row == nil {
		a.report.Tables["unknown"]++
		a.found(Finding{What: WhatSchema, Place: PlaceFooter})
		return out
	}
	a.report.Tables[name]++
	for path, rule := range schemas.StringColumns(name) {
		out.columns[path] = &columnRule{path: path, fits: rule.Matcher(a.listed), rule: rule}
	}
	known := map[string]bool{}
	for _, path := range parquet.SchemaOf(row).Columns() {
		known[columnPath(path)] = true
	}
	for _, path := range pf.Schema().Columns() {
		path := columnPath(path)
		if !known[path] {
			a.found(Finding{What: WhatSchema, Place: PlaceSchema, Column: a.tell(path)})
		} else if out.columns[path] == nil {
			out.columns[path] = &columnRule{path: path}
		}
	}
	return out
}

// tell returns a name of the file as it may be told: nothing that could be text.
func (a *auditor) tell(name string) string {
	if len(name) > 40 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_.") != "" || a.match != nil && len(a.matches([]byte(name))) > 0 {
		return "(name held back)"
	}
	return name
}

// value holds a value to its column's rule.
func (a *auditor) value(place string, col *columnRule, v []byte) {
	if col.fits == nil {
		return
	}
	a.report.Values++
	if !col.fits(string(v)) {
		a.found(Finding{What: WhatValue, Place: place, Column: col.path})
	}
}

// statistic holds a minimum or maximum to its column's rule. Indexes hold at most indexLimit bytes of a value,
// and the last byte of a maximum that was cut is one higher.
func (a *auditor) statistic(col *columnRule, v []byte, isMax bool) {
	a.text(PlaceStatistics, col.path, v)
	if col.fits == nil || len(v) == 0 {
		return
	}
	a.report.Values++
	if col.fits(string(v)) || len(v) == indexLimit && a.cut(col, v, isMax) {
		return
	}
	a.found(Finding{What: WhatValue, Place: PlaceStatistics, Column: col.path})
}

const indexLimit = parquet.DefaultColumnIndexSizeLimit

// cut tells whether v is the start of a value that fits.
func (a *auditor) cut(col *columnRule, v []byte, isMax bool) bool {
	start := slices.Clone(v)
	if isMax {
		start[len(start)-1]--
	}
	if col.rule.Pattern != "" || len(col.rule.Tokens) > 0 && schemas.IsToken(string(v[:indexLimit-1]), col.rule.Tokens) {
		return true // ids are told apart by their start
	}
	begins := func(s string) bool { return strings.HasPrefix(s, string(start)) || strings.HasPrefix(s, string(v)) }
	return slices.ContainsFunc(col.rule.Enum, begins) || col.rule.Label && slices.ContainsFunc(a.o.Labels, begins)
}

// footer looks at the keys and values of the footer and holds them to the allow-list.
func (a *auditor) footer(pf *parquet.File) {
	rules := schemas.FooterStrings()
	a.text(PlaceFooter, "", []byte(pf.Metadata().CreatedBy))
	for _, kv := range pf.Metadata().KeyValueMetadata {
		key := a.tell(kv.Key)
		a.text(PlaceFooter, key, []byte(kv.Key))
		a.text(PlaceFooter, key, []byte(kv.Value))
		rule, known := rules[kv.Key]
		if !known {
			a.found(Finding{What: WhatSchema, Place: PlaceFooter, Column: key})
			continue
		}
		fits := rule.Matcher(a.listed)
		if kv.Key == schemas.KeySegment {
			fits = jsonOf(fits)
		}
		a.report.Values++
		if !fits(kv.Value) {
			a.found(Finding{What: WhatValue, Place: PlaceFooter, Column: key})
		}
	}
}

// jsonOf tells whether all names and strings of a JSON text fit.
func jsonOf(fits func(string) bool) func(string) bool {
	var all func(v any) bool
	all = func(v any) bool {
		switch v := v.(type) {
		case map[string]any:
			for k, e := range v {
				if !fits(k) || !all(e) {
					return false
				}
			}
		case []any:
			return !slices.ContainsFunc(v, func(e any) bool { return !all(e) })
		case string:
			return fits(v)
		}
		return true
	}
	return func(s string) bool {
		var v any
		return json.Unmarshal([]byte(s), &v) == nil && all(v)
	}
}

// names looks at the names of the schema.
func (a *auditor) names(pf *parquet.File) {
	for _, e := range pf.Metadata().Schema {
		a.text(PlaceSchema, "", []byte(e.Name))
	}
}

// indexes looks at the statistics of column chunks and at the page indexes.
func (a *auditor) indexes(pf *parquet.File, rules *tableRules) (err error) {
	defer recovered(&err)
	indexes := pf.ColumnIndexes()
	i := 0
	for _, group := range pf.Metadata().RowGroups {
		for c := range group.Columns {
			meta := &group.Columns[c].MetaData
			col := rules.column(meta)
			for _, v := range [][]byte{meta.Statistics.Min, meta.Statistics.MinValue} {
				a.statistic(col, v, false)
			}
			for _, v := range [][]byte{meta.Statistics.Max, meta.Statistics.MaxValue} {
				a.statistic(col, v, true)
			}
			for _, kv := range meta.KeyValueMetadata {
				a.text(PlaceStatistics, col.path, []byte(kv.Key))
				a.text(PlaceStatistics, col.path, []byte(kv.Value))
				a.found(Finding{What: WhatSchema, Place: PlaceStatistics, Column: col.path})
			}
			if i < len(indexes) {
				for _, v := range indexes[i].MinValues {
					a.statistic(col, v, false)
				}
				for _, v := range indexes[i].MaxValues {
					a.statistic(col, v, true)
				}
			}
			i++
		}
	}
	return nil
}
