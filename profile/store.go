package profile

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"tailgate/internal/fault"
	"tailgate/internal/parquetio"
	"tailgate/schemas"
)

// ext ends the file name of every table; the part before it is the table's name in package schemas.
const ext = ".parquet"

// Write writes one Parquet file per table into dir, which is created when missing, and returns their digests
// in the order of the tables. Each file appears whole or not at all; the caller writes the manifest, which
// makes the folder finished.
func (p *Profile) Write(dir string, f schemas.Footer) ([]schemas.FileDigest, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("writing the profile: %w", err)
	}
	w := tableWriter{dir: dir, footer: f}
	for _, t := range p.tables() {
		t.write(&w)
	}
	if w.err != nil {
		return nil, fmt.Errorf("writing the profile: %w", w.err)
	}
	return w.files, nil
}

type tableWriter struct {
	dir    string
	footer schemas.Footer
	files  []schemas.FileDigest
	err    error // the first one; later writes do nothing
}

func writeTable[T any](w *tableWriter, name string, rows []T) {
	if w.err != nil {
		return
	}
	path := filepath.Join(w.dir, name+ext)
	w.footer.Schema = name
	if w.err = parquetio.WriteFile(path, w.footer.Map(), rows); w.err != nil {
		return
	}
	d, err := schemas.DigestFile(w.dir, path)
	d.Rows = int64(len(rows))
	w.files, w.err = append(w.files, d), err
}

// Read reads the tables that Write wrote into dir. A file that is another table, was written by a newer version, or
// is missing although every version writes it, is an error.
func Read(dir string) (*Profile, error) { return read(dir, func(string) bool { return true }) }

// ReadTables reads the meta table and the named ones, as Read does, and leaves the others empty.
func ReadTables(dir string, names ...string) (*Profile, error) {
	return read(dir, func(name string) bool { return name == schemas.TableProfileMeta || slices.Contains(names, name) })
}

func read(dir string, wanted func(name string) bool) (*Profile, error) {
	var p Profile
	r := tableReader{dir: dir}
	for _, t := range p.tables() {
		if wanted(t.called()) {
			t.read(&r)
		}
	}
	if r.err != nil {
		return nil, fmt.Errorf("reading the profile: %w", r.err)
	}
	if len(p.Meta) != 1 {
		return nil, fault.Mark(fmt.Errorf("reading the profile: %s has %d rows, want 1", schemas.TableProfileMeta+ext, len(p.Meta)), fault.Data, "")
	}
	return &p, nil
}

type tableReader struct {
	dir string
	err error // the first one; later reads do nothing
}

func readTable[T any](r *tableReader, name string, rows *[]T) {
	if r.err != nil {
		return
	}
	got, footer, err := parquetio.ReadFile[T](filepath.Join(r.dir, name+ext))
	if err != nil {
		r.err = err
		return
	}
	if footer[schemas.KeySchema] != name {
		r.err = fault.Mark(fmt.Errorf("%s holds the table %q", name+ext, footer[schemas.KeySchema]), fault.Data, "")
		return
	}
	have, err := strconv.Atoi(footer[schemas.KeyVersion])
	known, _ := strconv.Atoi(schemas.Version)
	if err != nil || have > known {
		r.err = fault.Mark(fmt.Errorf("%s has schema version %q, this program reads up to %s", name+ext, footer[schemas.KeyVersion], schemas.Version), fault.Data, "")
		return
	}
	*rows = got
}
