package anonymize

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"tailgate/internal/atomicfile"
	"tailgate/internal/fault"
	"tailgate/internal/smallfile"
)

// DestroyNotice says what destroying a key file cannot reach.
const DestroyNotice = "snapshots and backups of the volume are not covered"

// execNotice says what destroying a key by a command cannot reach.
const execNotice = "versions, caches and backups that the key source keeps are not covered"

// destroyLog is the file of the key folder that remembers destroyed keys, one Destroyed a line.
const destroyLog = "destroyed.jsonl"

// ResultDestroyed is the result of a key that is gone.
const ResultDestroyed = "destroyed"

// Destroyed is the record of one attempt to destroy a key.
type Destroyed struct {
	Epoch  string    `json:"epoch"`
	At     time.Time `json:"at"`     // UTC
	Result string    `json:"result"` // destroyed, or failed: and why
	Notice string    `json:"notice"` // what was not reached
}

// Destroy ends an epoch for good, by the source's own means, and returns the record of it, also when it failed.
// In a folder the key file is overwritten, removed, and the folder synced; the record is a line of
// destroyed.jsonl. A key that is unsafe or broken can be destroyed too; a link is never followed. The record is
// nil when nothing was tried.
func (r *Keyring) Destroy(ctx context.Context, epoch string) (*Destroyed, error) {
	if _, ok := parseEpoch(epoch); !ok {
		return nil, keyFault("`tailgate keys list` prints the epochs", "destroying a key: %q is not an epoch", epoch)
	}
	failed := func(err error) error {
		return fault.Mark(fmt.Errorf("destroying the key of epoch %s: %w", epoch, err), fault.Key, "")
	}
	var log *os.File
	if d, ok := r.src.(*dirSource); ok {
		var err error // the log is opened first: a key whose end cannot be recorded stays
		log, err = os.OpenFile(filepath.Join(d.dir, destroyLog), os.O_CREATE|os.O_WRONLY|os.O_APPEND|noFollow, 0o600)
		if err != nil {
			return nil, failed(err)
		}
		defer log.Close()
	}
	_ = r.keepTopicKey(ctx) // a key too broken to read is destroyed all the same
	err := r.src.destroy(ctx, epoch)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.Mark(failed(err), fault.Key, "`tailgate keys list` prints the epochs")
	}
	entry := &Destroyed{Epoch: epoch, At: time.Now().UTC(), Result: ResultDestroyed, Notice: r.src.notice()}
	if err != nil {
		entry.Result = "failed: " + err.Error()
	}
	if log != nil {
		line, jerr := json.Marshal(entry)
		_, werr := log.Write(append(line, '\n'))
		err = errors.Join(err, jerr, werr, log.Sync(), atomicfile.SyncDir(filepath.Dir(log.Name())))
	}
	if err != nil {
		return entry, failed(err)
	}
	return entry, nil
}

func (d *dirSource) notice() string { return DestroyNotice }

// destroy overwrites the key with random bytes, on the disk, before it removes the name.
func (d *dirSource) destroy(_ context.Context, epoch string) error {
	path := d.path(epoch)
	f, err := openKey(path, os.O_WRONLY)
	if err != nil {
		return err
	}
	noise := make([]byte, keySize)
	rand.Read(noise)
	_, err = f.WriteAt(noise, 0)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Remove(path); err != nil {
		return err
	}
	return atomicfile.SyncDir(d.dir)
}

// destroyedAt looks epoch up in the log.
func (d *dirSource) destroyedAt(epoch string) (at time.Time, ok bool) {
	d.eachDestroyed(func(e *Destroyed) {
		if e.Epoch == epoch && !ok {
			at, ok = e.At, true
		}
	})
	return at, ok
}

// destroyed lists the epochs in the log.
func (d *dirSource) destroyed() (epochs []string) {
	d.eachDestroyed(func(e *Destroyed) { epochs = append(epochs, e.Epoch) })
	return epochs
}

// eachDestroyed visits the keys in the log that are gone. A line that a crash cut short is passed over.
func (d *dirSource) eachDestroyed(visit func(*Destroyed)) {
	data, err := smallfile.Data(filepath.Join(d.dir, destroyLog))
	if err != nil {
		return
	}
	for sc := bufio.NewScanner(bytes.NewReader(data)); sc.Scan(); {
		var e Destroyed
		if json.Unmarshal(sc.Bytes(), &e) == nil && e.Result == ResultDestroyed {
			visit(&e)
		}
	}
}
