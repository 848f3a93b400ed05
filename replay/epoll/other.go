//go:build !linux || !(amd64 || arm64)

package epoll

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Supported tells whether New works on this system.
const Supported = false

// Client exchanges requests and answers. Here it does not exist.
type Client struct{}

var errUnsupported = fmt.Errorf("polling connections: %w", errors.ErrUnsupported)

// New fails with errors.ErrUnsupported.
func New(Options) (*Client, error) { return nil, errUnsupported }

// Do is never called.
func (*Client) Do(context.Context, Request) {}

// Close does nothing.
func (*Client) Close() error { return nil }

// Driver does not exist here either.
type Driver struct{}

// Drive fails with errors.ErrUnsupported.
func (*Client) Drive() (*Driver, error) { return nil, errUnsupported }

// Wait is never called.
func (*Driver) Wait(time.Time) {}

// Wake is never called.
func (*Driver) Wake() {}

// Close is never called.
func (*Driver) Close() {}
