package profile

import (
	"errors"

	"github.com/zeebo/xxh3"

	"tailgate/internal/parquetio"
	"tailgate/schemas"
	"tailgate/trace"
)

// names reads the columns of words: who asked, and how it ended.
func (r *lakeReader) names() error {
	p := r.part
	var tenants, classes, models, status parquetio.Dict
	tenant := make([]uint32, 0, r.n)
	model := int32(none)
	err := errors.Join(
		r.words("tenant", &tenants, func(code int32) { tenant = append(tenant, p.labels.tenants.codeOf(&tenants, code)) }),
		r.words("class", &classes, func(code int32) {
			pair := pairOf{class: p.labels.classes.codeOf(&classes, code)}
			if k := len(p.group); k < len(tenant) {
				pair.tenant = tenant[k]
			}
			p.group = append(p.group, p.labels.groupOf(pair))
		}),
		r.words("model", &models, func(code int32) {
			if code != model && code >= 0 {
				model = code
				p.addModel(models.Words[code])
			}
		}),
		r.words("status", &status, func(code int32) {
			r.failed = append(r.failed, code >= 0 && trace.Failed(&schemas.TraceRow{Status: &status.Words[code]}))
		}))
	if err != nil {
		return err
	}
	at := 0
	return r.file.Hashes(r.ctx, "session", func(v []byte) uint64 { return max(xxh3.Hash(v), 1) }, func(hashes []uint64, valid []bool) error {
		for i, h := range hashes {
			if !r.wants.has(at + i) {
				continue
			}
			n := int32(none)
			if valid[i] {
				n = int32(p.named.number(h))
			}
			p.session = append(p.session, n)
		}
		at += len(hashes)
		return nil
	})
}

// codeOf is the number of a word of a column's dictionary; −1 is null.
func (d *dict) codeOf(column *parquetio.Dict, code int32) uint32 {
	if code < 0 {
		return d.code(nil)
	}
	for len(d.column) <= int(code) {
		d.column = append(d.column, d.code(&column.Words[len(d.column)]))
	}
	return d.column[code]
}
