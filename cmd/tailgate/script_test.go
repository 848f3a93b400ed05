package main

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"tailgate/cmd/internal/cli"
	"tailgate/internal/testshared"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"tailgate": main,
		"replay":   func() { os.Exit(cli.Main(append([]string{"replay"}, os.Args[1:]...))) },
	})
}

// TestScripts runs every command as a user would; each script is one subject.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exit":     exit,
			"startsim": startSim,
			"tear":     tear,
		},
		Setup: func(env *testscript.Env) error {
			env.Setenv("SHARED", sharedDir())
			return nil
		},
		Condition: func(cond string) (bool, error) {
			if cond == "shared" {
				return sharedDir() != "", nil
			}
			return false, fmt.Errorf("unknown condition %q", cond)
		},
	})
}

// sharedDir is the folder of public traces beside the checkout, "" when there is none.
func sharedDir() string { return testshared.Dir() }

// exit CODES cmd…: the command must end with one of these codes (0, or 0|4). A run over real sockets on a busy
// machine may be invalid (4), whatever else it shows.
func exit(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exit N[|N…] cmd [args…]")
	}
	err := ts.Exec(args[1], args[2:]...)
	got := 0
	var failed *exec.ExitError
	switch {
	case errors.As(err, &failed):
		got = failed.ExitCode()
	case err != nil:
		ts.Check(err)
	}
	if !slices.Contains(strings.Split(args[0], "|"), strconv.Itoa(got)) {
		ts.Fatalf("exit code %d, want %s", got, args[0])
	}
}

// startsim NAME [args…]: starts `tailgate sim` on a free port until the script ends and sets $NAME to its address.
func startSim(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: startsim NAME [args…]")
	}
	exe, err := exec.LookPath("tailgate")
	ts.Check(err)
	cmd := exec.Command(exe, append([]string{"sim", "--listen", "127.0.0.1:0"}, args[1:]...)...)
	out, err := cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	ts.Defer(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	ts.Check(err)
	url, ok := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
	if !ok {
		ts.Fatalf("sim said %q", line)
	}
	ts.Setenv(args[0], url)
}

// tear DIR: cuts the last Parquet file under DIR in half, as a crash of a machine would.
func tear(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: tear DIR")
	}
	last := ""
	ts.Check(filepath.WalkDir(ts.MkAbs(args[0]), func(path string, d fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".parquet") {
			last = path
		}
		return err
	}))
	info, err := os.Stat(last)
	ts.Check(err)
	ts.Check(os.Truncate(last, info.Size()/2))
}
