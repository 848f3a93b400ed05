package schemas

import "time"

// FileDigest names a file of a folder and pins its bytes.
type FileDigest struct {
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
	Rows   int64  `json:"rows,omitempty"`
}

// Manifest is manifest.json of a folder that tailgate wrote: written last and by rename, so that a folder
// without it is unfinished.
type Manifest struct {
	Kind       string            `json:"kind"` // run, lake_day, profile, trace
	Definition string            `json:"definition"`
	Tool       string            `json:"tool_version"`
	RunID      string            `json:"run_id,omitempty"`
	Seed       uint64            `json:"seed"`
	StartedAt  time.Time         `json:"started_at"`
	EndedAt    time.Time         `json:"ended_at"`
	Clock      string            `json:"clock,omitempty"` // real | virtual
	Settings   map[string]any    `json:"settings"`        // effective, after flags, environment and files
	Labels     map[string]string `json:"labels,omitempty"`
	Target     map[string]any    `json:"target,omitempty"` // what the target tells of itself
	Inputs     []FileDigest      `json:"inputs,omitempty"`
	Files      []FileDigest      `json:"files"`
	Epoch      string            `json:"epoch,omitempty"`
	ExpiresAt  *time.Time        `json:"expires_at,omitempty"`
	// Run is what validity is judged on; null for other folders.
	Run *RunFacts `json:"run,omitempty"`
	// Invariants are values measured before and after a rescale.
	Invariants []Invariant `json:"invariants,omitempty"`
	Notes      []string    `json:"notes,omitempty"`
}

// RunFacts are the facts of a run that its validity is judged on.
type RunFacts struct {
	Scheduled  int64 `json:"scheduled"`
	Sent       int64 `json:"sent"`
	DurationUs int64 `json:"duration_us"` // length of the schedule, the last arrival's minute included
	WarmupUs   int64 `json:"warmup_us"`
	CooldownUs int64 `json:"cooldown_us,omitempty"` // last part of the schedule, phase drain
	// TraceStartedAt is the wall time in the source at which the schedule's zero lies; null where the trace does not tell it.
	TraceStartedAt *time.Time `json:"trace_started_at,omitempty"`
	// Bursts are declared ones.
	Bursts []BurstSpan `json:"bursts,omitempty"`
	// Shard is i/n where this run sent one part of the plan; "" = all of it.
	Shard string `json:"shard,omitempty"`
	// Clock is what was measured of the client's wall clock at the start; null in virtual time.
	Clock *ClockOffset `json:"clock,omitempty"`
	// Invalid lists the reasons that replay itself found (own CPU, descriptors, in-flight cap, contradictions).
	Invalid []string `json:"invalid"`
	// MaxInflightReached is true when --max-inflight delayed a send.
	MaxInflightReached bool    `json:"max_inflight_reached"`
	CPUMaxShare        float64 `json:"cpu_max_share"` // worst 5 s share of own cores, 0 in virtual time
	// What the client saw of itself in real time; 0 in virtual time and where the system does not tell.
	GCPauseMaxUs   int64 `json:"gc_pause_max_us"`  // longest stop of the program for its garbage collector
	DescriptorsMax int64 `json:"descriptors_max"`  // open file descriptors, sampled
	MemoryMaxBytes int64 `json:"memory_max_bytes"` // largest resident size of the process
	// BacklogMax is the most requests that were due and waited for the cap at once.
	BacklogMax    int64  `json:"backlog_max"`
	OutputMode    string `json:"output_mode"`          // natural | pinned | forced_tokens
	Stopped       string `json:"stopped,omitempty"`    // duration | count | signal | fail_fast | abort | abort_if | recorder
	AbortedBy     string `json:"aborted_by,omitempty"` // the rule of abort_if that stopped the run
	UnknownOutput int64  `json:"unknown_output"`       // rows that were sent with the class median
}

// BurstSpan is a declared burst, since the schedule's zero.
type BurstSpan struct {
	FromUs int64 `json:"from_us"`
	ToUs   int64 `json:"to_us"`
}

// ClockOffset is how far the client's wall clock is ahead of another one. The offset is within the error.
type ClockOffset struct {
	OffsetUs int64  `json:"offset_us"`
	ErrorUs  int64  `json:"error_us"`
	Source   string `json:"source"` // kernel (its own estimate by NTP) | target (the Date of its answers) | barrier (shard 0's clock)
	// Corrected is true where the start was moved by the offset, so that the error alone is how far apart shards began.
	Corrected bool `json:"corrected,omitempty"`
}

// ClockBarrier is the source of an offset that the shards of a run measured among themselves.
const ClockBarrier = "barrier"

// Invariant is one measured law of a rescale.
type Invariant struct {
	Name   string  `json:"name"`
	Before float64 `json:"before"`
	After  float64 `json:"after"`
	Limit  string  `json:"limit"`
	Held   bool    `json:"held"`
	Judged bool    `json:"judged"` // false: reported only ("too small")
}

// EngineEvent is something that happened to one request inside an engine in virtual time.
type EngineEvent struct {
	ID        int64  // as given at submission
	AtNs      int64  // virtual time since the schedule's zero
	Tokens    int32  // output tokens of this event; 0 = none
	Reasoning bool   // the tokens are reasoning
	Done      bool   // the request has ended
	Status    string // Result… constant, set when Done
	HTTP      int32  // HTTP status that a server would answer, set when Done
	// Usage and server-side times, set when Done.
	InputTokens, OutputTokens, CachedTokens int32
	ReasoningTokens                         int32 // inside OutputTokens
	QueueNs, PrefillNs                      int64
	Target                                  int32 // replica
}
