package anonymize_test

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"tailgate/anonymize"
	"tailgate/internal/fault"
)

// An epoch named by a time is the same each time, is made once, never again after its end, and has pseudonyms also where
// it lies before the first keys.
func TestEpochAt(t *testing.T) {
	made := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	ring, err := anonymize.InitKeyDir(filepath.Join(t.TempDir(), "keys"), made)
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	for _, at := range []time.Time{made.AddDate(0, 0, -3), made.AddDate(0, 0, 1), made.AddDate(0, 0, 90)} {
		id, err := ring.EpochAt(ctx, at)
		if err != nil {
			t.Fatal(err)
		}
		before, _ := ring.List(ctx)
		again, err := ring.EpochAt(ctx, at)
		if after, _ := ring.List(ctx); err != nil || again != id || len(after) != len(before) {
			t.Errorf("%s, then %s, %v", id, again, err)
		}
		if _, err := ring.Load(ctx, id); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
	first, err := ring.Load(ctx, "b-20261117T090000.000000Z")
	if err != nil || pseudonymEpoch(t, ring, first) != "p-20261120T090000.000000Z" {
		t.Errorf("pseudonyms of the day before the keys: %v, %v", first, err)
	}
	last, err := ring.Load(ctx, "b-20270218T090000.000000Z")
	if err != nil || pseudonymEpoch(t, ring, last) != "p-20270218T090000.000000Z" {
		t.Errorf("pseudonyms after 90 days: %v, %v", last, err)
	}
	if _, err := ring.Destroy(ctx, first.Epoch()); err != nil {
		t.Fatal(err)
	}
	if _, err := ring.EpochAt(ctx, made.AddDate(0, 0, -3)); !errors.Is(err, anonymize.ErrDestroyed) {
		t.Errorf("a destroyed key: %v", err)
	}
}

// While it cannot be read which keys were destroyed, none is made in the place of one.
func TestEpochAtWithoutItsLog(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "keys")
	ring, err := anonymize.InitKeyDir(dir, day0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ring.Destroy(t.Context(), "b-20260102T030405.000000Z"); err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(dir, "destroyed.jsonl")
	if err := errors.Join(os.Rename(log, log+".old"), os.Mkdir(log, 0o700)); err != nil {
		t.Fatal(err)
	}
	if _, err := ring.EpochAt(t.Context(), day0); fault.Of(err) != fault.Key {
		t.Errorf("a destroyed key was made anew: %v", err)
	}
	if gone, err := ring.PseudonymGone(t.Context(), "b-20260102T030405.000000Z", nil); fault.Of(err) != fault.Key {
		t.Errorf("whether its pseudonyms are gone: %v, %v", gone, err)
	}
}

// Whoever meets a key while it is made finds it whole, or not yet.
func TestKeysAppearWhole(t *testing.T) {
	ring, err := anonymize.InitKeyDir(filepath.Join(t.TempDir(), "keys"), day0)
	if err != nil {
		t.Fatal(err)
	}
	for day := 1; day <= 40; day++ {
		var both sync.WaitGroup
		for range 4 {
			both.Go(func() {
				id, err := ring.EpochAt(t.Context(), day0.AddDate(0, 0, day))
				if err == nil {
					_, err = ring.Load(t.Context(), id)
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		both.Wait()
	}
}
