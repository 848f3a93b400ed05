// Package openai sends replayed requests to an OpenAI-compatible server over HTTP: the only HTTP client of
// tailgate.
//
// It is no benchmark client with retries, pools or rate limits: a request is tried once, a connection is made
// whenever none is idle, and redirects are failures. When to send is not its business (replay).
//
// In: replay.Call (the row to send). Out: its replay.Outcome, with stamps taken as bytes arrive.
//
// Layers: options, fields and template say what is asked for; dialect knows what engines take, probe, learn and
// measure find out what this one does; body and conversation write requests. sse.go frames events by the HTML
// specification; chunk.go and responses.go read the facts of one event, by a strict scan where the event is an
// ordinary one and by encoding/json (decode.go) otherwise; stream.go and whole.go apply the definitions of
// tailgate/1 to them. client.go does the HTTP, over transport, lanes and targets.
package openai
