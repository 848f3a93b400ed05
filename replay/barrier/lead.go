package barrier

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"tailgate/internal/fault"
	"tailgate/schemas"
)

// leader is shard 0.
type leader struct {
	o        Options
	clock    clock
	listener net.Listener
	all      sync.WaitGroup // of goroutines

	mu      sync.Mutex
	members map[int]*member
	strays  map[*link]bool // connections that have not said who they are
	begun   bool           // nobody looks at the others any more
	err     error          // why there is no start

	ready, armed, gone chan struct{} // closed when all the others are, or when err is set
}

type member struct {
	*link
	ready, armed bool
	errorUs      int64
}

// maxStrays bounds what a scan of the port can take of us.
const maxStrays = 1024

func lead(o Options) (*leader, error) {
	host, port, err := net.SplitHostPort(o.Address)
	if err != nil {
		return nil, fmt.Errorf("listening for the other shards: %w", err)
	}
	if net.ParseIP(host) == nil {
		host = "" // a name: of a service, or one that resolves to several addresses
	}
	l, err := net.Listen("tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, fault.Mark(fmt.Errorf("listening for the other shards: %w", err), fault.Failure,
			"--barrier is the address of shard 0, the same in all shards")
	}
	s := &leader{o: o, clock: newClock(o.ahead), listener: l, members: map[int]*member{}, strays: map[*link]bool{},
		ready: make(chan struct{}), armed: make(chan struct{}), gone: make(chan struct{})}
	if o.Count == 1 {
		close(s.ready)
		close(s.armed)
	}
	s.all.Go(s.accept)
	return s, nil
}

func (s *leader) accept() {
	for {
		c, err := s.listener.Accept()
		if err != nil {
			return // closed
		}
		l := newLink(c)
		s.mu.Lock()
		full := s.err != nil || s.begun || len(s.strays) >= maxStrays
		if !full {
			s.strays[l] = true
		}
		s.mu.Unlock()
		if full {
			l.close()
			continue
		}
		s.all.Go(func() { s.serve(l) })
	}
}

// serve takes one shard in, and listens to it. Whoever does not speak as a shard is dropped and harms nobody.
func (s *leader) serve(l *link) {
	hello, err := l.read(time.Now().Add(silence))
	s.mu.Lock()
	delete(s.strays, l)
	s.mu.Unlock()
	if err != nil || hello.Kind != kindHello {
		l.close()
		return
	}
	if err := s.take(l, &hello); err != nil {
		s.o.logger().Warn("a shard was refused", "shard", hello.Index, "from", l.conn.RemoteAddr().String(), "reason", err.Error())
		_ = l.write(message{Kind: kindFail, Reason: err.Error()})
		l.close()
		return
	}
	s.fail(s.listen(l, hello.Index))
}

// take makes the shard a member, unless it is not of this run.
func (s *leader) take(l *link, hello *message) error {
	switch {
	case hello.Version != version:
		return errors.New("another version of tailgate")
	case hello.Count != s.o.Count || hello.Index < 1 || hello.Index >= s.o.Count:
		return fmt.Errorf("shard %d/%d is none of %d", hello.Index, hello.Count, s.o.Count)
	case hello.Trace != s.o.Trace:
		return errors.New("another trace than that of shard 0")
	case !maps.Equal(hello.Settings, s.o.Settings):
		return fmt.Errorf("other settings than those of shard 0: %s", strings.Join(different(hello.Settings, s.o.Settings), ", "))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.err != nil:
		return s.err
	case s.begun:
		return errors.New("the run has begun")
	case s.members[hello.Index] != nil:
		return fmt.Errorf("shard %d is there twice", hello.Index)
	}
	if err := l.write(message{Kind: kindWelcome, RunID: s.o.RunID}); err != nil {
		return err
	}
	s.members[hello.Index] = &member{link: l}
	return nil
}

// different names what two settings differ in.
func different(a, b map[string]string) []string {
	var names []string
	for name, v := range a {
		if w, ok := b[name]; !ok || v != w {
			names = append(names, "--"+name)
		}
	}
	for name := range b {
		if _, ok := a[name]; !ok {
			names = append(names, "--"+name)
		}
	}
	slices.Sort(names)
	return names
}

