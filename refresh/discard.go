package refresh

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"tailgate/internal/atomicfile"
	"tailgate/internal/objstore"
	"tailgate/schemas"
)

type object = objstore.Object

// discard takes a folder of the root away: by one rename into the trash, or, in a bucket, object by object, the manifest
// first, so that what is left of it after a crash counts as unfinished, but a day of the lake with its table.
func (r *Root) discard(ctx context.Context, folder string, list []object) error {
	if r.bucket == nil {
		return toTrash(r.Path(folder), r.Path(trashFolder))
	}
	first := schemas.ManifestName
	if strings.HasPrefix(folder, LakeFolder+"/day=") {
		first = ""
	}
	slices.SortStableFunc(list, func(a, b object) int { return rank(a.Key, first) - rank(b.Key, first) })
	for _, o := range list {
		if err := r.Remove(ctx, o.Key); err != nil {
			return err
		}
	}
	return nil
}

// rank is 0 for the object that goes first, 2 for a manifest that goes last.
func rank(key, first string) int {
	switch name := path.Base(key); {
	case name == first:
		return 0
	case name == schemas.ManifestName:
		return 2
	}
	return 1
}

// toTrash renames a folder into the trash, which is emptied later. One that is not there is no error.
func toTrash(folder, trash string) error {
	if err := os.MkdirAll(trash, 0o755); err != nil {
		return err
	}
	err := os.Rename(folder, filepath.Join(trash, rand.Text()))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return atomicfile.SyncDir(filepath.Dir(folder))
}
