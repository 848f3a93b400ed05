package anonymize

import (
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
		if log, err = d.openLog(); err != nil {
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

// openLog opens the log to add a line. A line that a crash cut short is ended, so that the next one can be read.
func (d *dirSource) openLog() (*os.File, error) {
	log, err := os.OpenFile(filepath.Join(d.dir, destroyLog), os.O_CREATE|os.O_RDWR|os.O_APPEND|noFollow, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := log.Stat()
	if err == nil && info.Size() > 0 {
		var last [1]byte
		if _, err = log.ReadAt(last[:], info.Size()-1); err == nil && last[0] != '\n' {
			_, err = log.Write([]byte("\n"))
		}
	}
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	return log, nil
}

// destroyed lists the keys in the log that are gone, in the order of their ends. A line that a crash cut short is passed
// over; a log that cannot be read is a key fault.
func (d *dirSource) destroyed() ([]Destroyed, error) {
	data, err := smallfile.Data(filepath.Join(d.dir, destroyLog))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fault.Mark(fmt.Errorf("reading which keys were destroyed: %w", err), fault.Key, "")
	}
	var out []Destroyed
	for line := range bytes.Lines(data) {
		var e Destroyed
		if json.Unmarshal(line, &e) == nil && e.Result == ResultDestroyed {
			out = append(out, e)
		}
	}
	return out, nil
}
