package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"tailgate/cmd/internal/cli"
)

const envHide = "TAILGATE_TEST_HIDE"

// TestTextIsHidden runs every command that has text or keys in memory in a process of its own and looks at the
// process afterwards: no core dump, and nobody may look into it.
func TestTextIsHidden(t *testing.T) {
	if line := os.Getenv(envHide); line != "" {
		cli.Main(strings.Split(line, "\n"))
		limits, err := os.ReadFile("/proc/self/limits")
		if err != nil {
			t.Fatal(err)
		}
		dumpable, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		for row := range strings.Lines(string(limits)) {
			if strings.HasPrefix(row, "Max core file size") {
				if f := strings.Fields(row); f[4] != "0" || f[5] != "0" {
					t.Errorf("%s", row)
				}
			}
		}
		if dumpable != 0 {
			t.Errorf("dumpable: %d", dumpable)
		}
		return
	}
	dir := t.TempDir()
	logs := filepath.Join(dir, "logs.jsonl")
	if err := os.WriteFile(logs, []byte("{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	keys, lake := filepath.Join(dir, "keys"), filepath.Join(dir, "lake")
	for _, args := range [][]string{
		{"keys", "init", "--keys", keys}, {"keys", "list", "--keys", keys}, {"keys", "new-epoch", "--keys", keys},
		{"keys", "destroy", "b-20260102T030405.000000Z", "--keys", keys},
		{"inspect", logs, "--format", "litellm"},
		{"ingest", logs, "--format", "litellm", "--out", lake, "--keys", keys, "--max-bad", "100%", "--min-free", "1KiB"},
		{"reprocess", logs, "--format", "litellm", "--out", lake, "--keys", keys},
		{"publish", lake, "--day", "2026-11-28", "--keys", keys},
		{"audit", lake},
	} {
		t.Run(strings.Join(args[:2], " "), func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestTextIsHidden$", "-test.v")
			cmd.Env = append(os.Environ(), envHide+"="+strings.Join(args, "\n"))
			out, err := cmd.CombinedOutput()
			if err != nil || !bytes.Contains(out, []byte("PASS: TestTextIsHidden")) {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
