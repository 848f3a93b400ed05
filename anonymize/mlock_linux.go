package anonymize

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// lockMemory keeps k out of swap as far as the system lets it. Go does not move what is on its heap, so the
// pages stay those of k.
func lockMemory(k *Keys) {
	_ = unix.Mlock(unsafe.Slice((*byte)(unsafe.Pointer(k)), unsafe.Sizeof(*k)))
}
