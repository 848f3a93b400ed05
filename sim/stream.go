package sim

import (
	"sync"

	"tailgate/schemas"
)

// stream carries one request's events from the cluster to its handler. The handler reads only how far the
// request has come, so a slow reader holds up nobody.
type stream struct {
	r     *request
	quiet bool
	wake  chan struct{}
	last  int64 // time of the last token; the server's mutex guards it

	mu    sync.Mutex
	state progress
}

// progress is how far a request has come.
type progress struct {
	tokens int32
	at     int64 // ns of the last event
	done   bool
	end    schemas.EngineEvent // set when done
}

func (st *stream) push(ev *schemas.EngineEvent) {
	st.mu.Lock()
	st.state.tokens += ev.Tokens
	st.state.at = ev.AtNs
	if ev.Done {
		st.state.done, st.state.end = true, *ev
	}
	st.mu.Unlock()
	if st.quiet && !ev.Done {
		return
	}
	select {
	case st.wake <- struct{}{}:
	default:
	}
}

func (st *stream) progress() progress {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.state
}
