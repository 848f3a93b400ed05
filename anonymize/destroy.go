package anonymize

import (
	"bufio"
	"bytes"
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
)

// DestroyNotice says what Destroy cannot reach; it stands in every line of the log and is for people to see.
const DestroyNotice = "snapshots and backups of the volume are not covered"

// destroyLog is the file of the key folder that remembers destroyed keys, one JSON object a line.
const destroyLog = "destroyed.jsonl"

const resultDestroyed = "destroyed"

type destroyEntry struct {
	Epoch  string    `json:"epoch"`
	At     time.Time `json:"at"`
	Result string    `json:"result"`
	Notice string    `json:"notice"`
}

// Destroy ends an epoch for good: the key file is overwritten, removed, and the folder synced; epoch, time and
// result are logged in the folder. What it cannot reach is DestroyNotice. A key that is unsafe or broken can
// be destroyed too; a link is never followed.
func (d *KeyDir) Destroy(epoch string) error {
	if _, ok := parseEpoch(epoch); !ok {
		return keyFault("`tailgate keys list` prints the epochs", "destroying a key: %q is not an epoch", epoch)
	}
	// The log is opened first: a key whose end cannot be recorded stays.
	log, err := os.OpenFile(filepath.Join(d.dir, destroyLog), os.O_CREATE|os.O_WRONLY|os.O_APPEND|noFollow, 0o600)
	if err != nil {
		return fault.Mark(fmt.Errorf("destroying the key of epoch %s: %w", epoch, err), fault.Key, "")
	}
	defer log.Close()
	_ = d.keepTopicKey() // a key too broken to read is destroyed all the same
	err = d.erase(epoch)
	if errors.Is(err, fs.ErrNotExist) {
		return fault.Mark(fmt.Errorf("destroying the key of epoch %s: %w", epoch, err), fault.Key, "`tailgate keys list` prints the epochs")
	}
	entry := destroyEntry{Epoch: epoch, At: time.Now().UTC(), Result: resultDestroyed, Notice: DestroyNotice}
	if err != nil {
		entry.Result = "failed: " + err.Error()
	}
	line, jerr := json.Marshal(entry)
	_, werr := log.Write(append(line, '\n'))
	if err = errors.Join(err, jerr, werr, log.Sync(), atomicfile.SyncDir(d.dir)); err != nil {
		return fault.Mark(fmt.Errorf("destroying the key of epoch %s: %w", epoch, err), fault.Key, "")
	}
	return nil
}

// erase overwrites the key with random bytes, on the disk, before it removes the name.
func (d *KeyDir) erase(epoch string) error {
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

// destroyedAt looks epoch up in the log. A line that a crash cut short is passed over.
func (d *KeyDir) destroyedAt(epoch string) (time.Time, bool) {
	data, err := os.ReadFile(filepath.Join(d.dir, destroyLog))
	if err != nil {
		return time.Time{}, false
	}
	for sc := bufio.NewScanner(bytes.NewReader(data)); sc.Scan(); {
		var e destroyEntry
		if json.Unmarshal(sc.Bytes(), &e) == nil && e.Epoch == epoch && e.Result == resultDestroyed {
			return e.At, true
		}
	}
	return time.Time{}, false
}
