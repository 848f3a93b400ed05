package sockets

import (
	"encoding/binary"
	"unsafe"

	"golang.org/x/sys/unix"
)

// EnableStamps asks the kernel to tell when it received what a read returns (SO_TIMESTAMPNS, socket(7)): of several segments
// the last one. Connections that a listener accepts inherit it.
func EnableStamps(fd int) error {
	return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1)
}

// StampRoom is the size that the control messages of a read need.
const StampRoom = 64

// Stamp is the Unix time in ns that the control messages of a read tell; 0 = none, where others come first as well.
func Stamp(oob []byte) int64 {
	if len(oob) < unix.SizeofCmsghdr {
		return 0
	}
	c := (*unix.Cmsghdr)(unsafe.Pointer(&oob[0]))
	if c.Level != unix.SOL_SOCKET || c.Type != unix.SCM_TIMESTAMPNS {
		return 0
	}
	data := oob[unix.CmsgSpace(0):]
	switch n := int(c.Len) - unix.CmsgLen(0); {
	case n >= 16 && len(data) >= 16:
		return int64(binary.NativeEndian.Uint64(data))*1e9 + int64(binary.NativeEndian.Uint64(data[8:]))
	case n >= 8 && len(data) >= 8: // 32 bits
		return int64(int32(binary.NativeEndian.Uint32(data)))*1e9 + int64(binary.NativeEndian.Uint32(data[4:]))
	}
	return 0
}
