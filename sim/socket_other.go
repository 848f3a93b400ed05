//go:build !linux

package sim

import (
	"errors"
	"net"
)

// socket is only for Linux; elsewhere each answer has a goroutine that writes it.
type socket struct{}

func newSocket(net.Conn) socket { return socket{} }

func (socket) can() bool { return false }

func (socket) try([]byte) (int, error) { return 0, errors.ErrUnsupported }
