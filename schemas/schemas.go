// Package schemas holds every table that tailgate writes as a Go row type: the struct tags are the Parquet
// schema, the doc comments are the column dictionary. It also holds the few words that stages exchange
// (footer keys, closed enumerations, run manifests, engine events).
//
// It is not a place for logic: stages import it and meet in its types and in files.
//
// Conventions. Columns are snake_case with a unit suffix (_us, _tokens). Pointer fields are nullable and null
// means "not known" or "does not apply", never zero. Wall times are TIMESTAMP(us, UTC); inside a run every
// *_us column is INT64 microseconds since the schedule's zero. Ids are INT64, never unsigned.
package schemas

// Definition names the metric definitions that a result was measured under.
const Definition = "tailgate/1"

// Footer keys, present in every Parquet file that tailgate writes.
const (
	KeySchema     = "tailgate.schema"
	KeyVersion    = "tailgate.schema_version"
	KeyTool       = "tailgate.tool_version"
	KeyDefinition = "tailgate.definition"
	KeySeed       = "tailgate.seed"
	KeyBlockSize  = "tailgate.block_size"
	KeyTokenizer  = "tailgate.tokenizer"
	KeyTemplate   = "tailgate.template"
	KeyModels     = "tailgate.models"
	KeyEpoch      = "tailgate.epoch"
	KeyInputs     = "tailgate.inputs_sha256"
)

// Table names and versions as written to KeySchema and KeyVersion. Readers accept every earlier version.
const (
	TableRequests = "requests"
	TableSegment  = "segment"

	TableDeadLetters = "dead_letters"

	TableTrace     = "trace"
	TableResults   = "results"
	TableRuns      = "runs"
	TableBuckets   = "buckets"
	TableVerdicts  = "verdicts"
	TableTelemetry = "telemetry"
	TableTruth     = "truth"

	TableCapacity = "capacity"
	TableEnvelope = "capacity_envelope"

	TableProfileMeta       = "profile_meta"
	TableProfileRate       = "profile_rate"
	TableProfileIAT        = "profile_iat"
	TableProfileIATFit     = "profile_iat_fit"
	TableProfileDispersion = "profile_dispersion"
	TableProfileLength     = "profile_length"
	TableProfileSession    = "profile_session"
	TableProfileHitCurve   = "profile_hit_curve"
	TableProfileJoint      = "profile_joint"
	TableProfileJointStat  = "profile_joint_stat"
	TableProfileSessStat   = "profile_session_stat"
	TableProfileSessGap    = "profile_session_gap"
	TableProfileGrowth     = "profile_growth"
	TableProfileRoot       = "profile_root"
	TableProfilePopularity = "profile_popularity"
	TableProfileReuse      = "profile_reuse"
	TableProfileCrossShare = "profile_cross_share"
	TableProfileBurst      = "profile_burst"
	TableProfileLatency    = "profile_latency_ref"
	TableProfilePart       = "profile_part"
	TableProfilePartRow    = "profile_part_row"
	TableProfilePartBlock  = "profile_part_block"
	TableProfileDrift      = "profile_drift"

	// Version rises when a reader of the version before would take a file for something that it is not. A new column
	// does not raise it: files without it read as the column's zero, which therefore means "not told".
	Version = "1"
)

// Footer is the provenance that every file carries. Empty fields are written as empty strings, so that a
// reader can tell "none" from "not written by tailgate".
type Footer struct {
	Schema    string
	Tool      string
	Seed      string
	BlockSize string
	Tokenizer string // of the models without a choice of their own
	Template  string // of the same
	Models    string // digest of the choices by model; "" = there are none
	Epoch     string
	Inputs    string // sha256 over the sorted sha256 of the inputs, hex
}

// Map returns the footer as Parquet key-value metadata.
func (f Footer) Map() map[string]string {
	return map[string]string{
		KeySchema:     f.Schema,
		KeyVersion:    Version,
		KeyTool:       f.Tool,
		KeyDefinition: Definition,
		KeySeed:       f.Seed,
		KeyBlockSize:  f.BlockSize,
		KeyTokenizer:  f.Tokenizer,
		KeyTemplate:   f.Template,
		KeyModels:     f.Models,
		KeyEpoch:      f.Epoch,
		KeyInputs:     f.Inputs,
	}
}
