//go:build !unix

package anonymize

import "io/fs"

const noFollow = 0

// checkOwner refuses every key: without Unix permissions nothing tells who can read it.
func checkOwner(path string, _ fs.FileInfo) error {
	return keyFault("keep the keys on a Unix system", "checking a key: %s has no Unix owner", path)
}
