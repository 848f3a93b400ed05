//go:build unix

package cli

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

const envInterrupts = "TAILGATE_TEST_INTERRUPTS"

// The first ^C cancels, the second aborts, and the third ends a process that hangs all the same.
func TestThirdInterruptEndsTheProcess(t *testing.T) {
	if os.Getenv(envInterrupts) != "" {
		ctx, abort, _ := interrupts()
		fmt.Println("ready")
		<-ctx.Done()
		fmt.Println("cancelled")
		<-abort
		fmt.Println("aborted")
		select {} // hangs
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), envInterrupts+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said := bufio.NewScanner(out)
	for _, want := range []string{"ready", "cancelled", "aborted"} {
		if !said.Scan() || said.Text() != want {
			t.Fatalf("%q, want %q", said.Text(), want)
		}
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
	}
	_ = cmd.Wait()
	if s := cmd.ProcessState.Sys().(syscall.WaitStatus); !s.Signaled() || s.Signal() != syscall.SIGINT {
		t.Errorf("it ended with %v", cmd.ProcessState)
	}
}
