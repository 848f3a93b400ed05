package objstore_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"slices"
	"sync"
	"testing"

	"tailgate/internal/objstore"
)

// swapper is a store that replaces objects.
type swapper interface {
	store
	Lock(ctx context.Context, folder string) (unlock func(), err error)
	Tag(ctx context.Context, key string) (string, error)
	Swap(ctx context.Context, d *objstore.Draft, key, tag string) (string, error)
	Copy(ctx context.Context, key, to, tag string) error
}

func swap(ctx context.Context, s swapper, key, tag string, data []byte) (string, error) {
	d, err := s.Draft("builds/" + key)
	if err != nil {
		return "", err
	}
	defer d.Discard()
	if _, err := d.Write(data); err != nil {
		return "", err
	}
	return s.Swap(ctx, d, key, tag)
}

// eachSwapper runs f on both back ends, with the size from which on a bucket takes an object in parts.
func eachSwapper(t *testing.T, f func(t *testing.T, s swapper, part int)) {
	t.Run("dir", func(t *testing.T) { f(t, objstore.NewDir(t.TempDir()+"/lake"), 64<<10) })
	t.Run("s3", func(t *testing.T) {
		s, part := newS3(t)
		f(t, s, part)
	})
}

// TestSwap replaces objects of all sizes and refuses to replace one that changed.
func TestSwap(t *testing.T) {
	eachSwapper(t, func(t *testing.T, s swapper, part int) {
		ctx := t.Context()
		tag, err := s.Tag(ctx, "day/live")
		if tag != "" || err != nil {
			t.Fatalf("a missing object has the tag %q, %v", tag, err)
		}
		stale := "\"0123456789abcdef0123456789abcdef\""
		if _, err := swap(ctx, s, "day/live", stale, []byte("x")); !errors.Is(err, fs.ErrExist) {
			t.Errorf("an object that is not there was replaced: %v", err)
		}
		for _, size := range []int{0, 5, part - 1, part, 3*part + 17, 7} {
			data := make([]byte, size)
			rand.Read(data)
			next, err := swap(ctx, s, "day/live", tag, data)
			if err != nil || next == tag {
				t.Fatalf("%d bytes: %v", size, err)
			}
			if got, err := objstore.ReadAll(ctx, s, "day/live"); err != nil || !bytes.Equal(got, data) {
				t.Errorf("%d bytes: got %d, %v", size, len(got), err)
			}
			for _, wrong := range []string{tag, "", stale} {
				if _, err := swap(ctx, s, "day/live", wrong, make([]byte, 2*part)); !errors.Is(err, fs.ErrExist) {
					t.Errorf("%d bytes were replaced by who saw %q: %v", size, wrong, err)
				}
			}
			if now, err := s.Tag(ctx, "day/live"); now != next || err != nil {
				t.Errorf("tag %q, want %q, %v", now, next, err)
			}
			tag = next
		}
		if list, err := s.List(ctx, ""); err != nil || len(list) != 1 {
			t.Errorf("left: %v, %v", list, err)
		}
	})
}

// TestSwapRace lets four writers replace what all of them saw: one wins. In parts the servers of the tests do not
// hold the condition against a completion of the same moment: there the object is that of one writer who won, whole.
func TestSwapRace(t *testing.T) {
	s, part := newS3(t)
	sizes := []int{100}
	if os.Getenv(envS3) != "" { // the in-process server mixes such completions up
		sizes = append(sizes, 2*part)
	}
	for _, size := range sizes {
		tag, err := s.Tag(t.Context(), "live")
		if err != nil {
			t.Fatal(err)
		}
		errs := make([]error, 4)
		var all sync.WaitGroup
		for i := range errs {
			all.Go(func() { _, errs[i] = swap(t.Context(), s, "live", tag, bytes.Repeat([]byte{byte(i)}, size)) })
		}
		all.Wait()
		var won []int
		for i, err := range errs {
			if err == nil {
				won = append(won, i)
			} else if !errors.Is(err, fs.ErrExist) {
				t.Errorf("%d bytes: writer %d: %v", size, i, err)
			}
		}
		if len(won) == 0 || len(won) > 1 && size < part {
			t.Errorf("%d bytes: %v won", size, won)
		}
		got, err := objstore.ReadAll(t.Context(), s, "live")
		whole := slices.ContainsFunc(won, func(i int) bool { return bytes.Equal(got, bytes.Repeat([]byte{byte(i)}, size)) })
		if err != nil || !whole {
			t.Errorf("%d bytes: %v won, the object is of none of them, %v", size, won, err)
		}
	}
	if n := objstore.Uploads(t, s); n != 0 {
		t.Errorf("%d uploads are open", n)
	}
}

