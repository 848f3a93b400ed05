package smallfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"tailgate/internal/fault"
)

func TestFilesHaveLimits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, []byte("words"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, read := range map[string]func(string) ([]byte, error){"config": Config, "data": Data} {
		if got, err := read(path); string(got) != "words" || err != nil {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		if _, err := read(path + "none"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := os.Truncate(path, maxData); err != nil {
		t.Fatal(err)
	}
	if got, err := Data(path); len(got) != maxData || err != nil {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if err := os.Truncate(path, maxData+1); err != nil {
		t.Fatal(err)
	}
	if got, err := Data(path); got != nil || fault.Of(err) != fault.Data {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if got, err := Config(path); len(got) != maxConfig+1 || err != nil {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}
