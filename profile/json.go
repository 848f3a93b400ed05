package profile

import (
	"fmt"
	"io"

	"tailgate/schemas"
)

// WriteJSON writes the profile of all tenants and classes together as one object: table name → rows under their
// column names. The groups are in the Parquet files.
func (p *Profile) WriteJSON(w io.Writer) error {
	out := []byte("{")
	var err error
	out, err = table(out, err, schemas.TableProfileMeta, p.Meta, func(r schemas.ProfileMeta) schemas.ProfileKey { return r.ProfileKey })
	out, err = table(out, err, schemas.TableProfileRate, p.Rate, func(r schemas.ProfileRate) schemas.ProfileKey { return r.ProfileKey })
	out, err = table(out, err, schemas.TableProfileIAT, p.IAT, func(r schemas.ProfileIAT) schemas.ProfileKey { return r.ProfileKey })
	out, err = table(out, err, schemas.TableProfileIATFit, p.IATFit, func(r schemas.ProfileIATFit) schemas.ProfileKey { return r.ProfileKey })
	out, err = table(out, err, schemas.TableProfileDispersion, p.Dispersion, func(r schemas.ProfileDispersion) schemas.ProfileKey { return r.ProfileKey })
	out, err = table(out, err, schemas.TableProfileLength, p.Lengths, func(r schemas.ProfileLength) schemas.ProfileKey { return r.ProfileKey })
	out, err = table(out, err, schemas.TableProfileSession, p.Sessions, func(r schemas.ProfileSession) schemas.ProfileKey { return r.ProfileKey })
	out, err = table(out, err, schemas.TableProfileHitCurve, p.HitCurve, func(r schemas.ProfileHitCurve) schemas.ProfileKey { return r.ProfileKey })
	if err != nil {
		return fmt.Errorf("encoding the profile: %w", err)
	}
	_, err = w.Write(append(out, "}\n"...))
	return err
}

// table appends "name":[rows of the total]; an earlier error passes through.
func table[T any](out []byte, err error, name string, rows []T, key func(T) schemas.ProfileKey) ([]byte, error) {
	if len(out) > 1 {
		out = append(out, ',')
	}
	out = fmt.Appendf(out, "%q:[", name)
	first := true
	for _, row := range rows {
		if k := key(row); err != nil || k.Tenant != All || k.Class != All {
			continue
		}
		if !first {
			out = append(out, ',')
		}
		first = false
		out, err = schemas.AppendJSON(out, row)
	}
	return append(out, ']'), err
}
