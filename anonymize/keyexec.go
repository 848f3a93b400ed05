package anonymize

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"tailgate/internal/fault"
)

// Exit codes of a key command that mean something; docs/keys.md tells the protocol.
const (
	execNoKey     = 3 // get, destroy: there is no such key
	execTaken     = 4 // new: the name is taken
	execDestroyed = 5 // get: there was such a key, and it was destroyed
)

// Limits of a key command.
const (
	execTimeout   = 30 * time.Second
	execGrace     = 2 * time.Second // for its pipes to close after it was killed
	execKeyBytes  = 256             // on stdout of get
	execListBytes = 1 << 20         // on stdout of list
	execSaid      = 8 << 10         // on stderr
)

// execSource asks a command for keys: `CMD list`, `CMD get NAME`, `CMD new NAME`, `CMD destroy NAME`. A key comes
// on its stdout, never in its arguments or environment.
type execSource struct {
	args    []string // program and its first arguments
	timeout time.Duration
	stderr  io.Writer
}

func newExecSource(command string, o SourceOptions) (*execSource, error) {
	s := &execSource{args: strings.Fields(command), timeout: o.Timeout, stderr: o.Stderr}
	if len(s.args) == 0 {
		return nil, fault.Mark(errors.New("opening the keys: exec: names no command"), fault.Usage, "--keys 'exec:/path/to/command'")
	}
	if s.timeout == 0 {
		s.timeout = execTimeout
	}
	if s.stderr == nil {
		s.stderr = io.Discard
	}
	path, err := exec.LookPath(s.args[0])
	if err != nil {
		return nil, keyFault("name the command by its path", "opening the keys: %w", err)
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, keyFault("", "opening the keys: %w", err)
	}
	if info.Mode().Perm()&0o002 != 0 {
		return nil, keyFault("chmod o-w "+path, "opening the keys: everybody can change the command %s", path)
	}
	return s, nil
}

func (s *execSource) String() string { return execPrefix + s.name() }

func (s *execSource) notice() string { return execNotice }

func (s *execSource) prepare(context.Context) error { return nil }

func (s *execSource) list(ctx context.Context) ([]string, error) {
	out, err := s.run(ctx, execListBytes, nil, "list")
	return strings.Fields(string(out)), err
}

func (s *execSource) create(ctx context.Context, name string) error {
	_, err := s.run(ctx, execListBytes, nil, "new", name)
	return err
}

func (s *execSource) destroy(ctx context.Context, name string) error {
	_, err := s.run(ctx, execListBytes, nil, "destroy", name)
	return err
}

func (s *execSource) get(ctx context.Context, name string, key *[keySize]byte) error {
	out, err := s.run(ctx, execKeyBytes, key, "get", name)
	defer clear(out[:cap(out)])
	if err != nil {
		clear(key[:])
		return err
	}
	const mend = "it must print 32 bytes: as they are, in base64, or as 64 hex digits"
	switch {
	case !parseKey(out, key):
		return keyFault(mend, "reading a key: `%s get %s` printed %d bytes that are no key", s.name(), name, len(out))
	case *key == [keySize]byte{}:
		return keyFault(mend, "reading a key: `%s get %s` printed a key that is all zero", s.name(), name)
	}
	return nil
}

// name is the command as errors call it: without its arguments, which may be secrets of their own.
func (s *execSource) name() string { return filepath.Base(s.args[0]) }

// parseKey reads a key that was printed as it is, in base64 or in hex; one line end may follow the latter two.
func parseKey(out []byte, key *[keySize]byte) bool {
	if len(out) == keySize {
		copy(key[:], out)
		return true
	}
	text := bytes.TrimSuffix(bytes.TrimSuffix(out, []byte("\n")), []byte("\r"))
	var n int
	var err error
	var raw [keySize + 3]byte
	defer clear(raw[:])
	switch len(text) {
	case hex.EncodedLen(keySize):
		n, err = hex.Decode(raw[:], text)
	case base64.StdEncoding.EncodedLen(keySize):
		n, err = base64.StdEncoding.Strict().Decode(raw[:], text)
	}
	if err != nil || n != keySize {
		return false
	}
	copy(key[:], raw[:n])
	return true
}

