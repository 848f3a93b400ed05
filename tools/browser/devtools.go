package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"
)

type command struct {
	method string
	params map[string]any
}

// browser is a running Chromium.
type browser struct {
	cmd     *exec.Cmd
	in, out *os.File
	pending []byte
	id      int
	dark    bool
	on      func(session, method string, params json.RawMessage) // takes events
	answers map[int]answer
}

type answer struct {
	Result json.RawMessage
	Error  *struct{ Message string }
}

// patience is how long the browser may take for one message.
const patience = 2 * time.Minute

func start(bin, profile string) (*browser, error) {
	toRead, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	out, toWrite, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	b := &browser{in: in, out: out, answers: map[int]answer{}, on: func(string, string, json.RawMessage) {}}
	// No sandbox: CI runs as root, and the pages are our own.
	b.cmd = exec.Command(bin, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-extensions", "--hide-scrollbars",
		"--remote-debugging-pipe", "--user-data-dir="+profile, "about:blank")
	b.cmd.ExtraFiles = []*os.File{toRead, toWrite} // file descriptors 3 and 4
	if err := b.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", bin, err)
	}
	return b, errors.Join(toRead.Close(), toWrite.Close())
}

func (b *browser) stop() {
	_ = b.call("", "Browser.close", nil, nil)
	_ = b.in.Close()
	done := make(chan struct{})
	go func() { _ = b.cmd.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		_ = b.cmd.Process.Kill()
		<-done
	}
}

// call sends a command and waits for its answer; events come meanwhile.
func (b *browser) call(session, method string, params map[string]any, into any) error {
	b.id++
	id := b.id
	message := map[string]any{"id": id, "method": method}
	if params != nil {
		message["params"] = params
	}
	if session != "" {
		message["sessionId"] = session
	}
	text, err := json.Marshal(message)
	if err != nil {
		return err
	}
	if _, err := b.in.Write(append(text, 0)); err != nil {
		return fmt.Errorf("asking the browser for %s: %w", method, err)
	}
	for {
		if a, ok := b.answers[id]; ok {
			delete(b.answers, id)
			switch {
			case a.Error != nil:
				return fmt.Errorf("%s: %s", method, a.Error.Message)
			case into == nil:
				return nil
			}
			return json.Unmarshal(a.Result, into)
		}
		if err := b.next(); err != nil {
			return fmt.Errorf("waiting for %s: %w", method, err)
		}
	}
}

// next reads one message: an answer, or an event.
func (b *browser) next() error {
	for {
		if at := bytes.IndexByte(b.pending, 0); at >= 0 {
			text := b.pending[:at]
			b.pending = b.pending[at+1:]
			return b.take(text)
		}
		buf := make([]byte, 1<<20)
		if err := b.out.SetReadDeadline(time.Now().Add(patience)); err != nil && !errors.Is(err, os.ErrNoDeadline) {
			return err
		}
		n, err := b.out.Read(buf)
		b.pending = append(b.pending, buf[:n]...)
		if err != nil && n == 0 {
			return fmt.Errorf("the browser has ended or says nothing: %w", err)
		}
	}
}

func (b *browser) take(text []byte) error {
	var m struct {
		ID        int
		Method    string
		Params    json.RawMessage
		SessionID string
		answer
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return fmt.Errorf("reading what the browser says: %w", err)
	}
	if m.ID != 0 {
		b.answers[m.ID] = m.answer
		return nil
	}
	b.on(m.SessionID, m.Method, m.Params)
	return nil
}
