package schemas

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"tailgate/internal/atomicfile"
	"tailgate/internal/fault"
	"tailgate/internal/smallfile"
)

// ManifestName is the file that makes a folder finished.
const ManifestName = "manifest.json"

// Write writes the manifest into dir, whole, replacing an earlier one. It is the last act on a folder.
func (m *Manifest) Write(dir string) error {
	return m.WriteFile(filepath.Join(dir, ManifestName))
}

// WriteFile writes the manifest of a single file to path, whole, replacing an earlier one.
func (m *Manifest) WriteFile(path string) error {
	data, err := m.Encode()
	if err != nil {
		return err
	}
	return atomicfile.WriteFile(path, data)
}

// Encode returns the bytes of the manifest's file.
func (m *Manifest) Encode() ([]byte, error) {
	m.Definition = Definition
	data, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encoding the manifest: %w", err)
	}
	return append(data, '\n'), nil
}

// ReadManifest reads the manifest of dir. The error is fs.ErrNotExist for an unfinished folder.
func ReadManifest(dir string) (*Manifest, error) {
	path := filepath.Join(dir, ManifestName)
	data, err := smallfile.Data(path)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return ParseManifest(path, data)
}

// ParseManifest reads the bytes of a manifest's file; name is for errors.
func ParseManifest(name string, data []byte) (*Manifest, error) {
	var m Manifest
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, fault.Mark(fmt.Errorf("reading %s: not a manifest: %w", name, err), fault.Data, "")
	}
	return &m, nil
}

// DigestFile pins the bytes of path; Name is its path relative to dir.
func DigestFile(dir, path string) (FileDigest, error) {
	f, err := os.Open(path)
	if err != nil {
		return FileDigest{}, fmt.Errorf("hashing %s: %w", path, err)
	}
	defer f.Close()
	h := sha256.New()
	n, err := io.Copy(h, f)
	if err != nil {
		return FileDigest{}, fmt.Errorf("hashing %s: %w", path, err)
	}
	name, err := filepath.Rel(dir, path)
	if err != nil {
		name = filepath.Base(path)
	}
	return FileDigest{Name: filepath.ToSlash(name), Bytes: n, SHA256: hex.EncodeToString(h.Sum(nil))}, nil
}

// InputsDigest is the sha256 over the sorted sha256 of the inputs, in hex; "" without inputs.
func InputsDigest(files []FileDigest) string {
	if len(files) == 0 {
		return ""
	}
	sums := make([]string, len(files))
	for i, f := range files {
		sums[i] = f.SHA256
	}
	slices.Sort(sums)
	h := sha256.New()
	for _, s := range sums {
		io.WriteString(h, s)
	}
	return hex.EncodeToString(h.Sum(nil))
}
