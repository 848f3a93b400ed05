//go:build !linux

package sim

import (
	"errors"
	"net"
	"syscall"
)

// source is only for Linux; elsewhere the simulator stamps what it reads itself.
type source struct{}

func newSource(net.Conn) source { return source{} }

func enableStamps(syscall.Conn) error { return errors.ErrUnsupported }

func (source) can() bool { return false }

func (source) read([]byte) (int, int64, error) { return 0, 0, errors.ErrUnsupported }
