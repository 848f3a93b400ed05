package anonymize

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"sort"
	"strings"
	"time"

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

// Keyring is the keys of one source: one random key of 32 bytes per epoch, named by the epoch's id. Its methods
// may run at the same time, also in several processes.
type Keyring struct{ src keySource }

// String is the source as errors call it: of a command the name alone, for its arguments may be secrets of their own.
func (r *Keyring) String() string { return r.src.String() }

// EpochInfo is what may be told about a key.
type EpochInfo struct {
	ID        string    `json:"id"`
	Kind      string    `json:"kind"`       // EpochBlock or EpochPseudonym
	CreatedAt time.Time `json:"created_at"` // UTC
}

const stampLayout = "20060102T150405.000000Z"

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

// NewEpoch makes the block key of a new epoch and returns the epoch's id. It makes a pseudonym key too when
// there is none or the newest is PseudonymLife old. An id tells the time of making; it is later than every
// earlier one even if the clock went back.
func (r *Keyring) NewEpoch(ctx context.Context, now time.Time) (string, error) {
	if err := r.keepTopicKey(ctx); err != nil { // before another pseudonym key is the newest
		return "", err
	}
	for range 100 { // another process may take the same microsecond
		id, err := r.tryNewEpoch(ctx, now)
		if err == nil {
			return id, r.keepTopicKey(ctx)
		}
		if !errors.Is(err, fs.ErrExist) {
			return "", err
		}
	}
	return "", keyFault("", "making a key: %s changes all the time", r)
}

func (r *Keyring) tryNewEpoch(ctx context.Context, now time.Time) (string, error) {
	epochs, err := r.List(ctx)
	if err != nil {
		return "", err
	}
	at := now.UTC().Truncate(time.Microsecond)
	if n := len(epochs); n > 0 && !at.After(epochs[n-1].CreatedAt) {
		at = epochs[n-1].CreatedAt.Add(time.Microsecond)
	}
	// The pseudonym key comes first: a block epoch uses the newest that is not younger than itself.
	if err := r.renewPseudonym(ctx, epochs, at); err != nil {
		return "", err
	}
	id := kindPrefixes[EpochBlock] + at.Format(stampLayout)
	return id, r.src.create(ctx, id)
}

// renewPseudonym makes the pseudonym key of at where there is none, or the newest is PseudonymLife old then.
func (r *Keyring) renewPseudonym(ctx context.Context, epochs []EpochInfo, at time.Time) error {
	if last := newest(epochs, EpochPseudonym); last != nil && at.Sub(last.CreatedAt) < PseudonymLife {
		return nil
	}
	return r.src.create(ctx, kindPrefixes[EpochPseudonym]+at.Format(stampLayout))
}

// List returns the epochs whose key is there, oldest first. It reads names, never bytes.
func (r *Keyring) List(ctx context.Context) ([]EpochInfo, error) {
	names, err := r.src.list(ctx)
	if err != nil {
		return nil, err
	}
	var out []EpochInfo
	for _, name := range names {
		if info, ok := parseEpoch(name); ok {
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

// oldest returns the first of the given kind in a sorted list, or nil.
func oldest(epochs []EpochInfo, kind string) *EpochInfo {
	for i := range epochs {
		if epochs[i].Kind == kind {
			return &epochs[i]
		}
	}
	return nil
}

// Load reads the keys of a block epoch, "" or "auto" for the newest, and the pseudonym key that was newest
// when that epoch began, or, for an epoch before all of them, the first. Every trouble is a key fault with the mend as
// its hint; there is no default key.
func (r *Keyring) Load(ctx context.Context, epoch string) (_ *Keys, err error) {
	epochs, err := r.List(ctx)
	if err != nil {
		return nil, err
	}
	if epoch == "" || epoch == "auto" {
		last := newest(epochs, EpochBlock)
		if last == nil {
			return nil, keyFault(r.newEpochHint(), "loading a key: %s has no block key", r)
		}
		epoch = last.ID
	}
	info, ok := parseEpoch(epoch)
	if !ok || info.Kind != EpochBlock {
		return nil, keyFault("`tailgate keys list` prints the epochs", "loading a key: %q is not a block epoch", epoch)
	}
	k := &Keys{epoch: epoch}
	lockMemory(k)
	defer func() {
		if err != nil {
			k.clear()
		}
	}()
	if err := r.read(ctx, &k.block, epoch); err != nil {
		return nil, err
	}
	until := sort.Search(len(epochs), func(i int) bool { return epochs[i].CreatedAt.After(info.CreatedAt) })
	pseudonym := newest(epochs[:until], EpochPseudonym)
	if pseudonym == nil { // the epoch of a day before the first keys were made
		pseudonym = oldest(epochs, EpochPseudonym)
	}
	if pseudonym == nil {
		return nil, keyFault(r.newEpochHint(), "loading a key: %s has no pseudonym key for epoch %s", r, epoch)
	}
	if err := r.read(ctx, &k.pseudonym, pseudonym.ID); err != nil {
		return nil, err
	}
	if err := r.loadTopicKey(ctx, &k.topic, epochs); err != nil {
		return nil, err
	}
	return k, nil
}

// read reads the key of an epoch and says of one that is gone what became of it.
func (r *Keyring) read(ctx context.Context, key *[keySize]byte, epoch string) error {
	err := r.src.get(ctx, epoch, key)
	switch {
	case errors.Is(err, ErrDestroyed):
		return fault.Mark(fmt.Errorf("loading the key of epoch %s: %w", epoch, err), fault.Key,
			"its days take no more rows; ingest them again under a new epoch")
	case errors.Is(err, fs.ErrNotExist):
		return fault.Mark(err, fault.Key, "`tailgate keys list` prints the epochs")
	}
	return err
}

func (r *Keyring) newEpochHint() string {
	if d, ok := r.src.(*dirSource); ok {
		return fmt.Sprintf("make a new epoch with `tailgate keys new-epoch --keys %s`", shellWord(d.dir))
	}
	return "make a new epoch with `tailgate keys new-epoch` and the same --keys"
}

// plainInShell are characters that mean nothing to a shell.
const plainInShell = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+./:,=@%"

// shellWord quotes a word that a shell would not take as it is.
func shellWord(s string) string {
	if s != "" && strings.Trim(s, plainInShell) == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