// listen answers a member until it ends, and says why it did.
func (s *leader) listen(l *link, index int) error {
	for {
		m, err := l.read(time.Now().Add(silence))
		now := s.clock.now()
		if err != nil {
			return s.left(index, err)
		}
		switch m.Kind {
		case kindPing:
			err = l.write(message{Kind: kindPong, Sent: m.Sent, Clock: now})
		case kindReady, kindArmed:
			s.mark(index, &m)
		case kindFail:
			return fmt.Errorf("shard %d of %d failed: %s", index, s.o.Count, m.Reason)
		}
		if err != nil {
			return s.left(index, err)
		}
	}
}

func (s *leader) left(index int, err error) error {
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return fmt.Errorf("shard %d of %d has been silent for %v", index, s.o.Count, silence)
	}
	return fmt.Errorf("shard %d of %d left before the start", index, s.o.Count)
}

// mark notes how far a member has come.
func (s *leader) mark(index int, m *message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := s.members[index]
	now, was := &of.ready, s.count(func(m *member) bool { return m.ready })
	all, done := func(m *member) bool { return m.ready }, s.ready
	if m.Kind == kindArmed {
		now, was = &of.armed, s.count(func(m *member) bool { return m.armed })
		all, done = func(m *member) bool { return m.armed }, s.armed
	} else {
		of.errorUs = m.ErrorUs
	}
	*now = true
	if n := s.count(all); n == s.o.Count-1 && n > was {
		close(done)
	}
}

// count must be called with mu held.
func (s *leader) count(is func(*member) bool) int {
	n := 0
	for _, m := range s.members {
		if is(m) {
			n++
		}
	}
	return n
}

// fail tells all members that there is no start, once, unless it has begun.
func (s *leader) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil || s.begun {
		return
	}
	s.err = err
	close(s.gone)
	var told sync.WaitGroup
	for _, m := range s.members {
		told.Go(func() {
			_ = m.write(message{Kind: kindFail, Reason: err.Error()})
			m.close()
		})
	}
	told.Wait()
}

func (s *leader) start(ctx context.Context) (*Start, error) {
	if err := s.await(ctx, s.ready); err != nil {
		return nil, s.late(err)
	}
	s.mu.Lock()
	lead := minLead
	for _, m := range s.members {
		lead = max(lead, 20*time.Duration(m.errorUs)*time.Microsecond)
	}
	second := time.Second.Nanoseconds()
	at := (s.clock.now() + lead.Nanoseconds() + second - 1) / second * second // a whole one
	for _, m := range s.members {
		_ = m.write(message{Kind: kindStart, Clock: at}) // who does not get it is not armed
	}
	s.mu.Unlock()
	local := s.clock.at(at)
	until, cancel := context.WithDeadlineCause(ctx, local.Add(-letGo), errUnarmed)
	defer cancel()
	err := s.await(until, s.armed)
	if err == nil {
		err = sleepUntil(ctx, local.Add(-letGo), s.gone)
	}
	if err != nil {
		return nil, s.late(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return nil, s.err
	}
	s.begun = true
	return &Start{At: time.Unix(0, at).UTC(), Local: local, Clock: schemas.ClockOffset{Source: schemas.ClockBarrier}}, nil
}

var errUnarmed = errors.New("not all shards took the start in time")

func (s *leader) await(ctx context.Context, what <-chan struct{}) error {
	select {
	case <-what:
		return nil
	case <-s.gone:
		return s.reason()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *leader) reason() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// late adds who is missing, and tells the others.
func (s *leader) late(err error) error {
	s.mu.Lock()
	var absent, unready []string
	for i := 1; i < s.o.Count; i++ {
		switch m := s.members[i]; {
		case m == nil:
			absent = append(absent, strconv.Itoa(i))
		case !m.ready:
			unready = append(unready, strconv.Itoa(i))
		}
	}
	known := s.err != nil
	s.mu.Unlock()
	if known {
		return s.reason()
	}
	if errors.Is(err, context.Canceled) {
		s.fail(errors.New("shard 0 was interrupted"))
		return err
	}
	if len(absent) > 0 {
		err = fmt.Errorf("%w; shards that did not come: %s", err, strings.Join(absent, ", "))
	}
	if len(unready) > 0 {
		err = fmt.Errorf("%w; shards that are not ready: %s", err, strings.Join(unready, ", "))
	}
	s.fail(err)
	return err
}

func (s *leader) close() {
	s.fail(errors.New("shard 0 left before the start"))
	_ = s.listener.Close()
	s.mu.Lock()
	for _, m := range s.members {
		m.close()
	}
	for l := range s.strays {
		l.close()
	}
	s.mu.Unlock()
	s.all.Wait()
}
