package anonymize

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"tailgate/internal/fault"
)

// topicKeyName is the key that names topics. It has no epoch: a topic that got another name with every
// pseudonym epoch would look new, and be read anew from its start. Topics and paths are no personal data, and
// their key tells nothing about the others.
//
// In a folder the key is the topic sub-key of the pseudonym key that was newest when its file was made, so that
// folders from before there was the file keep the names they gave. A command makes a random one.
const topicKeyName = "topics"

// derivedKeys is a source that can keep a key that was derived here.
type derivedKeys interface {
	put(name string, key *[keySize]byte) error
}

// loadTopicKey reads the key that names topics. Without the file it is the one that keepTopicKey would write.
func (r *Keyring) loadTopicKey(ctx context.Context, key *[keySize]byte, epochs []EpochInfo) error {
	err := r.src.get(ctx, topicKeyName, key)
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	last := newest(epochs, EpochPseudonym)
	if _, derives := r.src.(derivedKeys); !derives || last == nil {
		return keyFault(r.newEpochHint(), "loading the key of topics: %s has none", r)
	}
	var pseudonym [keySize]byte
	defer clear(pseudonym[:])
	if err := r.read(ctx, &pseudonym, last.ID); err != nil {
		return err
	}
	topics := derive(pseudonym[:], KindTopic)
	copy(key[:], topics)
	clear(topics)
	return nil
}

// keepTopicKey makes the key where it is missing and there is a pseudonym key; it must be called before that
// key is renewed or destroyed.
func (r *Keyring) keepTopicKey(ctx context.Context) error {
	names, err := r.src.list(ctx)
	if err != nil || slices.Contains(names, topicKeyName) {
		return err
	}
	epochs, err := r.List(ctx)
	if err != nil || newest(epochs, EpochPseudonym) == nil {
		return err
	}
	if d, derives := r.src.(derivedKeys); derives {
		var key [keySize]byte
		defer clear(key[:])
		if err := r.loadTopicKey(ctx, &key, epochs); err != nil {
			return err
		}
		err = d.put(topicKeyName, &key)
	} else {
		err = r.src.create(ctx, topicKeyName)
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return fault.Mark(fmt.Errorf("making the key of topics: %w", err), fault.Key, "")
	}
	return nil
}
