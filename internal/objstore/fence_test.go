package objstore_test

import (
	"context"
	"errors"
	"io/fs"
	"testing"

	"tailgate/internal/objstore"
)

// errNotAllowed is what a writer gets that has lost the right to write.
var errNotAllowed = errors.New("not allowed")

// A writer that was allowed, and whose write arrives when another one has written, changes nothing; one that still is
// allowed writes over it.
func TestSwapFenced(t *testing.T) {
	s, part := newS3(t)
	ctx := t.Context()
	draft := func(size int) *objstore.Draft {
		d, err := s.Draft("k")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.Write(make([]byte, size)); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(d.Discard)
		return d
	}
	for _, tt := range []struct {
		name  string
		write func(f *objstore.S3, key, tag string) error
		after string // content when the writer is allowed all the time; "-" = the object is gone
		lost  bool   // it gives way then as well
	}{
		{"replace", func(f *objstore.S3, key, _ string) error { return f.Replace(ctx, key, []byte("mine")) }, "mine", false},
		{"remove", func(f *objstore.S3, key, _ string) error { return f.Remove(ctx, key) }, "-", false},
		{"swap", func(f *objstore.S3, key, tag string) error { _, err := f.Swap(ctx, draft(3), key, tag); return err }, "other", true},
		{"swap in parts", func(f *objstore.S3, key, tag string) error {
			_, err := f.Swap(ctx, draft(2*part), key, tag)
			return err
		}, "other", true},
		{"publish", func(f *objstore.S3, key, _ string) error { return f.Publish(ctx, draft(3), key) }, "other", true},
	} {
		for _, loses := range []bool{true, false} {
			key := tt.name + map[bool]string{true: "/loses", false: "/keeps"}[loses]
			if tt.name != "publish" {
				if err := s.Replace(ctx, key, []byte("old")); err != nil {
					t.Fatal(err)
				}
			}
			tag, err := s.Tag(ctx, key)
			if err != nil {
				t.Fatal(err)
			}
			asked := 0
			f := s.Fenced(func(context.Context) error {
				if asked++; asked > 1 && loses {
					return errNotAllowed
				}
				if asked == 1 {
					return s.Replace(ctx, key, []byte("other")) // behind the tag, before the write
				}
				return nil
			})
			err = tt.write(f, key, tag)
			want := tt.after
			if loses {
				want = "other"
			}
			if gaveWay := errors.Is(err, errNotAllowed) || errors.Is(err, fs.ErrExist); gaveWay != (loses || tt.lost) {
				t.Errorf("%s: %v", key, err)
			}
			got, err := objstore.ReadAll(ctx, s, key)
			if errors.Is(err, fs.ErrNotExist) {
				got, err = []byte("-"), nil
			}
			if err != nil || string(got) != want {
				t.Errorf("%s: %d bytes are there, want %q, %v", key, len(got), want, err)
			}
		}
	}
	stopped := s.Fenced(func(context.Context) error { return errNotAllowed })
	tag, err := s.Tag(ctx, "swap/keeps")
	if err != nil {
		t.Fatal(err)
	}
	if err := stopped.Copy(ctx, "swap/keeps", "copy", tag); !errors.Is(err, errNotAllowed) {
		t.Errorf("a copy: %v", err)
	}
	if tag, err := s.Tag(ctx, "copy"); tag != "" || err != nil {
		t.Errorf("a copy came: %q, %v", tag, err)
	}
}
