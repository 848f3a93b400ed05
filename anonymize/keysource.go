package anonymize

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"tailgate/internal/fault"
)

// keySource keeps keys under names: the ids of epochs, and topicKeyName. It never takes a key as an argument
// of a process or from the environment.
type keySource interface {
	// String is the source as errors call it.
	String() string
	// prepare makes the place of the keys where that can be made.
	prepare(ctx context.Context) error
	// list returns the names of the keys that are there, among others that are none of ours.
	list(ctx context.Context) ([]string, error)
	// get reads a key. The error is fs.ErrNotExist where there is none, ErrDestroyed where there was one.
	get(ctx context.Context, name string, key *[keySize]byte) error
	// create makes a new random key. The error is fs.ErrExist where the name is taken.
	create(ctx context.Context, name string) error
	// destroy ends a key for good. The error is fs.ErrNotExist where there is none.
	destroy(ctx context.Context, name string) error
	// notice says what destroy cannot reach.
	notice() string
}

// Prefixes of key sources.
const (
	filePrefix = "file:"
	execPrefix = "exec:"
)

// SourceOptions say how a key source is reached. The zero value is good for folders.
type SourceOptions struct {
	// Timeout ends a command that has not answered; 0 = 30 s.
	Timeout time.Duration
	// Stderr takes what a command says on its standard error, without any key in it; nil = dropped.
	Stderr io.Writer
}

// Validate reports every fault of o.
func (o SourceOptions) Validate() error {
	if o.Timeout < 0 {
		return fault.Mark(errors.New("the timeout of a key source must not be negative"), fault.Usage, "")
	}
	return nil
}

// OpenKeys opens a key source: a folder (file:DIR or DIR), or a command (exec:CMD, with arguments behind it)
// that speaks the protocol of docs/keys.md. A missing or unsafe source is a key fault.
func OpenKeys(_ context.Context, source string, o SourceOptions) (*Keyring, error) {
	src, err := parseSource(source, o)
	if err != nil {
		return nil, err
	}
	if d, ok := src.(*dirSource); ok {
		return OpenKeyDir(d.dir)
	}
	return &Keyring{src: src}, nil
}

// InitKeys makes the first block and the first pseudonym epoch of a source, and its folder where it is one that
// is missing. A source that has a block key already is left alone: an error.
func InitKeys(ctx context.Context, source string, o SourceOptions, now time.Time) (*Keyring, error) {
	src, err := parseSource(source, o)
	if err != nil {
		return nil, err
	}
	return initKeys(ctx, src, now)
}

func parseSource(source string, o SourceOptions) (keySource, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if command, ok := strings.CutPrefix(source, execPrefix); ok {
		return newExecSource(command, o)
	}
	dir := strings.TrimPrefix(source, filePrefix)
	if dir == "" {
		return nil, fault.Mark(errors.New("opening the keys: no folder is named"), fault.Usage, "--keys DIR, --keys file:DIR or --keys exec:CMD")
	}
	return &dirSource{dir: dir}, nil
}

// OpenKeyDir opens a folder of keys made by InitKeyDir. A missing or unsafe folder is a key fault.
func OpenKeyDir(dir string) (*Keyring, error) {
	if err := checkDir(dir); err != nil {
		return nil, err
	}
	return &Keyring{src: &dirSource{dir: dir}}, nil
}

// InitKeyDir is InitKeys for a folder.
func InitKeyDir(dir string, now time.Time) (*Keyring, error) {
	return initKeys(context.Background(), &dirSource{dir: dir}, now)
}

func initKeys(ctx context.Context, src keySource, now time.Time) (*Keyring, error) {
	if err := src.prepare(ctx); err != nil {
		return nil, err
	}
	r := &Keyring{src: src}
	epochs, err := r.List(ctx)
	if err != nil {
		return nil, err
	}
	if newest(epochs, EpochBlock) != nil {
		return nil, keyFault(r.newEpochHint(), "making the first keys: %s has keys already", src)
	}
	if _, err := r.NewEpoch(ctx, now); err != nil {
		return nil, err
	}
	return r, nil
}

// keyFault is an error of kind Key.
func keyFault(hint, format string, args ...any) error {
	return fault.Mark(fmt.Errorf(format, args...), fault.Key, hint)
}
