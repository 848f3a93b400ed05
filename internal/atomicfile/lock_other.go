//go:build !unix

package atomicfile

// Lock does nothing where there is no flock(2).
func Lock(string) (unlock func(), err error) { return func() {}, nil }
