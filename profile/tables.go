package profile

import (
	"errors"
	"io/fs"
	"slices"

	"tailgate/schemas"
)

// keyed is a row type of a profile table.
type keyed interface{ Key() schemas.ProfileKey }

// table is one table of a profile, whatever its row type.
type table interface {
	called() string
	write(w *tableWriter)
	read(r *tableReader)
	appendJSON(out []byte) ([]byte, error)
	appendRows(from table)
	move(from table)
	len() int
	grow(n int)
	repeat(tenant, class string)
	arrange(profileID string)
}

// ref is a table by name.
type ref[T keyed] struct {
	name string
	rows *[]T
	late bool // earlier versions did not write it
	once bool // in the total only
}

// tables lists the tables in the order of the documentation.
func (p *Profile) tables() []table {
	return []table{
		ref[schemas.ProfileMeta]{name: schemas.TableProfileMeta, rows: &p.Meta, once: true},
		ref[schemas.ProfileRate]{name: schemas.TableProfileRate, rows: &p.Rate},
		ref[schemas.ProfileIAT]{name: schemas.TableProfileIAT, rows: &p.IAT},
		ref[schemas.ProfileIATFit]{name: schemas.TableProfileIATFit, rows: &p.IATFit},
		ref[schemas.ProfileDispersion]{name: schemas.TableProfileDispersion, rows: &p.Dispersion},
		ref[schemas.ProfileLength]{name: schemas.TableProfileLength, rows: &p.Lengths},
		ref[schemas.ProfileJoint]{name: schemas.TableProfileJoint, rows: &p.Joint, late: true},
		ref[schemas.ProfileJointStat]{name: schemas.TableProfileJointStat, rows: &p.JointStat, late: true},
		ref[schemas.ProfileSession]{name: schemas.TableProfileSession, rows: &p.Sessions},
		ref[schemas.ProfileSessionStat]{name: schemas.TableProfileSessStat, rows: &p.SessionStat, late: true},
		ref[schemas.ProfileSessionGap]{name: schemas.TableProfileSessGap, rows: &p.SessionGap, late: true},
		ref[schemas.ProfileGrowth]{name: schemas.TableProfileGrowth, rows: &p.Growth, late: true},
		ref[schemas.ProfileRoot]{name: schemas.TableProfileRoot, rows: &p.Roots, late: true},
		ref[schemas.ProfilePopularity]{name: schemas.TableProfilePopularity, rows: &p.Popularity, late: true},
		ref[schemas.ProfileReuse]{name: schemas.TableProfileReuse, rows: &p.Reuse, late: true},
		ref[schemas.ProfileHitCurve]{name: schemas.TableProfileHitCurve, rows: &p.HitCurve},
		ref[schemas.ProfileCrossShare]{name: schemas.TableProfileCrossShare, rows: &p.CrossShare, late: true, once: true},
		ref[schemas.ProfileLatency]{name: schemas.TableProfileLatency, rows: &p.Latency, late: true},
		ref[schemas.ProfileBurst]{name: schemas.TableProfileBurst, rows: &p.Bursts, late: true, once: true},
	}
}

func (t ref[T]) called() string { return t.name }

func (t ref[T]) write(w *tableWriter) { writeTable(w, t.name, *t.rows) }

func (t ref[T]) read(r *tableReader) {
	if r.err != nil {
		return
	}
	readTable(r, t.name, t.rows)
	if t.late && errors.Is(r.err, fs.ErrNotExist) {
		r.err = nil
	}
}

// appendRows appends the rows of the same table of another profile.
func (t ref[T]) appendRows(from table) { *t.rows = append(*t.rows, *from.(ref[T]).rows...) }

// move appends the rows of the same table of another profile, which then has none.
func (t ref[T]) move(from table) {
	t.appendRows(from)
	*from.(ref[T]).rows = nil
}

func (t ref[T]) len() int { return len(*t.rows) }

// grow makes room for n more rows.
func (t ref[T]) grow(n int) { *t.rows = slices.Grow(*t.rows, n) }

// repeat appends the rows of the total once more, as those of the one group that there is.
func (t ref[T]) repeat(tenant, class string) {
	if t.once {
		return
	}
	n := len(*t.rows)
	*t.rows = append(*t.rows, *t.rows...)
	for i := n; i < 2*n; i++ {
		any(&(*t.rows)[i]).(interface{ SetGroup(tenant, class string) }).SetGroup(tenant, class)
	}
}

// arrange names the profile in every row and orders the rows by window and group.
func (t ref[T]) arrange(profileID string) {
	for i := range *t.rows {
		any(&(*t.rows)[i]).(interface{ SetProfileID(id string) }).SetProfileID(profileID)
	}
	slices.SortStableFunc(*t.rows, func(a, b T) int { return compareParts(a.Key(), b.Key()) })
}

// appendJSON appends "name":[rows of the total].
func (t ref[T]) appendJSON(out []byte) ([]byte, error) {
	if len(out) > 1 {
		out = append(out, ',')
	}
	out = append(append(append(out, '"'), t.name...), '"', ':', '[')
	first := true
	var err error
	for _, row := range *t.rows {
		if !isTotal(row.Key()) {
			continue
		}
		if !first {
			out = append(out, ',')
		}
		first = false
		if out, err = schemas.AppendJSON(out, row); err != nil {
			return out, err
		}
	}
	return append(out, ']'), nil
}
