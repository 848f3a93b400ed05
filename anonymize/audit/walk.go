package audit

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"

	"tailgate/internal/objstore"
)

// filesBelow lists the regular files at or below path, and folders that cannot be read, in the order of their names;
// the names of folders, the last part alone, for the rest stands in the folder around; and the paths of what is neither:
// links, pipes, devices, sockets.
func filesBelow(path, skip string) (files []file, folders, odd []string, err error) {
	skipped, _ := os.Stat(skip)
	root, err := os.Stat(path) // the path itself may be a link
	if err != nil {
		return nil, nil, nil, err
	}
	add := func(p string) {
		name, err := filepath.Rel(path, p)
		if err != nil || name == "." {
			name = filepath.Base(p)
		}
		files = append(files, file{name: filepath.ToSlash(name), open: func(context.Context) (*objstore.Reader, error) { return openFile(p) }})
	}
	if !root.IsDir() {
		add(path)
		return files, nil, nil, nil
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return nil, nil, nil, err
	}
	err = filepath.WalkDir(path, func(p string, e fs.DirEntry, err error) error {
		switch {
		case err != nil && e != nil && e.IsDir() && p != path:
			add(p) // opening it fails again, and the report says so
			return fs.SkipDir
		case err != nil:
			return err
		case e.IsDir():
			if p != path {
				folders = append(folders, e.Name())
			}
			return nil
		case !e.Type().IsRegular():
			rel, _ := filepath.Rel(path, p)
			odd = append(odd, filepath.ToSlash(rel))
			return nil
		}
		if skipped != nil {
			if info, err := e.Info(); err == nil && os.SameFile(info, skipped) {
				return nil
			}
		}
		add(p)
		return nil
	})
	return files, folders, odd, err
}
