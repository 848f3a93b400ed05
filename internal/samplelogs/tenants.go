package samplelogs

import (
	"encoding/json"
	"math/rand/v2"
	"strconv"

	"tailgate/internal/rng"
)

// kind of conversation.
type kind int

const (
	short kind = iota // one question, seldom two
	chat              // several turns on a shared system prompt
	long              // questions on a document
	agent             // tool calls, quickly one after another
	kinds
)

// tenant is a customer of the fictional gateway.
type tenant struct {
	name   string
	lang   *language
	topic  string
	model  model
	weight float64        // relative share of requests
	mix    [kinds]float64 // shares of the requests by kind, summing to 1

	// sessionField tells whether the gateway logs the conversation as session_id, and as trace_id otherwise.
	sessionField bool

	system string // of conversations
	brief  string // of short questions
	tools  []tool
	docs   []string
}

// model is what serves a tenant. drift is how many tokens its chat template adds to a quarter of the bytes.
type model struct {
	name  string
	drift int
	tpot  float64 // median seconds per output token
}

type tool struct {
	name, description string
	parameters        string // JSON Schema
}

var (
	larch = model{name: "larch-32b", drift: 3, tpot: 0.016}
	tern  = model{name: "tern-moe", drift: -2, tpot: 0.011}
	wren  = model{name: "wren-8b", drift: 0, tpot: 0.008}
)

// What the prompts of every tenant share.
const (
	greeting = "You are an assistant of the fictional Quaylight platform, which serves fictional harbours. "
	rules    = "Answer in the language of the question. Name the shelf, the entry or the berth that you rely on. " +
		"If you do not know, say so in one sentence. Never invent a timetable. "
)

// newTenants returns the tenants with their texts, which depend on the seed alone.
func newTenants(seed uint64) []*tenant {
	list := []*tenant{
		{name: "quillmere", lang: english, topic: TopicLiteLLM, model: larch, weight: 0.36, mix: [kinds]float64{0.31, 0.44, 0.03, 0.22}, sessionField: true},
		{name: "brackenau", lang: german, topic: TopicOTLP, model: larch, weight: 0.22, mix: [kinds]float64{0.27, 0.32, 0.04, 0.37}},
		{name: "olivara", lang: spanish, topic: TopicLiteLLM, model: wren, weight: 0.15, mix: [kinds]float64{0.46, 0.44, 0.02, 0.08}},
		{name: "verdoisy", lang: french, topic: TopicOTLP, model: tern, weight: 0.11, mix: [kinds]float64{0.36, 0.40, 0.09, 0.15}},
		{name: "mizunagi", lang: japanese, topic: TopicLiteLLM, model: tern, weight: 0.09, mix: [kinds]float64{0.40, 0.50, 0.03, 0.07}},
		{name: "tingyulou", lang: chinese, topic: TopicOTLP, model: wren, weight: 0.07, mix: [kinds]float64{0.37, 0.36, 0.04, 0.23}},
	}
	for _, t := range list {
		r := rng.New(seed, "tenant", t.name)
		t.system = greeting + rules + t.lang.text(r, 500+r.IntN(900))
		t.brief = greeting + "You work for " + t.name + "."
		for range 4 + r.IntN(3) {
			t.tools = append(t.tools, newTool(r, t.lang, len(t.tools)))
		}
		for i := range 4 {
			t.docs = append(t.docs, t.lang.text(r, 4*(8000+i*3500+r.IntN(1500))))
		}
	}
	return list
}

func newTool(r *rand.Rand, l *language, i int) tool {
	name := pick(r, operations) + "_" + pick(r, identifiers) + strconv.Itoa(i)
	type property struct {
		Type        string `json:"type"`
		Description string `json:"description"`
	}
	parameters, err := json.Marshal(struct {
		Type       string              `json:"type"`
		Properties map[string]property `json:"properties"` // encoded in the order of their names
		Required   []string            `json:"required"`
	}{"object", map[string]property{
		"query": {"string", l.text(r, 60)}, "limit": {"integer", l.text(r, 40)}, pick(r, identifiers) + "_no": {"integer", l.text(r, 40)},
	}, []string{"query"}})
	if err != nil {
		panic("samplelogs: " + err.Error()) // strings always encode
	}
	return tool{name: name, description: l.text(r, 150), parameters: string(parameters)}
}
