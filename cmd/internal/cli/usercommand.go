package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"
)

// commandTimeout bounds a user's command.
const commandTimeout = 5 * time.Minute

// userCommand runs a command of a plan or a flag with a shell, for at most commandTimeout. What it leaves running in the
// background is not waited for. An error has what the command printed.
func userCommand(ctx context.Context, what, command string, env ...string) error {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", command)
	cmd.Env = append(os.Environ(), env...)
	cmd.WaitDelay = time.Second // what runs in the background may hold the pipe
	out, err := cmd.CombinedOutput()
	if err != nil && !errors.Is(err, exec.ErrWaitDelay) {
		return fmt.Errorf("%s (%s): %w: %s", what, command, err, bytes.TrimSpace(out))
	}
	return nil
}
