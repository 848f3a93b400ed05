package refresh

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"tailgate/anonymize"
	"tailgate/ingest"
	"tailgate/schemas"
)

// hashers are the anonymizers of one run, one for each epoch that a day needs.
//
// A day's epoch is named by its midnight, so that all of the day's rows meet in one epoch, whenever they are read; a
// day that was published under another epoch keeps that one. A day whose key is destroyed takes no more rows: they are
// read under the epoch of the run's own day, and counted as refused when the day is looked at.
type hashers struct {
	n    *Night
	ctx  context.Context // of the run: ByDay has none of its own
	base *anonymize.Hasher
	own  string // epoch of the run's day

	mu      sync.Mutex
	byEpoch map[string]*anonymize.Hasher
	byDay   map[string]string // epoch by day
}

// farDays is how far from the run's day a day may lie to get an epoch of its own: others have a wrong clock.
const farDays = 60

func newHashers(ctx context.Context, n *Night) (*hashers, error) {
	h := &hashers{n: n, ctx: ctx, byEpoch: map[string]*anonymize.Hasher{}, byDay: map[string]string{}}
	epoch, err := h.epochOf(n.Day)
	var keys *anonymize.Keys
	if err == nil {
		keys, err = n.Keys.Load(ctx, epoch)
	}
	if errors.Is(err, anonymize.ErrDestroyed) { // an old day once more: its late rows are refused
		if epoch, err = n.Keys.EpochAt(ctx, n.Now().UTC().Truncate(24*time.Hour)); err == nil {
			keys, err = n.Keys.Load(ctx, epoch)
		}
	}
	if err != nil {
		return nil, err
	}
	if h.base, err = anonymize.NewHasher(keys, n.o.Hash); err != nil {
		return nil, err
	}
	h.own = epoch
	h.byEpoch[epoch] = h.base
	return h, nil
}

// close zeroes what the anonymizers remember.
func (h *hashers) close() {
	for _, x := range h.byEpoch {
		x.Close()
	}
}

// epochOf is the epoch of a day: that of its live build, or the one of its midnight, which is made. The error wraps
// ErrDestroyed when it is gone.
func (h *hashers) epochOf(day string) (string, error) {
	m, err := h.n.liveManifest(h.ctx, day)
	if err != nil {
		return "", err
	}
	if m != nil && m.Epoch != "" {
		return m.Epoch, nil
	}
	midnight, err := time.Parse(time.DateOnly, day)
	if err != nil {
		return "", fmt.Errorf("choosing an epoch: %w", err)
	}
	return h.n.Keys.EpochAt(h.ctx, midnight)
}

// of is the anonymizer of an epoch.
func (h *hashers) of(epoch string) (*anonymize.Hasher, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if x := h.byEpoch[epoch]; x != nil {
		return x, nil
	}
	keys, err := h.n.Keys.Load(h.ctx, epoch)
	if err != nil {
		return nil, err
	}
	memo := h.n.o.Hash.Memo
	if memo == 0 {
		memo = anonymize.DefaultMemo
	}
	x, err := h.base.Under(keys, memo/4) // few rows of a run are of another day
	if err != nil {
		return nil, err
	}
	h.byEpoch[epoch] = x
	return x, nil
}

// day gives what the rows of a day are made with.
func (h *hashers) day(day string) (ingest.DayKeys, error) {
	h.mu.Lock()
	epoch, known := h.byDay[day]
	h.mu.Unlock()
	if !known {
		epoch = h.own
		if h.near(day) {
			e, err := h.epochOf(day)
			if err == nil {
				_, err = h.of(e)
			}
			switch {
			case err == nil:
				epoch = e
			case !errors.Is(err, anonymize.ErrDestroyed):
				return ingest.DayKeys{}, err
			}
		}
		h.mu.Lock()
		h.byDay[day] = epoch
		h.mu.Unlock()
	}
	x, err := h.of(epoch)
	return ingest.DayKeys{Anonymizer: x, Epoch: epoch}, err
}

// near tells whether a day lies in the time that a run can see.
func (h *hashers) near(day string) bool {
	own, err := time.Parse(time.DateOnly, h.n.Day)
	if err != nil {
		return false
	}
	at, err := time.Parse(time.DateOnly, day)
	return err == nil && !at.Before(own.AddDate(0, 0, -farDays)) && !at.After(h.n.Now().UTC().AddDate(0, 0, 1))
}

// footer is the provenance of segments made with x.
func footer(x *anonymize.Hasher, tool string) schemas.Footer {
	return schemas.Footer{Tool: tool, BlockSize: strconv.Itoa(x.BlockSize()), Epoch: x.Epoch(), Tokenizer: x.TokenizerID(),
		Template: x.TemplateID(), Models: x.ModelsID()}
}
