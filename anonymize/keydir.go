package anonymize

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"time"

	"tailgate/internal/atomicfile"
	"tailgate/internal/fault"
)

// Kinds of epoch.
const (
	EpochBlock     = "block"     // block ids; one per refresh
	EpochPseudonym = "pseudonym" // tokens; renewed after PseudonymLife
)

// PseudonymLife is the age at which NewEpoch also renews the pseudonym key.
const PseudonymLife = 90 * 24 * time.Hour

// ErrDestroyed is wrapped by Load's error when the key existed and was destroyed.
var ErrDestroyed = errors.New("the key was destroyed")

// KeyDir is a folder of keys: one file of 32 random bytes per epoch, named by the epoch's id. The folder has
// mode 0700 and its files 0600, all owned by the user of this process; anything else is refused.
type KeyDir struct{ dir string }

// EpochInfo is what may be told about a key.
type EpochInfo struct {
	ID        string    `json:"id"`
	Kind      string    `json:"kind"`       // EpochBlock or EpochPseudonym
	CreatedAt time.Time `json:"created_at"` // UTC
}

const (
	stampLayout = "20060102T150405.000000Z"
	keySuffix   = ".key"
)

var (
	epochPattern = regexp.MustCompile(`^[bp]-\d{8}T\d{6}\.\d{6}Z$`)
	prefixKinds  = map[byte]string{'b': EpochBlock, 'p': EpochPseudonym}
	kindPrefixes = map[string]string{EpochBlock: "b-", EpochPseudonym: "p-"}
)

// parseEpoch reads an epoch id, for example b-20260102T030405.000000Z.
func parseEpoch(id string) (EpochInfo, bool) {
	if !epochPattern.MatchString(id) {
		return EpochInfo{}, false
	}
	at, err := time.Parse(stampLayout, id[2:])
	return EpochInfo{ID: id, Kind: prefixKinds[id[0]], CreatedAt: at}, err == nil
}

// OpenKeyDir opens a folder made by InitKeyDir. A missing or unsafe folder is a key fault.
func OpenKeyDir(dir string) (*KeyDir, error) {
	if err := checkDir(dir); err != nil {
		return nil, err
	}
	return &KeyDir{dir: dir}, nil
}

// InitKeyDir makes the folder where it is missing, with a first block and a first pseudonym epoch. A folder
// that has a block key already is left alone: an error.
func InitKeyDir(dir string, now time.Time) (*KeyDir, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fault.Mark(fmt.Errorf("making the key folder: %w", err), fault.Key, "")
	}
	d, err := OpenKeyDir(dir)
	if err != nil {
		return nil, err
	}
	epochs, err := d.List()
	if err != nil {
		return nil, err
	}
	if newest(epochs, EpochBlock) != nil {
		return nil, keyFault(d.newEpochHint(), "making the key folder: %s has keys already", dir)
	}
	if _, err := d.NewEpoch(now); err != nil {
		return nil, err
	}
	return d, nil
}

// NewEpoch makes the block key of a new epoch and returns the epoch's id. It makes a pseudonym key too when
// there is none or the newest is PseudonymLife old. An id tells the time of making; it is later than every
// earlier one even if the clock went back.
func (d *KeyDir) NewEpoch(now time.Time) (string, error) {
	if err := d.keepTopicKey(); err != nil { // before another pseudonym key is the newest
		return "", err
	}
	for range 100 { // another process may take the same microsecond
		id, err := d.tryNewEpoch(now)
		if err == nil {
			return id, d.keepTopicKey()
		}
		if !errors.Is(err, fs.ErrExist) {
			return "", err
		}
	}
	return "", keyFault("", "making a key: %s changes all the time", d.dir)
}

func (d *KeyDir) tryNewEpoch(now time.Time) (string, error) {
	epochs, err := d.List()
	if err != nil {
		return "", err
	}
	at := now.UTC().Truncate(time.Microsecond)
	if n := len(epochs); n > 0 && !at.After(epochs[n-1].CreatedAt) {
		at = epochs[n-1].CreatedAt.Add(time.Microsecond)
	}
	// The pseudonym key comes first: a block epoch uses the newest that is not younger than itself.
	if last := newest(epochs, EpochPseudonym); last == nil || at.Sub(last.CreatedAt) >= PseudonymLife {
		if _, err := d.create(EpochPseudonym, at); err != nil {
			return "", err
		}
	}
	return d.create(EpochBlock, at)
}

