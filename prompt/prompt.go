// Package prompt is the decoded prompt in memory: messages, tools and parts as a gateway logged them.
// It has no codec on purpose: prompt text is never written anywhere. Texts are byte slices so that their
// owner can clear them after hashing.
package prompt

import "tailgate/schemas"

// Kinds of part.
const (
	Text  = "text"
	Image = "image"
	Audio = "audio"
	File  = "file"
	Other = "other"
)

// Prompt is what the model was asked, with the scope that decides which caches it can share.
type Prompt struct {
	Messages []Message
	Tools    []Tool
	// State is one of the schemas.Prompt… constants. Blocks from Intact on may not be shared: the text after
	// that message was cut, redacted or replaced.
	State string
	// Intact counts the leading messages that are whole; len(Messages) when State is full.
	Intact int

	// Scope of sharing: two prompts share blocks only when these are equal.
	Model     string
	Adapter   string
	CacheSalt string
	Tenant    string // "" unless the scope is per tenant
}

// Message is one turn of the conversation. Role is "" for a plain completion prompt.
type Message struct {
	Role       string
	Name       string
	Parts      []Part
	ToolCalls  []ToolCall
	ToolCallID string
}

// Part is a piece of a message. Text is empty for media whose bytes were not logged.
type Part struct {
	Kind string
	Text []byte
}

// ToolCall is a call that the assistant made.
type ToolCall struct {
	ID        string
	Name      string
	Arguments []byte // JSON
}

// Tool is a tool definition offered to the model.
type Tool struct {
	Name        string
	Description []byte
	Parameters  []byte // JSON Schema
}

// Full tells whether the whole prompt may be hashed.
func (p *Prompt) Full() bool { return p.State == schemas.PromptFull }

// Clear zeroes every text that the prompt holds and empties it for reuse.
func (p *Prompt) Clear() {
	for i := range p.Messages {
		m := &p.Messages[i]
		for j := range m.Parts {
			clear(m.Parts[j].Text)
		}
		for j := range m.ToolCalls {
			clear(m.ToolCalls[j].Arguments)
		}
	}
	for i := range p.Tools {
		clear(p.Tools[i].Description)
		clear(p.Tools[i].Parameters)
	}
	clear(p.Messages)
	clear(p.Tools)
	*p = Prompt{Messages: p.Messages[:0], Tools: p.Tools[:0]}
}
