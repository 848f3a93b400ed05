package tabular

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"tailgate/internal/atomicfile"
	"tailgate/internal/fault"
	"tailgate/internal/objstore"
	"tailgate/internal/parquetio"
)

// Store lists and opens objects, as [objstore.Dir] and [objstore.S3] do.
type Store interface {
	List(ctx context.Context, folder string) ([]objstore.Object, error)
	Open(ctx context.Context, key string) (*objstore.Reader, error)
}

// Finder turns what a person names into files.
type Finder struct {
	From, To string // UTC days, both included; "" = no limit. Only folders day=YYYY-MM-DD are looked at then
	// Bucket opens s3://bucket/prefix.
	Bucket func(ctx context.Context, url string) (Store, error)
}

const dayFolder = "day="

// Find returns the Parquet files of a path, in the order of their names: a file; a folder, of which its days where it has
// some (a lake), else the files that lie in it, else all below except what begins with _ or .; or a pattern with *, ?, […]
// and ** for any folders. Paths of buckets begin with s3://.
func (f Finder) Find(ctx context.Context, name string) ([]File, error) {
	root, rest := splitPattern(name)
	var store Store = objstore.NewDir(root)
	if objstore.IsS3(name) {
		if rest == "" && strings.HasSuffix(name, ".parquet") {
			root, rest = name[:strings.LastIndexByte(name, '/')], path.Base(name)
		}
		var err error
		if store, err = f.Bucket(ctx, root); err != nil {
			return nil, err
		}
	} else if st, err := os.Stat(name); err == nil && st.IsDir() {
		real, err := filepath.EvalSymlinks(name) // a walk does not follow the first link
		if err != nil {
			return nil, fmt.Errorf("reading: %w", err)
		}
		store, root, rest = objstore.NewDir(real), name, ""
	} else if err == nil {
		return []File{local(name)}, nil
	} else if rest == "" {
		return nil, fmt.Errorf("reading: %w", err)
	} else if !strings.Contains(rest, "**") {
		return f.glob(name)
	}
	keys, err := f.keys(ctx, store, rest)
	if err != nil {
		return nil, err
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("reading %s: no Parquet files: %w", name, fs.ErrNotExist)
	}
	files := make([]File, len(keys))
	for i, key := range keys {
		files[i] = File{Name: strings.TrimSuffix(root, "/") + "/" + key, Open: func(ctx context.Context) (*objstore.Reader, error) { return store.Open(ctx, key) }}
	}
	return files, nil
}

// glob finds the files of a pattern without a walk through all that lies below.
func (f Finder) glob(pattern string) ([]File, error) {
	paths, err := filepath.Glob(pattern)
	if err != nil {
		return nil, fault.Mark(fmt.Errorf("reading %s: %w", pattern, err), fault.Usage, "")
	}
	paths = slices.DeleteFunc(paths, func(p string) bool { st, err := os.Stat(p); return err != nil || st.IsDir() })
	if len(paths) == 0 {
		return nil, fmt.Errorf("reading %s: no files: %w", pattern, fs.ErrNotExist)
	}
	if paths, err = f.inDays(paths); err != nil {
		return nil, err
	}
	files := make([]File, len(paths))
	for i, p := range paths {
		files[i] = local(p)
	}
	return files, nil
}

func local(name string) File {
	return File{Name: name, Open: func(ctx context.Context) (*objstore.Reader, error) {
		return objstore.NewDir(filepath.Dir(name)).Open(ctx, filepath.Base(name))
	}}
}

// splitPattern cuts a path before its first part with a wildcard.
func splitPattern(name string) (root, rest string) {
	name = filepath.ToSlash(name)
	at := strings.IndexAny(name, "*?[")
	if at < 0 {
		return name, ""
	}
	cut := strings.LastIndexByte(name[:at], '/')
	if cut < 0 {
		return ".", name
	}
	if cut == 0 {
		return "/", name[1:]
	}
	return name[:cut], name[cut+1:]
}

