package ingest

// Reasons of skipped records: nothing is wrong with them.
const (
	SkipControl       = "control"        // transaction marker
	SkipAborted       = "aborted"        // record of an aborted transaction
	SkipTombstone     = "tombstone"      // null value
	SkipEmpty         = "empty"          // no bytes, or an empty list
	SkipNotGeneration = "not_generation" // a span of a tool, an agent, an embedding, a retrieval or of no model at all
	SkipEngineSpan    = "engine_span"    // the engine's own span of a request that the gateway also logs
	SkipExcluded      = "excluded"       // of a tenant or session that opted out
	SkipForgotten     = "forgotten"      // of a tenant or session that was to be forgotten
	SkipExpired       = "expired"        // of a day that is older than what is kept
	SkipJoined        = "joined"         // a piece of a request whose row is that of another record
	SkipNested        = "nested"         // a generation span inside another one
	SkipOtherDay      = "other_day"      // not of Options.OnlyDay
)

// Reasons of dead letters; DeadReasons lists them.
const (
	DeadTooBig      = "too_big"       // more than Options.MaxRecordBytes
	DeadBomb        = "inflates"      // more than Options.MaxRecordBytes after decompression
	DeadFramed      = "schema_framed" // a schema registry's frame or another binary prefix
	DeadCompressed  = "compressed"    // a value that Options.ValueCodec does not open
	DeadBadJSON     = "bad_json"
	DeadLayout      = "wrong_layout" // JSON, but not of the declared format
	DeadBadField    = "bad_field"    // a field of the wrong type
	DeadMissingTime = "missing_time"
	DeadBadTime     = "implausible_time"
	DeadBadTokens   = "implausible_tokens"
	DeadHash        = "not_hashable"  // the anonymizer refused the prompt
	DeadFault       = "decoder_fault" // our own code broke on it
	DeadBatch       = "broken_batch"  // of a batch of Kafka's that cannot be read, though its checksum is right
)

// DeadReasons lists the reasons of dead letters.
func DeadReasons() []string {
	return []string{DeadTooBig, DeadBomb, DeadFramed, DeadCompressed, DeadBadJSON, DeadLayout, DeadBadField, DeadMissingTime,
		DeadBadTime, DeadBadTokens, DeadHash, DeadFault, DeadBatch}
}
