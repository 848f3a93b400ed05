package openai

import (
	"fmt"
	"hash/fnv"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"

	"tailgate/internal/rng"
	"tailgate/replay"
	"tailgate/schemas"
)

// target is one base URL, the route below it, and what came of it.
type target struct {
	name string // as given
	base *url.URL
	send *url.URL
	key  uint64 // of the sticky strategy

	request *http.Request // what all requests to it have in common
	wire    *wire         // the same for package epoll; nil = net/http carries them

	inflight, sent, ok, failed, conns atomic.Int64
	proto                             atomic.Int32 // major version of HTTP that it answered with; 0 = no answer yet
}

func newTarget(name, route string) (*target, error) {
	base, err := parseTarget(name)
	if err != nil {
		return nil, err
	}
	h := fnv.New64a()
	h.Write([]byte(name))
	t := &target{name: name, base: base, send: base.JoinPath(route), key: h.Sum64()}
	t.request = &http.Request{
		Method: http.MethodPost, URL: t.send, Host: t.send.Host, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}
	return t, nil
}

// address is the host and port that connections to the target go to.
func (t *target) address() string {
	if t.base.Port() != "" {
		return t.base.Host
	}
	if t.base.Scheme == "https" {
		return t.base.Host + ":443"
	}
	return t.base.Host + ":80"
}

func (t *target) note(o *replay.Outcome) {
	t.inflight.Add(-1)
	if o.Status == schemas.ResultOK {
		t.ok.Add(1)
	} else {
		t.failed.Add(1)
	}
}

// pick chooses the target of a call and counts the call as sent.
func (c *Client) pick(call *replay.Call) *target {
	t := c.targets[0]
	if len(c.targets) > 1 {
		switch {
		case c.opts.Strategy == replay.StrategyLeastInFlight:
			t = c.leastInFlight()
		case c.opts.Strategy == replay.StrategySticky && call.Row.Session != nil:
			t = c.stickyTo(*call.Row.Session)
		default:
			t = c.targets[(c.turn.Add(1)-1)%uint64(len(c.targets))]
		}
	}
	t.sent.Add(1)
	t.inflight.Add(1)
	return t
}

// leastInFlight is the target with the fewest requests in flight, the next one in turn of equals.
func (c *Client) leastInFlight() *target {
	start := c.turn.Add(1) - 1
	n := uint64(len(c.targets))
	best := c.targets[start%n]
	for i := range n - 1 {
		if t := c.targets[(start+1+i)%n]; t.inflight.Load() < best.inflight.Load() {
			best = t
		}
	}
	return best
}

// stickyTo is the target of a session by rendezvous hashing (Thaler and Ravishankar 1998): the same for every
// shard and every run, and a target more or less moves only its own sessions.
func (c *Client) stickyTo(session string) *target {
	h := fnv.New64a()
	h.Write([]byte(session))
	key := h.Sum64()
	best, most := c.targets[0], uint64(0)
	for _, t := range c.targets {
		if w := rng.Hash(key, t.key); w >= most {
			best, most = t, w
		}
	}
	return best
}

// TargetFacts is what came of one target.
type TargetFacts struct {
	URL         string `json:"url"`
	Sent        int64  `json:"sent"`
	OK          int64  `json:"ok"`
	Failed      int64  `json:"failed"`
	Connections int64  `json:"connections"`    // opened over the run
	HTTP        int32  `json:"http,omitempty"` // major version; absent = it never answered
	Transport   string `json:"transport"`      // TransportNetHTTP or TransportEpoll
}

// Facts tells what came of each target so far.
func (c *Client) Facts() []TargetFacts {
	out := make([]TargetFacts, len(c.targets))
	for i, t := range c.targets {
		out[i] = TargetFacts{
			URL: t.name, Sent: t.sent.Load(), OK: t.ok.Load(), Failed: t.failed.Load(), Connections: t.conns.Load(), HTTP: t.proto.Load(),
			Transport: c.transport(t),
		}
	}
	return out
}

// Connections counts those that were opened to all targets so far.
func (c *Client) Connections() int64 {
	sum := int64(0)
	for _, t := range c.targets {
		sum += t.conns.Load()
	}
	return sum
}

// Participation says which of several targets took no part in the run: what makes it invalid (a target that got
// requests and answered none of them well, while others did), and what is worth a note (one that got none).
func (c *Client) Participation() (invalid, notes []string) {
	facts := c.Facts()
	ok := int64(0)
	for _, f := range facts {
		ok += f.OK
	}
	if len(facts) < 2 || ok == 0 {
		return nil, nil
	}
	for _, f := range facts {
		switch {
		case f.Sent == 0:
			notes = append(notes, fmt.Sprintf("target %s got no request: %d targets did the work of %d", f.URL, answered(facts), len(facts)))
		case f.OK == 0:
			invalid = append(invalid, fmt.Sprintf("target %s answered none of its %d requests: not every replica took part", f.URL, f.Sent))
		}
	}
	return invalid, notes
}

func answered(facts []TargetFacts) (n int) {
	for _, f := range facts {
		if f.OK > 0 {
			n++
		}
	}
	return n
}

// connected counts a connection for the targets at its address.
func (c *Client) connected(addr string) {
	for _, t := range c.targets {
		if strings.EqualFold(t.address(), addr) {
			t.conns.Add(1)
			return
		}
	}
}
