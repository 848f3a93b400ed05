// Package smallfile reads files that are small when they are what they should be, so that one that is not takes no more
// memory than its limit. Errors are those of os.ReadFile.
package smallfile

import (
	"fmt"
	"io"
	"os"

	"tailgate/internal/fault"
)

const (
	maxConfig = 8 << 20
	maxData   = 64 << 20
)

// Config reads a file of settings. Of one beyond 8 MiB it gives so much and a byte: more than any reader of settings takes.
func Config(path string) ([]byte, error) { return head(path, maxConfig+1) }

// Data reads a file that a stage has written whole, such as a manifest. One beyond 64 MiB is an error of kind fault.Data.
func Data(path string) ([]byte, error) {
	data, err := head(path, maxData+1)
	if len(data) > maxData {
		return nil, fault.Mark(fmt.Errorf("%s is larger than %d MiB", path, maxData>>20), fault.Data, "")
	}
	return data, err
}

func head(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, most))
}
