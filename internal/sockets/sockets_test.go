//go:build linux && (amd64 || arm64)

package sockets_test

import (
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tailgate/internal/sockets"
)

// connect returns both ends of a connection, ours watched under the number 7.
func connect(t *testing.T, p *sockets.Poller) (fd int, peer net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	fd, err = sockets.Connect(netip.MustParseAddrPort(l.Addr().String()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	if peer, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { peer.Close() })
	if err := errors.Join(sockets.Connected(fd), p.Add(fd, 7)); err != nil {
		t.Fatal(err)
	}
	return fd, peer
}

func poller(t *testing.T) *sockets.Poller {
	t.Helper()
	p, err := sockets.OpenPoller()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

const hour = time.Hour

func TestBellAndClockEndBothWaits(t *testing.T) {
	p := poller(t)
	for name, wait := range map[string]func(){
		"Wait": func() {
			if e := p.Wait(hour); len(e) > 0 {
				t.Errorf("events of connections: %v", e)
			}
		},
		"Rest": func() { p.Rest(hour) },
	} {
		t.Run(name, func(t *testing.T) {
			p.Ring()
			wait() // a test that hangs here has not heard the bell
			p.Wait(0)
			began := time.Now()
			p.SetClock(3 * time.Millisecond)
			for time.Since(began) < 3*time.Millisecond { // a signal may end a wait
				wait()
			}
			p.SetClock(0)
			p.Rest(time.Millisecond)
			p.Wait(time.Microsecond)
		})
	}
}

func TestReadsHaveTheKernelsStamps(t *testing.T) {
	p := poller(t)
	fd, peer := connect(t, p)
	if !sockets.Untouched(fd) || sockets.Readable(fd) {
		t.Error("something came before anything was sent")
	}
	before := time.Now()
	peer.Write([]byte("hello"))
	after := time.Now()
	for !sockets.Readable(fd) {
		for _, e := range p.Wait(hour) {
			if e.Fd != int32(fd) || e.Pad != 7 {
				t.Errorf("event of %d, number %d", e.Fd, e.Pad)
			}
		}
	}
	var r sockets.Receiver
	r.Wake()
	got, full, at, err := r.Receive(fd)
	const apart = time.Millisecond // between the kernel's two clocks, as they are read
	if string(got) != "hello" || full || err != nil || at.Before(before.Add(-apart)) || at.After(after.Add(apart)) || r.Blind {
		t.Errorf("%q, full %v, %v; at %v of [0, %v], blind %v", got, full, err, at.Sub(before), after.Sub(before), r.Blind)
	}
	if _, _, _, err := r.Receive(fd); !errors.Is(err, unix.EAGAIN) {
		t.Errorf("nothing more to read: %v", err)
	}
	peer.Close()
	for sockets.Untouched(fd) {
		p.Wait(hour)
	}
	if got, _, _, err := r.Receive(fd); len(got) > 0 || err != nil {
		t.Errorf("the end: %q, %v", got, err)
	}
}

func TestStamp(t *testing.T) {
	message := func(kind int32, data ...uint64) []byte {
		b := binary.NativeEndian.AppendUint64(nil, uint64(16+8*len(data)))
		b = binary.NativeEndian.AppendUint32(b, unix.SOL_SOCKET)
		b = binary.NativeEndian.AppendUint32(b, uint32(kind))
		for _, d := range data {
			b = binary.NativeEndian.AppendUint64(b, d)
		}
		return b
	}
	good := message(unix.SCM_TIMESTAMPNS, 3, 5)
	for name, c := range map[string]struct {
		oob  []byte
		want int64
	}{
		"good": {good, 3e9 + 5}, "none": {nil, 0}, "another": {message(unix.SCM_RIGHTS, 3, 5), 0}, "cut": {good[:17], 0}, "half a head": {good[:9], 0},
	} {
		if got := sockets.Stamp(c.oob); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

func TestNobodyListens(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	fd, err := sockets.Connect(netip.MustParseAddrPort(l.Addr().String()))
	if err == nil {
		defer unix.Close(fd)
		err = sockets.Connected(fd)
	}
	if !errors.Is(err, unix.ECONNREFUSED) {
		t.Error(err)
	}
}