// TestSwapRemovesUploadsThatWereLeft drops what a killed writer has left of the same key, and of no other.
func TestSwapRemovesUploadsThatWereLeft(t *testing.T) {
	s, part := newS3(t)
	objstore.BeginUpload(t, s, "live")
	objstore.BeginUpload(t, s, "live-too")
	if _, err := swap(t.Context(), s, "live", "", make([]byte, part)); err != nil {
		t.Fatal(err)
	}
	if n := objstore.Uploads(t, s); n != 1 {
		t.Errorf("%d uploads are open, want that of the other key", n)
	}
}

// TestSwapStoresCopy gives objects second names, also those that are too large to copy at once.
func TestSwapStoresCopy(t *testing.T) {
	eachSwapper(t, func(t *testing.T, s swapper, part int) {
		ctx := t.Context()
		data := make([]byte, 2*part+5)
		rand.Read(data)
		tag, err := swap(ctx, s, "day=1/live & more", "", data)
		if err != nil {
			t.Fatal(err)
		}
		check := func(to string) {
			t.Helper()
			if err := s.Copy(ctx, "day=1/live & more", to, tag); err != nil {
				t.Fatal(err)
			}
			if got, err := objstore.ReadAll(ctx, s, to); err != nil || !bytes.Equal(got, data) {
				t.Errorf("%s: %d bytes, %v", to, len(got), err)
			}
		}
		check("old/1")
		check("old/1") // again
		if err := s.Copy(ctx, "day=1/live & more", "old/2", "\"other\""); !errors.Is(err, fs.ErrExist) {
			t.Errorf("another object was copied: %v", err)
		}
		if err := s.Copy(ctx, "none", "old/2", "x"); err == nil {
			t.Error("nothing was copied")
		}
		if b, ok := s.(*objstore.S3); ok && os.Getenv(envS3) != "" { // the in-process server copies no parts
			objstore.SetCopyMax(b, int64(part))
			check("old/3")
		}
	})
}

func TestLock(t *testing.T) {
	s := objstore.NewDir(t.TempDir())
	unlock, err := s.Lock(t.Context(), "builds/1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Lock(t.Context(), "builds/1"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("locked twice: %v", err)
	}
	if other, err := s.Lock(t.Context(), "builds/2"); err != nil {
		t.Error(err)
	} else {
		other()
	}
	unlock()
	again, err := s.Lock(t.Context(), "builds/1")
	if err != nil {
		t.Fatal(err)
	}
	again()
}

// A reader of an object that is replaced gets an error, or the bytes of one.
func TestSwapUnderAReader(t *testing.T) {
	s, part := newS3(t)
	tag, err := swap(t.Context(), s, "live", "", bytes.Repeat([]byte{1}, 3*part))
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Open(t.Context(), "live")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	p := make([]byte, 100)
	if _, err := r.ReadAt(p, 0); err != nil || p[0] != 1 {
		t.Fatalf("%v", err)
	}
	if _, err := swap(t.Context(), s, "live", tag, bytes.Repeat([]byte{2}, 3*part)); err != nil {
		t.Fatal(err)
	}
	if _, err := r.ReadAt(p, 1000); err == nil && p[0] == 2 {
		t.Error("one reader read two objects")
	}
}

// A lock that cannot be opened is no lock that another has.
func TestLockThatIsBroken(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(dir+"/builds/lock", 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := objstore.NewDir(dir).Lock(t.Context(), "builds"); err == nil || errors.Is(err, fs.ErrExist) {
		t.Errorf("%v", err)
	}
}