// run runs one call of the command and returns its stdout of at most limit bytes. What it says on stderr is
// passed on when it has ended, without what it printed on stdout when that was asked for as a key.
func (s *execSource) run(ctx context.Context, limit int, key *[keySize]byte, call ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.timeout, fmt.Errorf("no answer within %v", s.timeout))
	defer cancel()
	cmd := exec.CommandContext(ctx, s.args[0], append(s.args[1:len(s.args):len(s.args)], call...)...)
	stdout, stderr := newCapped(limit), newCapped(execSaid)
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = stdout, stderr, execGrace
	ownGroup(cmd)
	err := cmd.Run()
	out := stdout.buf
	said := stderr.buf
	defer clear(said)
	if key != nil {
		parseKey(out, key)
		said = redact(said, out, key[:])
		if stderr.over { // the cut may have left half a key, which nothing tells from other text
			said = said[:max(0, len(said)-execKeyBytes)]
		}
	}
	s.pass(said)
	what := fmt.Sprintf("asking for keys: `%s %s`", s.name(), strings.Join(call, " "))
	var ended *exec.ExitError
	switch {
	case ctx.Err() != nil:
		err = keyFault("run it by hand, or look what it waits for", "%s: %w", what, context.Cause(ctx))
	case stdout.over:
		err = keyFault("docs/keys.md tells what it must print", "%s printed more than %d bytes", what, limit)
	case errors.As(err, &ended):
		err = s.ended(what, call[0], ended.ExitCode(), ended)
	case err != nil:
		err = keyFault("", "%s: %w", what, err)
	}
	return out, err
}

// ended says what an exit code means.
func (s *execSource) ended(what, verb string, code int, err error) error {
	switch {
	case code == execNoKey && verb != "new":
		return keyFault("`tailgate keys list` prints the epochs", "%s: no such key: %w", what, fs.ErrNotExist)
	case code == execTaken && verb == "new":
		return keyFault("", "%s: the name is taken: %w", what, fs.ErrExist)
	case code == execDestroyed && verb == "get":
		return keyFault("", "%s: %w", what, ErrDestroyed)
	}
	return keyFault("what it said on stderr stands above; run it by hand", "%s: %w", what, err)
}

// pass hands on what a command said, line by line.
func (s *execSource) pass(said []byte) {
	for line := range bytes.Lines(said) {
		fmt.Fprintf(s.stderr, "%s: %s\n", s.name(), bytes.TrimRight(line, "\r\n"))
	}
}

// redact takes out of said what was printed as a key, in each form in which it may be written.
func redact(said, printed, key []byte) []byte {
	forms := [][]byte{bytes.TrimSpace(printed), printed, key, []byte(hex.EncodeToString(key)),
		bytes.ToUpper([]byte(hex.EncodeToString(key))), []byte(strings.TrimRight(base64.StdEncoding.EncodeToString(key), "=")),
		[]byte(strings.TrimRight(base64.URLEncoding.EncodeToString(key), "="))}
	for _, form := range forms {
		if len(form) >= 4 {
			said = bytes.ReplaceAll(said, form, []byte("[key]"))
		}
	}
	return said
}

// capped keeps the first bytes that are written to it. It never grows, so that clearing it clears all of it.
type capped struct {
	buf  []byte
	over bool
}

func newCapped(limit int) *capped { return &capped{buf: make([]byte, 0, limit)} }

func (c *capped) Write(p []byte) (int, error) {
	room := min(len(p), cap(c.buf)-len(c.buf))
	c.buf = append(c.buf, p[:room]...)
	c.over = c.over || room < len(p)
	return len(p), nil
}
