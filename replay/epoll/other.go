//go:build !linux || !(amd64 || arm64)

package epoll

import (
	"context"
	"time"
)

// Supported tells whether New works on this system.
const Supported = false

// Client exchanges requests and answers. Here it does not exist.
type Client struct{}

// New fails with ErrUnsupported.
func New(Options) (*Client, error) { return nil, ErrUnsupported }

// Do is never called.
func (*Client) Do(context.Context, Request) {}

// Close does nothing.
func (*Client) Close() error { return nil }

// Driver does not exist here either.
type Driver struct{}

// Drive fails with ErrUnsupported.
func (*Client) Drive() (*Driver, error) { return nil, ErrUnsupported }

// Wait is never called.
func (*Driver) Wait(time.Time) {}

// Wake is never called.
func (*Driver) Wake() {}

// Close is never called.
func (*Driver) Close() {}
