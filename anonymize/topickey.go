package anonymize

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"tailgate/internal/atomicfile"
	"tailgate/internal/fault"
)

// topicKeyName is the file of the key that names topics. It has no epoch: a topic that got another name with
// every pseudonym epoch would look new, and be read anew from its start. Topics and paths are no personal data,
// and their key tells nothing about the others.
//
// The key is the topic sub-key of the pseudonym key that was newest when the file was made, so that folders
// from before there was the file keep the names they gave.
const topicKeyName = "topics" + keySuffix

func (d *KeyDir) topicKeyPath() string { return filepath.Join(d.dir, topicKeyName) }

// loadTopicKey reads the key that names topics. Without the file it is the one that keepTopicKey would write.
func (d *KeyDir) loadTopicKey(key *[keySize]byte, epochs []EpochInfo) error {
	err := readKey(d.topicKeyPath(), key)
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	last := newest(epochs, EpochPseudonym)
	if last == nil {
		return keyFault(d.newEpochHint(), "loading the key of topics: %s has no pseudonym key to make it from", d.dir)
	}
	var pseudonym [keySize]byte
	defer clear(pseudonym[:])
	if err := d.read(&pseudonym, last.ID); err != nil {
		return err
	}
	copy(key[:], derive(pseudonym[:], KindTopic))
	return nil
}

// keepTopicKey writes the file where it is missing and there is a pseudonym key; it must be called before that
// key is renewed or destroyed.
func (d *KeyDir) keepTopicKey() error {
	epochs, err := d.List()
	if err != nil || newest(epochs, EpochPseudonym) == nil {
		return err
	}
	var key [keySize]byte
	defer clear(key[:])
	if err := d.loadTopicKey(&key, epochs); err != nil {
		return err
	}
	f, err := atomicfile.CreateUnnamed(d.dir)
	if err != nil {
		return fault.Mark(fmt.Errorf("making the key of topics: %w", err), fault.Key, "")
	}
	defer f.Discard()
	_, err = f.Write(key[:])
	if err = errors.Join(err, f.Chmod(0o600)); err == nil {
		err = f.Link(topicKeyName)
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return fault.Mark(fmt.Errorf("making the key of topics: %w", err), fault.Key, "")
	}
	return nil
}
