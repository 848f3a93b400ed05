package anonymize

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"tailgate/internal/fault"
)

// EpochAt is the epoch named by a time, such as the midnight with which a day begins: its id follows from the time
// alone, so that a job that was killed finds the epoch again. Its key is made when there is none; the pseudonym key
// too, as NewEpoch does. A key that was destroyed is not made again: the error wraps ErrDestroyed, as far as the
// source remembers.
func (r *Keyring) EpochAt(ctx context.Context, at time.Time) (string, error) {
	at = at.UTC().Truncate(time.Microsecond)
	id := kindPrefixes[EpochBlock] + at.Format(stampLayout)
	k := &Keys{}
	lockMemory(k)
	defer clear(k.block[:])
	err := r.src.get(ctx, id, &k.block)
	switch {
	case err == nil:
		return id, nil
	case errors.Is(err, ErrDestroyed):
		return id, fault.Mark(fmt.Errorf("using the key of epoch %s: %w", id, err), fault.Key, "its days take no more rows; ingest them again under a new epoch")
	case !errors.Is(err, fs.ErrNotExist):
		return "", err
	}
	if err := r.keepTopicKey(ctx); err != nil {
		return "", err
	}
	epochs, err := r.List(ctx)
	if err != nil {
		return "", err
	}
	last := newest(epochs, EpochPseudonym)
	if last == nil || at.Sub(last.CreatedAt) >= PseudonymLife {
		if err := r.src.create(ctx, kindPrefixes[EpochPseudonym]+at.Format(stampLayout)); err != nil && !errors.Is(err, fs.ErrExist) {
			return "", err
		}
	}
	if err := r.src.create(ctx, id); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	return id, r.keepTopicKey(ctx)
}
