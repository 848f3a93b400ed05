package refresh

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"tailgate/anonymize"
	"tailgate/internal/objstore"
)

// destroyedFile remembers the keys that the job destroyed, one record a line.
const destroyedFile = StateFolder + "/destroyed.jsonl"

// keys destroys the keys that are due, block keys first, and lists those that stay in n.Status.
//
// A block key is due BlockKeys after its day closed, or, where the day was read again, after the key was made; a
// pseudonym key at the end of its life, as soon as a newer one is there and no block key is left that began under it.
func (r *retainer) keys(ctx context.Context) error {
	epochs, err := r.n.Keys.List(ctx)
	if err != nil {
		return fmt.Errorf("looking at the keys: %w", err)
	}
	states, left := []KeyStatus{}, map[string]bool{}
	for _, kind := range []string{anonymize.EpochBlock, anonymize.EpochPseudonym} {
		for i, e := range epochs {
			if e.Kind != kind {
				continue
			}
			k := KeyStatus{Epoch: e.ID, Kind: kind, CreatedAt: e.CreatedAt, DueAt: r.due(&e)}
			if !r.now.Before(k.DueAt) {
				k.Reason = r.needed(&e, epochs[i+1:], left)
				if k.Reason == "" {
					if k.Reason, err = r.destroy(ctx, e.ID); k.Reason == "" && err == nil {
						continue
					}
				}
				k.Overdue = true
				r.status.Kept = append(r.status.Kept, fmt.Sprintf("key %s: %s", e.ID, k.Reason))
			}
			if kind == anonymize.EpochBlock {
				left[under(&e, epochs)] = true
			}
			states = append(states, k)
			if err != nil {
				break
			}
		}
	}
	if !r.dry {
		r.n.Status.Keys = states
	}
	return err
}

// keyStates lists the keys that live, with what is due. It destroys nothing.
func (r *retainer) keyStates(ctx context.Context) ([]KeyStatus, error) {
	if err := r.look(ctx); err != nil {
		return nil, err
	}
	epochs, err := r.n.Keys.List(ctx)
	if err != nil {
		return nil, fmt.Errorf("looking at the keys: %w", err)
	}
	states := make([]KeyStatus, 0, len(epochs))
	for i := range epochs {
		k := KeyStatus{Epoch: epochs[i].ID, Kind: epochs[i].Kind, CreatedAt: epochs[i].CreatedAt, DueAt: r.due(&epochs[i])}
		k.Overdue = !r.now.Before(k.DueAt)
		states = append(states, k)
	}
	return states, nil
}

// due is when a key is to be destroyed.
func (r *retainer) due(e *anonymize.EpochInfo) time.Time {
	c := &r.n.Config.Retention
	if e.Kind == anonymize.EpochPseudonym {
		return e.CreatedAt.Add(c.Pseudonym)
	}
	day := r.dayOf(e)
	closed := after(day, r.n.Config.Lateness)
	if closed.Before(e.CreatedAt) { // a day that was read again
		closed = e.CreatedAt
	}
	return closed.Add(c.BlockKeys)
}

// dayOf is the newest day of an epoch: one that was published with it, else the one in which it was made.
func (r *retainer) dayOf(e *anonymize.EpochInfo) string {
	if day := r.epochs[e.ID]; day != "" {
		return day
	}
	return e.CreatedAt.UTC().Format(time.DateOnly)
}

// needed says why a key that is due must stay, "" = it need not. later are the epochs behind it, left the pseudonym
// keys that a block key which stays began under.
func (r *retainer) needed(e *anonymize.EpochInfo, later []anonymize.EpochInfo, left map[string]bool) string {
	if e.Kind == anonymize.EpochPseudonym {
		newer := false
		for i := range later {
			newer = newer || later[i].Kind == anonymize.EpochPseudonym
		}
		switch {
		case !newer:
			return "there is no newer pseudonym key yet; the next epoch makes one"
		case left[e.ID]:
			return "a block key that stays began under it"
		}
		return ""
	}
	day := r.dayOf(e)
	for _, d := range r.n.Status.Days {
		if d.Epoch != e.ID || d.Waiting == 0 {
			continue
		}
		if r.n.Config.Retention.KeepLateKeys {
			return fmt.Sprintf("%d late rows of %s wait, and the file says to keep it for them", d.Waiting, d.Day)
		}
		r.n.Status.Notes = append(r.n.Status.Notes, fmt.Sprintf("%d late rows of %s waited when the key of %s was due", d.Waiting, d.Day, day))
	}
	return ""
}

// under is the pseudonym key that was the newest when a block epoch began, as loading the keys chooses it.
func under(e *anonymize.EpochInfo, epochs []anonymize.EpochInfo) string {
	id := ""
	for i := range epochs {
		if p := &epochs[i]; p.Kind == anonymize.EpochPseudonym && (id == "" || !p.CreatedAt.After(e.CreatedAt)) {
			id = p.ID
		}
	}
	return id
}

// destroy ends a key and appends the record to the journal of the root. A key that the source cannot destroy is told,
// and the job goes on: the next run tries again.
func (r *retainer) destroy(ctx context.Context, epoch string) (failed string, err error) {
	r.status.DestroyedKeys = append(r.status.DestroyedKeys, epoch)
	if r.dry {
		return "", nil
	}
	var record *anonymize.Destroyed
	err = r.n.Guard(ctx, "destroy-"+epoch, func() (err error) {
		record, err = r.n.Keys.Destroy(ctx, epoch)
		if record == nil {
			return err
		}
		if err != nil {
			r.n.Log.Error("a key was not destroyed", "epoch", epoch, "error", err)
		}
		return r.record(ctx, record)
	})
	if record == nil || record.Result != anonymize.ResultDestroyed {
		r.status.DestroyedKeys = r.status.DestroyedKeys[:len(r.status.DestroyedKeys)-1]
	}
	switch {
	case err != nil:
		return "it was not destroyed", fmt.Errorf("destroying the key of epoch %s: %w", epoch, err)
	case record.Result != anonymize.ResultDestroyed:
		return "the key source did not destroy it", nil
	}
	return "", nil
}

func (r *retainer) record(ctx context.Context, d *anonymize.Destroyed) error {
	line, err := json.Marshal(d)
	if err != nil {
		return fmt.Errorf("noting a destroyed key: %w", err)
	}
	return r.n.Root.amend(ctx, destroyedFile, func(old []byte) []byte { return append(append(old, line...), '\n') })
}

// bucketOfLake is the lake's store where the root is a bucket.
func (n *Night) bucketOfLake() *objstore.S3 {
	if n.o == nil {
		return nil
	}
	return n.o.Bucket
}
