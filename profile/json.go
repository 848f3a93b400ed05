package profile

import (
	"fmt"
	"io"
)

// WriteJSON writes the profile of all tenants and classes together as one object: table name → rows under their
// column names. The groups are in the Parquet files.
func (p *Profile) WriteJSON(w io.Writer) error {
	out := []byte("{")
	var err error
	for _, t := range p.tables() {
		if out, err = t.appendJSON(out); err != nil {
			return fmt.Errorf("encoding the profile: %w", err)
		}
	}
	if _, err = w.Write(append(out, "}\n"...)); err != nil {
		return fmt.Errorf("writing the profile: %w", err)
	}
	return nil
}
