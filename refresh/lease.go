package refresh

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"tailgate/internal/atomicfile"
	"tailgate/internal/fault"
)

// leaseRecord is state/lease.json. Its bytes change with every beat: who waits for the lease watches them, by its own
// clock, so that clocks of two machines need not agree.
type leaseRecord struct {
	Token   int64     `json:"token"` // of the fencing; grows with every owner
	Owner   string    `json:"owner"` // random name of the run, "" = nobody has it
	Host    string    `json:"host"`
	PID     int       `json:"pid"`
	Since   time.Time `json:"since"`
	Beat    int64     `json:"beat"`
	SilentS float64   `json:"silent_s"` // after so long without a beat others take over
}

// errLost is wrapped where another run has taken the lease over.
var errLost = errors.New("another refresh has taken over")

// lease is the right to write below a root.
//
// In a folder two locks of the kernel stand beside the record: running.lock is held as long as the process lives, and
// shows that an owner on this machine is dead; fence.lock is held while the record changes and while something is
// renamed, so that no takeover comes between the look at the token and the rename. In a bucket the record is replaced
// under a condition (If-Match), and so is every object: see [Root.under].
type lease struct {
	root *Root
	log  *slog.Logger
	mine leaseRecord // as it was taken; the beat counts in a copy

	stop    chan struct{}
	stopped sync.WaitGroup
	tag     string // last one of the record, once the beat has ended
	running func() // gives running.lock free
}

// acquire takes the lease, at once where its last owner has given it back or is known to be dead, else after silent
// without a beat. An owner that lives is an error.
func acquire(ctx context.Context, root *Root, silent time.Duration, now func() time.Time, log *slog.Logger) (*lease, error) {
	l := &lease{root: root, log: log, running: func() {}, stop: make(chan struct{})}
	host, _ := os.Hostname()
	alone := false
	if dir, ok := root.Folder(); ok {
		unlock, err := atomicfile.Lock(filepath.Join(dir, StateFolder, "running.lock"))
		var broken *fs.PathError
		if errors.As(err, &broken) {
			return nil, err
		}
		if alone = err == nil; alone {
			l.running = unlock
		}
	}
	begun := false
	defer func() {
		if !begun {
			l.running()
		}
	}()
	var seen string // tag that is watched
	var since time.Time
	for {
		rec, tag, err := l.look(ctx)
		if err != nil {
			return nil, err
		}
		dead := rec.Owner == "" || alone && rec.Host == host
		if !dead && tag == seen && time.Since(since) >= max(silent, time.Duration(rec.SilentS*float64(time.Second))) {
			log.Warn("taking over from a silent refresh", "host", rec.Host, "pid", rec.PID, "since", rec.Since)
			dead = true
		}
		if dead {
			mine := leaseRecord{Token: rec.Token + 1, Owner: rand.Text(), Host: host, PID: os.Getpid(), Since: now().UTC(), SilentS: silent.Seconds()}
			tag, err = l.write(ctx, mine, tag)
			if errors.Is(err, fs.ErrExist) {
				continue // another one was faster: look again
			}
			if err != nil {
				return nil, err
			}
			l.mine, begun = mine, true
			l.stopped.Go(func() { l.tag = l.beat(tag) })
			return l, nil
		}
		if seen != "" && tag != seen {
			return nil, busy(rec)
		}
		if seen == "" {
			seen, since = tag, time.Now()
			log.Info("waiting for another refresh to give a sign of life", "host", rec.Host, "pid", rec.PID, "since", rec.Since)
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for another refresh: %w", context.Cause(ctx))
		case <-time.After(silent / 20):
		}
	}
}

func busy(rec leaseRecord) error {
	return fault.Mark(fmt.Errorf("taking the lease: another refresh is running (host %s, process %d, since %s)", rec.Host, rec.PID, rec.Since.Format(time.RFC3339)),
		fault.Failure, "wait until it has ended; the same command goes on where it stands")
}

