package refresh

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"

	"tailgate/schemas"
)

// manifest reads the manifest of a folder of the root; nil when there is none, or a mark in its place.
func (r *Root) manifest(ctx context.Context, folder string) (*schemas.Manifest, error) {
	key := path.Join(folder, schemas.ManifestName)
	data, err := r.Read(ctx, key)
	if err != nil || data == nil || isUnfinished(data) {
		return nil, err
	}
	return schemas.ParseManifest(r.Path(key), data)
}

// folders lists the names of the folders in a folder of the root, in order.
func (r *Root) folders(ctx context.Context, in string) ([]string, error) {
	if r.bucket != nil {
		if in != "" {
			in += "/"
		}
		names, err := r.bucket.Folders(ctx, in)
		if err != nil {
			return nil, fmt.Errorf("listing %s: %w", r.Path(in), err)
		}
		for i := range names {
			names[i] = path.Base(names[i])
		}
		return names, nil
	}
	entries, err := os.ReadDir(r.Path(in))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("listing %s: %w", r.Path(in), err)
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names, nil
}
