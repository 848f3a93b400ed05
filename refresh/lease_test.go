package refresh

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func leaseRoot(t *testing.T) *Root {
	t.Helper()
	root, err := OpenRoot(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return root
}

func take(ctx context.Context, root *Root) (*lease, error) {
	return acquire(ctx, root, time.Minute, time.Now, slog.New(slog.DiscardHandler))
}

// Of two runs at a time the second gives way, and after the first has ended it gets a higher token.
func TestTwoRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root := leaseRoot(t)
		one, err := take(t.Context(), root)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := take(t.Context(), root); err == nil || !strings.Contains(err.Error(), "another refresh is running") {
			t.Errorf("the second run: %v", err)
		}
		if err := one.guard(t.Context(), func() error { return nil }); err != nil {
			t.Errorf("the first run lost its lease: %v", err)
		}
		one.release(t.Context())
		two, err := take(t.Context(), root)
		if err != nil {
			t.Fatal(err)
		}
		if two.mine.Token != one.mine.Token+1 {
			t.Errorf("token %d after %d", two.mine.Token, one.mine.Token)
		}
		two.release(t.Context())
	})
}

// A run on another machine that was silent for the lease's time is taken over; suspended in the middle of its work and
// resumed, it can write nothing.
func TestZombie(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root := leaseRoot(t)
		zombie, err := take(t.Context(), root)
		if err != nil {
			t.Fatal(err)
		}
		close(zombie.stop) // it stands still: no beat any more
		zombie.stopped.Wait()
		began := time.Now()
		heir, err := take(t.Context(), root)
		if err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(began); waited < time.Minute {
			t.Errorf("taken over after %v, the lease is a minute", waited)
		}
		n := &Night{Root: root, lease: zombie, crash: func(string) {}, o: &Options{}}
		err = n.Build(t.Context(), "traces/day=2026-11-02", func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "manifest.json"), []byte("{}"), 0o644)
		})
		if !errors.Is(err, errLost) {
			t.Errorf("the zombie renamed a folder: %v", err)
		}
		if err := n.Replace(t.Context(), "reports/status.json", []byte("{}")); !errors.Is(err, errLost) {
			t.Errorf("the zombie wrote its status: %v", err)
		}
		for _, path := range []string{"traces/day=2026-11-02", "reports/status.json"} {
			if _, err := os.Stat(root.Path(path)); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s is there: %v", path, err)
			}
		}
		n.lease = heir
		if err := n.Replace(t.Context(), "reports/status.json", []byte("{}")); err != nil {
			t.Errorf("the heir cannot write: %v", err)
		}
		heir.release(t.Context())
		zombie.running()
	})
}

// A run that was killed on this machine is taken over at once: the kernel has given its lock free.
func TestKilledOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root := leaseRoot(t)
		dead, err := take(t.Context(), root)
		if err != nil {
			t.Fatal(err)
		}
		close(dead.stop)
		dead.stopped.Wait()
		dead.running() // as its end does
		began := time.Now()
		heir, err := take(t.Context(), root)
		if err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(began); waited != 0 {
			t.Errorf("waited %v for a dead run", waited)
		}
		heir.release(t.Context())
	})
}

// A folder is replaced whole: readers find the old one or the new one.
func TestExchange(t *testing.T) {
	dir := t.TempDir()
	to := filepath.Join(dir, "deep", "folder")
	for _, swap := range []func(from, to string) error{exchange, renameOver, exchange} {
		from := filepath.Join(dir, "new")
		if err := os.Mkdir(from, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(from, "a"), []byte("new"), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := swap(from, to); err != nil {
			t.Fatal(err)
		}
		if data, err := os.ReadFile(filepath.Join(to, "a")); err != nil || string(data) != "new" {
			t.Errorf("%q, %v", data, err)
		}
		os.RemoveAll(from)
	}
}
