//go:build !linux

package anonymize

// lockMemory does nothing where it is not known how.
func lockMemory(*Keys) {}
