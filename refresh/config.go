package refresh

import (
	"time"

	"tailgate/profile"
	"tailgate/synth"
)

// Config is a refresh file.
type Config struct {
	Name string // of the file, for messages

	Root   string   // folder or s3://bucket/prefix
	Source []string // kafka://broker/topic, s3://bucket/prefix, or files and globs
	Keys   string   // a folder of keys, or exec:CMD
	// Ingest and Publish are more flags of `tailgate ingest` and `tailgate publish`, in the order of the file.
	Ingest  []Setting
	Publish []Setting
	// Lateness is how long after its arrival a request may be logged: a day is read up to its end and so much more.
	// 0 in the file = 32 min.
	Lateness time.Duration
	// Late says what becomes of rows that come after their day was built, while its key lives.
	Late  string
	Lease time.Duration // how long a silent run keeps others out; 0 in the file = 60 s

	Profile   ProfileConfig
	Drift     DriftConfig
	Traces    TracesConfig
	Envelope  string // of a capacity test, relative to the file; "" = no headroom
	Retention RetentionConfig
	Metrics   MetricsConfig
	Cron      CronConfig
}

// What becomes of late rows.
const (
	LateRebuild = "rebuild" // the day is built again, with everything made of it
	LateWait    = "wait"    // they wait for --backfill, or for a run with --day; exit 9
)

// Setting is one flag of a stage, as written in the file.
type Setting struct {
	Name  string // with dashes
	Value string
	Line  int
}

// ProfileConfig says how the day is profiled.
type ProfileConfig struct {
	View      string // engine or client; "" in the file = engine
	BlockSize int    // 0 in the file = 512
	PerGroup  bool   // also per tenant and class; true unless the file says no
}

// DriftConfig says when a day has drifted.
type DriftConfig struct {
	Limits profile.Limits
}

// TracesConfig says which traces are made.
type TracesConfig struct {
	Classes   []string // workload classes, or All; empty in the file = All alone
	Scales    []string // such as 1.5x; of each class, beside the trace itself
	Mode      string   // how to rescale; "" in the file = session
	View      string
	BlockSize int
	Seed      uint64

	factors []float64 // of Scales
}

// All is the class name of the trace with every class.
const All = "all"

// RetentionConfig says how long things are kept; 0 = for ever. Derived folders go with their day.
type RetentionConfig struct {
	Days      time.Duration // days of the lake, with profiles, traces and reports of them
	Segments  time.Duration // segments, dead letters and earlier builds
	Traces    time.Duration // traces alone, where they go before their day
	Results   []string      // folders with runs, whose manifests have an expiry
	BlockKeys time.Duration // after the day closed; 0 in the file = 48 h
	Pseudonym time.Duration // age of pseudonym keys; 0 in the file = 90 days
	// KeepLateKeys keeps a block key that is due while late rows of its day wait.
	KeepLateKeys bool
}

// MetricsConfig says where the metrics of a run go, beside the root.
type MetricsConfig struct {
	Textfile string // for a node exporter; "" = none
	Push     string // URL of a Pushgateway; "" = none
}

// CronConfig says which exit codes --cron makes 0.
type CronConfig struct {
	DriftOK bool // also 3: a drifted day is no failed job
}

// factor is the number of scale i.
func (c *TracesConfig) factor(i int) float64 { return c.factors[i] }

func (c *TracesConfig) options(i int) synth.Options {
	return synth.Options{Scale: c.factor(i), Mode: c.Mode, Seed: c.Seed}
}
