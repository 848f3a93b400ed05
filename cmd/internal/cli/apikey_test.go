package cli

import (
	"os"
	"path/filepath"
	"testing"
)

func TestAPIKeyOfTheEnvironmentOrAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, []byte("from-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		env  map[string]string
		want string
		bad  bool
	}{
		"none":           {nil, "", false},
		"set":            {map[string]string{envKey: "k"}, "k", false},
		"file":           {map[string]string{envKey + "_FILE": path}, "from-file", false},
		"set and file":   {map[string]string{envKey: "k", envKey + "_FILE": path}, "k", false},
		"set to none":    {map[string]string{envKey: "", envKey + "_FILE": path}, "from-file", false},
		"file not there": {map[string]string{envKey + "_FILE": path + "x"}, "", true},
	} {
		a := &app{getenv: func(name string) (string, bool) { v, ok := c.env[name]; return v, ok }}
		if got, err := a.apiKey(); got != c.want || (err != nil) != c.bad {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}
