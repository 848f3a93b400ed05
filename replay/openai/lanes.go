package openai

import (
	"net/http"
	"sync"
)

// perLane is how many requests share one connection of HTTP/2. Servers allow a hundred or more (RFC 9113 §5.1.2
// recommends no fewer), but net/http learns a server's limit only when its settings have come, and streams over
// it wait where nobody sees them; and one lost packet holds up every stream of its connection.
const perLane = 32

// lanes spread the requests to https targets over transports that have a connection pool each. The first one with
// room is taken, so that connections are reused; none waits for another.
type lanes struct {
	make func() *http.Transport

	mu   sync.Mutex
	list []*lane // guarded by mu
}

type lane struct {
	rt       *http.Transport
	inflight int // guarded by lanes.mu
}

func (l *lanes) take() *lane {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, x := range l.list {
		if x.inflight < perLane {
			x.inflight++
			return x
		}
	}
	x := &lane{rt: l.make(), inflight: 1}
	l.list = append(l.list, x)
	return x
}

func (l *lanes) leave(x *lane) {
	l.mu.Lock()
	defer l.mu.Unlock()
	x.inflight--
}

func (l *lanes) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, x := range l.list {
		x.rt.CloseIdleConnections()
	}
}
