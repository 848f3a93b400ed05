// Package sim is the simulated engine: one or several replicas of an LLM server that batch continuously, step
// by step, on a latency model, with a paged KV cache and a prefix cache.
//
// It is not an emulation of any engine's code and holds no model: texts are filler, and a figure from it is
// never a Safe QPS for real hardware. docs/sim.md has the equations, the presets and their stated errors.
//
// In: trace rows ([Cluster], virtual time) or OpenAI requests over HTTP ([Server], real time). Out: one event
// per token and the end of each request, or server-sent events, and counters under vLLM's names.
//
// Invariants. The core has no clock, no goroutine and no randomness besides counter-based draws from
// [Config.Seed]: the same calls give the same events. Both clocks step the same core. A step never computes
// more than MaxBatchedTokens tokens nor holds more than MaxNumSeqs requests, KV pages are conserved, and the
// queue is first come, first served.
package sim
