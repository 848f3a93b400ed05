//go:build !linux || !(amd64 || arm64)

package epoll

import (
	"context"
	"errors"
	"fmt"
)

// Supported tells whether New works on this system.
const Supported = false

// Client exchanges requests and answers. Here it does not exist.
type Client struct{}

// New fails with errors.ErrUnsupported.
func New(Options) (*Client, error) {
	return nil, fmt.Errorf("polling connections: %w", errors.ErrUnsupported)
}

// Do is never called.
func (*Client) Do(context.Context, Request) {}

// Close does nothing.
func (*Client) Close() error { return nil }
