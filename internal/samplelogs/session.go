package samplelogs

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"time"

	"tailgate/internal/rng"
)

// message is one turn of a conversation.
type message struct {
	role, content string
	image         bool       // a picture comes with it, whose bytes the gateway does not log
	calls         []toolCall // of an assistant; content is empty then
	callID        string     // of a tool's answer
}

type toolCall struct {
	id, name string
	args     string // JSON
}

// bytes is the size of the message in a rendered prompt: its texts and two bytes of markup for each.
func (m *message) bytes() int {
	n := 2 + len(m.role)
	if len(m.calls) == 0 {
		n += 2 + len(m.content)
	}
	for _, c := range m.calls {
		n += 6 + len(c.id) + len(c.name) + len(c.args)
	}
	if m.callID != "" {
		n += 2 + len(m.callID)
	}
	return n
}

// turnChoices are the lengths of conversations in turns, each as likely as the others.
var turnChoices = [kinds][]int{
	short: {1, 1, 1, 2},
	chat:  {2, 2, 3, 3, 4, 4, 5, 6, 8},
	long:  {1, 2, 3},
	agent: {3, 4, 5, 6, 7, 8},
}

// meanTurns is the mean length of conversations of kind k.
func meanTurns(k kind) float64 {
	sum := 0
	for _, n := range turnChoices[k] {
		sum += n
	}
	return float64(sum) / float64(len(turnChoices[k]))
}

// session is one conversation under way.
type session struct {
	t        *tenant
	kind     kind
	r        *rand.Rand
	id, user string
	turns    int // it will have, if nothing fails
	turn     int // from 0
	messages []message
	size     int // bytes of the rendered prompt
	warm     int // leading bytes of it that the engine's prefix cache may hold
}

// newSession starts conversation number n with its first prompt.
func newSession(seed uint64, n int, t *tenant, k kind) *session {
	r := rng.New(seed, "session", strconv.Itoa(n))
	s := &session{t: t, kind: k, r: r, id: uuid(r), user: fmt.Sprintf("user-%03d", r.IntN(400))}
	s.turns = turnChoices[k][r.IntN(len(turnChoices[k]))]
	if k == short {
		s.add(message{role: "system", content: t.brief})
	} else {
		s.add(message{role: "system", content: t.system})
	}
	for _, tool := range s.tools() {
		s.size += 6 + len(tool.name) + len(tool.description) + len(tool.parameters)
	}
	s.warm = s.size
	first := message{role: "user", content: t.lang.ask(r, s.questionBytes()), image: k == chat && r.IntN(60) == 0}
	if k == long {
		doc := t.docs[r.IntN(len(t.docs))]
		s.warm += len(doc)
		first.content = doc + "\n\n" + first.content
	}
	s.add(first)
	return s
}

func (s *session) tools() []tool {
	if s.kind == agent {
		return s.t.tools
	}
	return nil
}

func (s *session) add(m message) {
	s.messages = append(s.messages, m)
	s.size += m.bytes()
}

func (s *session) questionBytes() int {
	return int(lognormal(s.r, [kinds]float64{short: 350, chat: 260, long: 200, agent: 240}[s.kind], 0.8, 40, 6000))
}

// answer draws what the model says to the prompt as it stands.
func (s *session) answer() message {
	if s.kind == agent && s.turn < s.turns-1 {
		t := s.t.tools[s.r.IntN(len(s.t.tools))]
		args, err := json.Marshal(map[string]any{"query": s.t.lang.text(s.r, 60+s.r.IntN(120)), "limit": 1 + s.r.IntN(50)})
		if err != nil {
			panic("samplelogs: " + err.Error()) // strings and numbers always encode
		}
		return message{role: "assistant", calls: []toolCall{{id: "call_" + hexID(s.r, 12), name: t.name, args: string(args)}}}
	}
	tokens := lognormal(s.r, [kinds]float64{short: 110, chat: 170, long: 200, agent: 180}[s.kind], 0.7, 4, 1500)
	return message{role: "assistant", content: s.t.lang.text(s.r, int(4*tokens)-60)}
}

// advance takes the answer into the history and adds what is asked next: a tool's result or a new question.
func (s *session) advance(answer message) {
	s.add(answer)
	s.warm = s.size
	s.turn++
	if len(answer.calls) > 0 {
		s.add(message{role: "tool", callID: answer.calls[0].id, content: s.toolResult()})
		return
	}
	s.add(message{role: "user", content: s.t.lang.ask(s.r, s.questionBytes())})
}

// toolResult is a JSON object, a piece of code, or prose.
func (s *session) toolResult() string {
	size := int(lognormal(s.r, 900, 0.8, 80, 8000))
	switch s.r.IntN(3) {
	case 0:
		type row struct {
			No    int    `json:"no"`
			Title string `json:"title"`
			Score string `json:"score"`
		}
		var rows []row
		for n := 0; n < size; n += 110 {
			rows = append(rows, row{s.r.IntN(1e6), s.t.lang.text(s.r, 40), strconv.Itoa(s.r.IntN(100)) + " %"})
		}
		out, err := json.Marshal(rows)
		if err != nil {
			panic("samplelogs: " + err.Error()) // strings and numbers always encode
		}
		return string(out)
	case 1:
		b := ""
		for len(b) < size {
			b += snippet(s.r) + "\n"
		}
		return b
	}
	return s.t.lang.text(s.r, size)
}

// think draws the pause before the next turn: a person's, or a tool's work.
func (s *session) think() time.Duration {
	if s.kind == agent {
		return seconds(lognormal(s.r, 0.8, 0.7, 0.05, 8))
	}
	return seconds(lognormal(s.r, [kinds]float64{short: 15, chat: 18, long: 30}[s.kind], 0.9, 2, 300))
}

// lognormal draws with the given median and sigma of the logarithm, kept inside [lo, hi].
func lognormal(r *rand.Rand, median, sigma, lo, hi float64) float64 {
	return min(max(median*math.Exp(sigma*r.NormFloat64()), lo), hi)
}

// seconds rounds to the microsecond, which is what gateways log.
func seconds(s float64) time.Duration { return time.Duration(s*1e6) * time.Microsecond }

func hexID(r *rand.Rand, bytes int) string {
	b := make([]byte, bytes)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return hex.EncodeToString(b)
}

func uuid(r *rand.Rand) string {
	h := hexID(r, 16)
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}
