//go:build !linux

package refresh

import (
	"fmt"
	"os"
	"path/filepath"

	"tailgate/internal/atomicfile"
)

// exchange puts folder from in the place of folder to; from is then the earlier one, or gone.
func exchange(from, to string) error {
	if err := settle(from); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return fmt.Errorf("making %s: %w", filepath.Dir(to), err)
	}
	if err := renameOver(from, to); err != nil {
		return fmt.Errorf("replacing %s: %w", to, err)
	}
	return atomicfile.SyncDir(filepath.Dir(to))
}
