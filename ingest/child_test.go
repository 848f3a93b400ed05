package ingest_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"tailgate/internal/testshared"
)

// child is a process of this test binary that runs the test of the caller with one more environment variable.
func child(t *testing.T, env string) *exec.Cmd {
	name, _, _ := strings.Cut(t.Name(), "/")
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+name+"$")
	cmd.Env = append(testshared.DefaultGC(), env)
	return cmd
}
