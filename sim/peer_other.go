//go:build !linux

package sim

import (
	"errors"
	"net"
)

// direct is only for Linux; elsewhere handlers write.
type direct struct{}

func newPeer(c net.Conn) *peer { return &peer{conn: c} }

func (*direct) can() bool { return false }

func (*direct) try([]byte) (int, error) { return 0, errors.ErrUnsupported }
