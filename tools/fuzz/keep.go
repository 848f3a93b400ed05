package main

import (
	"context"
	"errors"
	"io"
)

func keepInputs(ctx context.Context, o *options, n int, w io.Writer) error { return errors.New("todo") }
