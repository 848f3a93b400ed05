package anonymize

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"tailgate/internal/fault"
)

// checkDir refuses a key folder that others could read or that somebody else owns.
func checkDir(dir string) error {
	info, err := os.Lstat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return keyFault(fmt.Sprintf("make it with `tailgate keys init --keys %s`", dir), "opening the key folder: %s is missing", dir)
	case err != nil:
		return fault.Mark(fmt.Errorf("opening the key folder: %w", err), fault.Key, "")
	case info.Mode()&fs.ModeSymlink != 0:
		return keyFault("name the folder itself", "opening the key folder: %s is a symbolic link", dir)
	case !info.IsDir():
		return keyFault("", "opening the key folder: %s is not a folder", dir)
	case info.Mode().Perm()&0o077 != 0:
		return keyFault("chmod 700 "+dir, "opening the key folder: %s has mode %04o, others can enter it", dir, info.Mode().Perm())
	}
	return checkOwner(dir, info)
}

// readKey reads the key at path after checking the open file, not the name. The error is fs.ErrNotExist when
// there is none.
func readKey(path string, key *[keySize]byte) error {
	f, err := openKey(path, os.O_RDONLY)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return fault.Mark(fmt.Errorf("reading a key: %w", err), fault.Key, "")
	}
	if perm := info.Mode().Perm(); perm&^0o600 != 0 {
		return keyFault("chmod 600 "+path, "reading a key: %s has mode %04o, 0600 is needed", path, perm)
	}
	if err := checkOwner(path, info); err != nil {
		return err
	}
	const mend = "destroy it with `tailgate keys destroy` and make a new epoch"
	if info.Size() != keySize {
		return keyFault(mend, "reading a key: %s has %d bytes, %d are needed", path, info.Size(), keySize)
	}
	if _, err := io.ReadFull(f, key[:]); err != nil {
		return fault.Mark(fmt.Errorf("reading a key: %w", err), fault.Key, "")
	}
	if *key == [keySize]byte{} {
		return keyFault(mend, "reading a key: %s is all zero", path)
	}
	return nil
}

// openKey opens a regular key file without following a link or waiting on a pipe.
func openKey(path string, flag int) (*os.File, error) {
	f, err := os.OpenFile(path, flag|noFollow, 0)
	if err != nil {
		if info, lerr := os.Lstat(path); lerr == nil && info.Mode()&fs.ModeSymlink != 0 {
			return nil, keyFault("put the key itself there", "opening a key: %s is a symbolic link", path)
		}
		return nil, fault.Mark(fmt.Errorf("opening a key: %w", err), fault.Key, "")
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", path)
	}
	if err != nil {
		f.Close()
		return nil, fault.Mark(fmt.Errorf("opening a key: %w", err), fault.Key, "")
	}
	return f, nil
}
