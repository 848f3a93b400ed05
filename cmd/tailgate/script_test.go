package main

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

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
	var sims simulators
	testscript.Run(t, testscript.Params{
		Files: scripts(t),
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exit":      exit,
			"startsim":  sims.start,
			"stopsim":   sims.stop,
			"tear":      tear,
			"steady":    steady,
			"interrupt": interrupt,
			"soon":      soon,
			"shards":    shards,

			"freeport": freeport,

			"startkafka":   startkafka,
			"produce":      produce,
			"starts3":      starts3,
			"s3put":        s3put,
			"startgateway": startgateway,
		},
		Setup: func(env *testscript.Env) error {
			env.Setenv("SHARED", sharedDir())
			env.Setenv("GOGC", os.Getenv("GOGC"))
			toy, err := filepath.Abs(filepath.Join("..", "..", "deploy", "keys", "toy"))
			if err != nil {
				return err
			}
			env.Setenv("TOYKEYS", toy)
			tokenizers, err := filepath.Abs("../../internal/bpe/testdata/hf")
			env.Setenv("TOKENIZERS", tokenizers)
			return err
		},
		Condition: func(cond string) (bool, error) {
			if cond == "shared" {
				return sharedDir() != "", nil
			}
			return false, fmt.Errorf("unknown condition %q", cond)
		},
	})
}

// talking is what scripts do that have the commands themselves do several things at once.
var talking = regexp.MustCompile(`(?m)^(startsim|startkafka|starts3|interrupt|shards)\b|--metrics`)

// scripts lists the scripts of a run. Under the race detector those are left out whose commands only read and write
// files or run in virtual time: what is concurrent in them are the libraries, which have races of their own.
func scripts(t *testing.T) []string {
	t.Helper()
	all, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil || len(all) == 0 {
		t.Fatalf("%d scripts, %v", len(all), err)
	}
	if !testshared.UnderRace {
		return all
	}
	return slices.DeleteFunc(all, func(path string) bool {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return !talking.Match(text)
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

// simulators are the servers that scripts have started, by their address.
type simulators struct{ byURL sync.Map }

// start NAME [args…]: starts `tailgate sim` on a free port until the script ends; $NAME is its URL, $NAME_ADDR its
// host and port.
func (s *simulators) start(ts *testscript.TestScript, neg bool, args []string) {
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
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	ts.Check(err)
	url, ok := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
	if !ok {
		ts.Fatalf("sim said %q", line)
	}
	s.byURL.Store(url, cmd)
	ts.Setenv(args[0], url)
	ts.Setenv(args[0]+"_ADDR", strings.TrimPrefix(url, "http://"))
}

// stop NAME: sends SIGTERM to the server behind $NAME, which must end with 0.
func (s *simulators) stop(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: stopsim NAME")
	}
	cmd, ok := s.byURL.Load(ts.Getenv(args[0]))
	if !ok {
		ts.Fatalf("%s is no server of this script", args[0])
	}
	ts.Check(cmd.(*exec.Cmd).Process.Signal(syscall.SIGTERM))
	if err := cmd.(*exec.Cmd).Wait(); err != nil {
		ts.Fatalf("sim ended with %v", err)
	}
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

// steady FILE N: writes a trace of N requests, one every 400 ms, the eighth of which holds nearly all tokens.
func steady(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: steady FILE N")
	}
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	var b strings.Builder
	for i := range n {
		input := 100
		if i == 7 {
			input = 1_000_000_000
		}
		fmt.Fprintf(&b, "{\"timestamp\":%d,\"input_length\":%d,\"output_length\":5}\n", i*400, input)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(b.String()), 0o644))
}

// interrupt CODE FILE cmd…: starts the command, sends SIGINT once FILE (a pattern) exists, and expects it to end with CODE.
func interrupt(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: interrupt CODE FILE cmd [args…]")
	}
	exe, err := exec.LookPath(args[2])
	ts.Check(err)
	cmd := exec.Command(exe, args[3:]...)
	cmd.Dir = ts.Getenv("WORK")
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	ts.Check(cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	giveUp := time.After(time.Minute)
	for look := time.NewTicker(10 * time.Millisecond); ; {
		select {
		case <-ended:
			ts.Fatalf("ended before it was interrupted:\n%s", &out)
		case <-giveUp:
			ts.Check(cmd.Process.Kill())
			ts.Fatalf("%s did not appear:\n%s", args[1], &out)
		case <-look.C:
		}
		if found, err := filepath.Glob(ts.MkAbs(args[1])); err == nil && len(found) > 0 {
			look.Stop()
			break
		}
	}
	ts.Check(cmd.Process.Signal(os.Interrupt))
	<-ended
	ts.Logf("%s", &out)
	if got := strconv.Itoa(cmd.ProcessState.ExitCode()); got != args[0] {
		ts.Fatalf("exit code %s, want %s", got, args[0])
	}
}

// soon NAME D: sets $NAME to the time in D, as RFC 3339.
func soon(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: soon NAME D")
	}
	d, err := time.ParseDuration(args[1])
	ts.Check(err)
	ts.Setenv(args[0], time.Now().Add(d).UTC().Format(time.RFC3339Nano))
}

// shards N cmd…: runs the command N times at once, each with its --shard i/N. Each must end with 0, or with 4 as a run
// over real sockets on a busy machine may.
func shards(ts *testscript.TestScript, neg bool, args []string) {
	n, err := strconv.Atoi(args[0])
	if neg || err != nil || len(args) < 2 {
		ts.Fatalf("usage: shards N cmd [args…]")
	}
	exe, err := exec.LookPath(args[1])
	ts.Check(err)
	outputs, errs := make([][]byte, n), make([]error, n)
	var group sync.WaitGroup
	for i := range n {
		cmd := exec.Command(exe, append(args[2:len(args):len(args)], "--shard", fmt.Sprintf("%d/%d", i, n))...)
		cmd.Dir = ts.MkAbs(".")
		group.Go(func() { outputs[i], errs[i] = cmd.CombinedOutput() })
	}
	group.Wait()
	for i, err := range errs {
		var failed *exec.ExitError
		if invalid := errors.As(err, &failed) && failed.ExitCode() == 4; err != nil && !invalid {
			ts.Fatalf("shard %d: %v\n%s", i, err, outputs[i])
		}
	}
}