// look reads the record and its tag.
func (l *lease) look(ctx context.Context) (rec leaseRecord, tag string, err error) {
	for range 3 { // it may be replaced between the two looks
		if tag, err = l.root.Tag(ctx, leaseFile); err != nil {
			return rec, "", fmt.Errorf("looking at the lease: %w", err)
		}
		data, err := l.root.Read(ctx, leaseFile)
		if err != nil {
			return rec, "", err
		}
		again, err := l.root.Tag(ctx, leaseFile)
		if err != nil {
			return rec, "", fmt.Errorf("looking at the lease: %w", err)
		}
		if again != tag {
			continue
		}
		if rec, err = l.parse(data); err != nil || data == nil {
			return rec, "", err
		}
		return rec, tag, nil
	}
	return rec, "", errors.New("looking at the lease: it changes all the time")
}

// parse reads the record; without one nobody has the lease.
func (l *lease) parse(data []byte) (rec leaseRecord, err error) {
	if data == nil {
		return rec, nil
	}
	if err := json.Unmarshal(data, &rec); err != nil {
		return rec, fault.Mark(fmt.Errorf("reading %s: not a lease: %w", l.root.Path(leaseFile), err), fault.Data, "remove it when no refresh is running")
	}
	return rec, nil
}

// write replaces the record, unless it is another one by now: fs.ErrExist.
func (l *lease) write(ctx context.Context, rec leaseRecord, tag string) (string, error) {
	data, err := json.Marshal(rec)
	if err != nil {
		return "", fmt.Errorf("writing the lease: %w", err)
	}
	unlock, err := l.fence(ctx)
	if err != nil {
		return "", err
	}
	defer unlock()
	return l.root.swap(ctx, leaseFile, append(data, '\n'), tag)
}

// fencePatience is how long the fence of a folder may be taken by others; they hold it for a rename.
const fencePatience = 10 * time.Second

// fence keeps other runs from changing the lease, where the root is a folder.
func (l *lease) fence(ctx context.Context) (unlock func(), err error) {
	dir, ok := l.root.Folder()
	if !ok {
		return func() {}, nil
	}
	for began := time.Now(); ; {
		unlock, err = atomicfile.Lock(filepath.Join(dir, StateFolder, "fence.lock"))
		var broken *fs.PathError
		if err == nil || errors.As(err, &broken) {
			return unlock, err
		}
		if time.Since(began) > fencePatience {
			return nil, fmt.Errorf("taking the fence: a refresh stands still in a rename: %w", err)
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// guard runs do while the lease is this run's.
func (l *lease) guard(ctx context.Context, do func() error) error {
	unlock, err := l.fence(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if err := l.check(ctx); err != nil {
		return err
	}
	return do()
}

// check is an error when the lease is another run's by now.
func (l *lease) check(ctx context.Context) error {
	data, err := l.root.Read(ctx, leaseFile)
	if err != nil {
		return err
	}
	rec, err := l.parse(data)
	if err != nil {
		return err
	}
	if rec.Owner != l.mine.Owner || rec.Token != l.mine.Token {
		return fault.Mark(fmt.Errorf("writing under fencing token %d: %w (token %d, host %s)", l.mine.Token, errLost, rec.Token, rec.Host), fault.Failure,
			"this run was silent for too long; the other one does the work")
	}
	return nil
}

// beat gives signs of life until the lease is given back or lost, and returns the record's last tag.
func (l *lease) beat(tag string) string {
	every := time.NewTicker(time.Duration(l.mine.SilentS * float64(time.Second) / 4))
	defer every.Stop()
	for rec := l.mine; ; {
		select {
		case <-l.stop:
			return tag
		case <-every.C:
		}
		rec.Beat++
		next, err := l.write(context.Background(), rec, tag)
		switch {
		case err == nil:
			tag = next
		case errors.Is(err, fs.ErrExist):
			return tag // lost: guard will say so
		default:
			l.log.Warn("giving a sign of life failed", "error", err)
		}
	}
}

// release gives the lease back, for the next run to take at once.
func (l *lease) release(ctx context.Context) {
	close(l.stop)
	l.stopped.Wait()
	free := leaseRecord{Token: l.mine.Token}
	if _, err := l.write(ctx, free, l.tag); err != nil && !errors.Is(err, fs.ErrExist) {
		l.log.Warn("giving the lease back failed; the next run waits for it", "error", err)
	}
	l.running()
}
