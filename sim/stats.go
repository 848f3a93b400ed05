package sim

import (
	"time"

	"tailgate/schemas"
)

// ReplicaStats are the gauges and counters of one replica.
type ReplicaStats struct {
	Running int     // requests admitted
	Waiting int     // requests queued, preempted ones included
	KVUsage float64 // share of KV pages that requests hold; cached blocks that none holds are free

	Steps int64         // steps begun; of the fixed-service engine, tokens
	Busy  time.Duration // summed length of the steps begun; of the fixed-service engine, summed service given

	PromptTokens     int64 // of the prompts computed, cached tokens included
	GenerationTokens int64
	PrefixQueries    int64 // prompt tokens looked up, once per request
	PrefixHits       int64 // of these, found
	Preemptions      int64

	FinishedLength, FinishedError, FinishedAborted int64 // requests ended, by finish reason
}

// counts is the cumulative part of ReplicaStats.
type counts struct {
	steps, busy                    int64
	promptTokens, generationTokens int64
	prefixQueries, prefixHits      int64
	preemptions                    int64
	length, failed, aborted        int64
}

func (n *counts) ended(status string) {
	if status == schemas.ResultOK {
		n.length++
	} else {
		n.failed++
	}
}

func (n *counts) stats() ReplicaStats {
	return ReplicaStats{
		Steps: n.steps, Busy: time.Duration(n.busy),
		PromptTokens: n.promptTokens, GenerationTokens: n.generationTokens,
		PrefixQueries: n.prefixQueries, PrefixHits: n.prefixHits, Preemptions: n.preemptions,
		FinishedLength: n.length, FinishedError: n.failed, FinishedAborted: n.aborted,
	}
}