func (d *KeyDir) create(kind string, at time.Time) (string, error) {
	id := kindPrefixes[kind] + at.Format(stampLayout)
	if err := createKey(d.path(id)); err != nil {
		return "", err
	}
	return id, atomicfile.SyncDir(d.dir)
}

// List returns the epochs whose key is there, oldest first. It reads names, never bytes.
func (d *KeyDir) List() ([]EpochInfo, error) {
	entries, err := os.ReadDir(d.dir)
	if err != nil {
		return nil, fault.Mark(fmt.Errorf("listing keys: %w", err), fault.Key, "")
	}
	var out []EpochInfo
	for _, e := range entries {
		name := e.Name()
		if filepath.Ext(name) != keySuffix {
			continue
		}
		if info, ok := parseEpoch(name[:len(name)-len(keySuffix)]); ok {
			out = append(out, info)
		}
	}
	sort.Slice(out, func(i, j int) bool {
		if !out[i].CreatedAt.Equal(out[j].CreatedAt) {
			return out[i].CreatedAt.Before(out[j].CreatedAt)
		}
		return out[i].ID < out[j].ID
	})
	return out, nil
}

// newest returns the last of the given kind in a sorted list, or nil.
func newest(epochs []EpochInfo, kind string) *EpochInfo {
	for i := len(epochs) - 1; i >= 0; i-- {
		if epochs[i].Kind == kind {
			return &epochs[i]
		}
	}
	return nil
}

// Load reads the keys of a block epoch, "" or "auto" for the newest, and the pseudonym key that was newest
// when that epoch began. Every trouble is a key fault with the mend as its hint; there is no default key.
func (d *KeyDir) Load(epoch string) (*Keys, error) {
	epochs, err := d.List()
	if err != nil {
		return nil, err
	}
	if epoch == "" || epoch == "auto" {
		last := newest(epochs, EpochBlock)
		if last == nil {
			return nil, keyFault(d.newEpochHint(), "loading a key: %s has no block key", d.dir)
		}
		epoch = last.ID
	}
	info, ok := parseEpoch(epoch)
	if !ok || info.Kind != EpochBlock {
		return nil, keyFault("`tailgate keys list` prints the epochs", "loading a key: %q is not a block epoch", epoch)
	}
	k := &Keys{epoch: epoch}
	if err := d.read(&k.block, epoch); err != nil {
		return nil, err
	}
	until := sort.Search(len(epochs), func(i int) bool { return epochs[i].CreatedAt.After(info.CreatedAt) })
	pseudonym := newest(epochs[:until], EpochPseudonym)
	if pseudonym == nil {
		return nil, keyFault(d.newEpochHint(), "loading a key: %s has no pseudonym key for epoch %s", d.dir, epoch)
	}
	k.pseudonymEpoch = pseudonym.ID
	if err := d.read(&k.pseudonym, pseudonym.ID); err != nil {
		return nil, err
	}
	if err := d.loadTopicKey(&k.topic, epochs); err != nil {
		return nil, err
	}
	return k, nil
}

func (d *KeyDir) read(key *[keySize]byte, epoch string) error {
	err := readKey(d.path(epoch), key)
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if at, ok := d.destroyedAt(epoch); ok {
		return fault.Mark(fmt.Errorf("loading the key of epoch %s: %w at %s", epoch, ErrDestroyed, at.Format(time.RFC3339)), fault.Key,
			"its days take no more rows; ingest them again under a new epoch")
	}
	return fault.Mark(err, fault.Key, "`tailgate keys list` prints the epochs")
}

func (d *KeyDir) newEpochHint() string {
	return fmt.Sprintf("make a new epoch with `tailgate keys new-epoch --keys %s`", d.dir)
}

func (d *KeyDir) path(epoch string) string { return filepath.Join(d.dir, epoch+keySuffix) }

// keyFault is an error of kind Key.
func keyFault(hint, format string, args ...any) error {
	return fault.Mark(fmt.Errorf(format, args...), fault.Key, hint)
}