// keys are the objects of a store that the pattern names; "" chooses as [Finder.Find] says.
func (f Finder) keys(ctx context.Context, store Store, pattern string) ([]string, error) {
	objects, err := store.List(ctx, "")
	if err != nil {
		return nil, err
	}
	var all, days, top, below []string
	for _, o := range objects {
		switch {
		case pattern != "":
			if matches(strings.Split(pattern, "/"), strings.Split(o.Key, "/")) {
				all = append(all, o.Key)
			}
		case !strings.HasSuffix(o.Key, ".parquet"):
		case strings.HasPrefix(o.Key, dayFolder) && strings.Count(o.Key, "/") == 1:
			days = append(days, o.Key)
		case !strings.Contains(o.Key, "/"):
			top = append(top, o.Key)
		case !hidden(o.Key):
			below = append(below, o.Key)
		}
	}
	for _, list := range [][]string{all, days, top, below} {
		if len(list) > 0 {
			return f.inDays(list)
		}
	}
	return nil, nil
}

// inDays leaves out what is of other days.
func (f Finder) inDays(keys []string) ([]string, error) {
	if f.From == "" && f.To == "" {
		return keys, nil
	}
	var kept []string
	any := false
	for _, key := range keys {
		day, ok := dayOf(key)
		any = any || ok
		if ok && day >= f.From && (f.To == "" || day <= f.To) {
			kept = append(kept, key)
		}
	}
	switch {
	case !any:
		return nil, fault.Mark(errors.New("days were named, but no file lies in a folder day=…"), fault.Usage, "")
	case len(kept) == 0:
		return nil, fault.Mark(errors.New("no file is of the days named"), fault.Usage, "")
	}
	return kept, nil
}

func dayOf(key string) (string, bool) {
	for part := range strings.SplitSeq(path.Dir(filepath.ToSlash(key)), "/") {
		if day, ok := strings.CutPrefix(part, dayFolder); ok {
			return day, true
		}
	}
	return "", false
}

// hidden tells whether a part of the path begins with _ or a dot: what tailgate and others keep for themselves.
func hidden(key string) bool {
	return slices.ContainsFunc(strings.Split(key, "/"), func(part string) bool { return strings.HasPrefix(part, "_") || strings.HasPrefix(part, ".") })
}

// matches holds a path against a pattern, part by part; ** stands for any parts.
func matches(pattern, parts []string) bool {
	for len(pattern) > 0 {
		if pattern[0] == "**" {
			for i := range len(parts) + 1 {
				if matches(pattern[1:], parts[i:]) {
					return true
				}
			}
			return false
		}
		if len(parts) == 0 {
			return false
		}
		if ok, err := path.Match(pattern[0], parts[0]); !ok || err != nil {
			return false
		}
		pattern, parts = pattern[1:], parts[1:]
	}
	return len(parts) == 0
}

// Spool keeps a stream in a file without a name, for Parquet is read from its end. Close drops it.
func Spool(r io.Reader, name string) (f File, drop func(), err error) {
	start := make([]byte, len(parquetio.Magic))
	switch n, err := io.ReadFull(r, start); {
	case err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
		return f, nil, fmt.Errorf("reading %s: %w", name, err)
	case string(start[:n]) != parquetio.Magic:
		return f, nil, fault.Mark(fmt.Errorf("reading %s: not a Parquet file", name), fault.Data, "")
	}
	temp, err := atomicfile.CreateUnnamed(os.TempDir())
	if err != nil {
		return f, nil, err
	}
	size, err := io.Copy(temp, io.MultiReader(strings.NewReader(parquetio.Magic), r))
	if err != nil {
		temp.Discard()
		return f, nil, fmt.Errorf("reading %s: %w", name, err)
	}
	open := func(context.Context) (*objstore.Reader, error) { return objstore.NewReader(temp, size, nil), nil }
	return File{Name: name, Open: open}, temp.Discard, nil
}
