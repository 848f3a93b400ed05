package refresh

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"tailgate/schemas"
)

// trashFolder takes what is being removed: a folder is gone with one rename, also where removing it takes long. What a
// killed run left there, the next one removes.
const trashFolder = StateFolder + "/trash"

// Retain removes what has expired and destroys the keys that are due, and tells of it in n.Status.
//
// A day goes when its manifest's expiry or the time of the file has come, whichever is earlier; what was made of the
// day goes first, and the day of the lake last, so that a run that was killed is finished by the next. The last good day
// stays. Removing something that others which stay were made of is told.
func Retain(ctx context.Context, n *Night) error {
	r := newRetainer(n, false)
	err := r.run(ctx)
	n.Status.Retained = r.status
	if err != nil {
		return err
	}
	return r.keys(ctx)
}

// PlanRetention tells what Retain would do now, and does nothing.
func PlanRetention(ctx context.Context, n *Night) (*RetainStatus, error) {
	r := newRetainer(n, true)
	if err := r.run(ctx); err != nil {
		return nil, err
	}
	return r.status, r.keys(ctx)
}

type retainer struct {
	n        *Night
	dry      bool
	now      time.Time
	status   *RetainStatus
	last     string // good day; it stays
	days     map[string]*heldDay
	removed  map[string]bool   // folders
	produced map[string]string // removed folder by the digest of each of its files
	epochs   map[string]string // newest day of each epoch
}

// heldDay is what there is of a day.
type heldDay struct {
	lake    *schemas.Manifest // nil = not published
	folders []string          // made of it, the lake's last
	expires time.Time         // zero = never
}

func newRetainer(n *Night, dry bool) *retainer {
	return &retainer{n: n, dry: dry, now: n.Now().UTC(), last: n.Status.LastGoodDay, days: map[string]*heldDay{}, removed: map[string]bool{},
		produced: map[string]string{}, epochs: map[string]string{},
		status: &RetainStatus{Removed: []string{}, DestroyedKeys: []string{}, Kept: []string{}, StillNamed: []string{}}}
}

func (r *retainer) run(ctx context.Context) error {
	if err := r.emptyTrash(); err != nil {
		return err
	}
	if err := r.look(ctx); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(r.days)) {
		if err := r.day(ctx, name, r.days[name]); err != nil {
			return err
		}
	}
	if err := r.results(ctx); err != nil {
		return err
	}
	if err := r.segments(ctx); err != nil {
		return err
	}
	return r.named(ctx)
}

// dayFolders are the folders with a folder for each day, and how its name begins; what is derived goes first.
var dayFolders = []struct{ folder, prefix string }{
	{TracesFolder, "day="}, {ProfilesFolder, "day="}, {ReportsFolder, "day="}, {LakeFolder + "/_builds", ""}, {LakeFolder, "day="},
}

// look finds what there is of each day, and when it goes.
func (r *retainer) look(ctx context.Context) error {
	for _, f := range dayFolders {
		names, err := r.n.Root.folders(ctx, f.folder)
		if err != nil {
			return err
		}
		for _, name := range names {
			day, ok := strings.CutPrefix(name, f.prefix)
			if _, err := time.Parse(time.DateOnly, day); !ok || err != nil {
				continue
			}
			if r.days[day] == nil {
				r.days[day] = &heldDay{}
			}
			r.days[day].folders = append(r.days[day].folders, path.Join(f.folder, name))
		}
	}
	for day, d := range r.days {
		m, err := r.n.Root.manifest(ctx, path.Join(LakeFolder, "day="+day))
		if err != nil {
			return err
		}
		d.lake = m
		d.expires = earlier(after(day, r.n.Config.Retention.Days), m)
		if m != nil && m.Epoch != "" {
			r.epochs[m.Epoch] = max(r.epochs[m.Epoch], day)
		}
		if r.last == "" || r.n.Status.LastGoodDay == "" && m != nil && day > r.last {
			r.last = day // nothing says which day is good: the newest one stays
		}
	}
	return nil
}

// earlier is the earlier of a time (zero = never) and a manifest's expiry.
func earlier(at time.Time, m *schemas.Manifest) time.Time {
	if m != nil && m.ExpiresAt != nil && (at.IsZero() || m.ExpiresAt.Before(at)) {
		return *m.ExpiresAt
	}
	return at
}

func (r *retainer) expired(at time.Time) bool { return !at.IsZero() && !r.now.Before(at) }

// day removes the folders of a day whose time has come.
func (r *retainer) day(ctx context.Context, name string, d *heldDay) error {
	whole := r.expired(d.expires)
	if whole && name == r.last {
		r.status.Kept = append(r.status.Kept, fmt.Sprintf("day=%s has expired and is the last good day", name))
		return nil
	}
	for _, folder := range d.folders {
		gone := whole
		if !gone && strings.HasPrefix(folder, TracesFolder+"/") && name != r.last {
			m, err := r.n.Root.manifest(ctx, folder)
			if err != nil {
				return err
			}
			gone = r.expired(earlier(after(name, r.n.Config.Retention.Traces), m))
		}
		if !gone {
			continue
		}
		if whole && strings.HasPrefix(folder, LakeFolder+"/day=") { // last of all: by it a day is known
			if err := r.object(ctx, journalFile(name)); err != nil {
				return err
			}
		}
		if err := r.folder(ctx, folder); err != nil {
			return err
		}
	}
	return nil
}

// folder removes a folder of the root.
func (r *retainer) folder(ctx context.Context, folder string) error {
	list, err := r.n.Root.List(ctx, folder)
	if err != nil {
		return fmt.Errorf("listing %s: %w", r.n.Root.Path(folder), err)
	}
	list = slices.DeleteFunc(list, func(o object) bool { return !strings.HasPrefix(o.Key, folder+"/") })
	m, err := r.n.Root.manifest(ctx, folder)
	if err != nil {
		r.n.Log.Warn("the manifest of what has expired cannot be read", "folder", folder, "error", err)
	}
	if m != nil {
		for _, f := range m.Files {
			r.produced[f.SHA256] = folder
		}
	}
	r.removed[folder] = true
	r.status.Removed = append(r.status.Removed, folder)
	for _, o := range list {
		r.status.RemovedBytes += o.Size
	}
	if r.dry {
		return nil
	}
	if err := r.n.Guard(ctx, "remove-"+folder, func() error { return r.n.Root.discard(ctx, folder, list) }); err != nil {
		return fmt.Errorf("removing %s: %w", r.n.Root.Path(folder), err)
	}
	r.n.Log.Info("removed", "folder", folder)
	return r.emptyTrash()
}

// object removes one object, where it is there.
func (r *retainer) object(ctx context.Context, key string) error {
	data, err := r.n.Root.Read(ctx, key)
	if err != nil || data == nil {
		return err
	}
	r.status.Removed = append(r.status.Removed, key)
	r.status.RemovedBytes += int64(len(data))
	if r.dry {
		return nil
	}
	return r.n.Guard(ctx, "remove-"+key, func() error { return r.n.Root.Remove(ctx, key) })
}

// emptyTrash removes what was renamed there.
func (r *retainer) emptyTrash() error {
	dir, local := r.n.Root.Folder()
	if !local || r.dry {
		return nil
	}
	trash := r.n.Root.Path(trashFolder)
	if err := os.RemoveAll(trash); err != nil {
		return fmt.Errorf("emptying the trash of %s: %w", dir, err)
	}
	return nil
}
