package anonymize

import (
	"context"
	"errors"
	"io/fs"
	"time"
)

// EpochAt is the epoch named by a time, such as the midnight with which a day begins: its id follows from the time
// alone, so that a job that was killed finds the epoch again. Its key is made when there is none; the pseudonym key
// too, as NewEpoch does. A key that was destroyed is not made again: the error wraps ErrDestroyed, as far as the
// source remembers, and the id is returned beside it.
func (r *Keyring) EpochAt(ctx context.Context, at time.Time) (string, error) {
	at = at.UTC().Truncate(time.Microsecond)
	id := kindPrefixes[EpochBlock] + at.Format(stampLayout)
	k := &Keys{}
	lockMemory(k)
	defer k.clear()
	err := r.read(ctx, &k.block, id)
	switch {
	case err == nil, errors.Is(err, ErrDestroyed):
		return id, err
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
	if err := r.renewPseudonym(ctx, epochs, at); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	if err := r.src.create(ctx, id); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	return id, r.keepTopicKey(ctx)
}
