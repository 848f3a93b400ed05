package refresh

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"tailgate/internal/yamldoc"
	"tailgate/profile"
	"tailgate/synth"
	"tailgate/trace"
)

// Flags of the stages that a refresh file may set, in its spelling. Others have no meaning for a job, or a key of
// their own.
var (
	ingestSettings = []string{"format", "classes", "exclude", "model_label", "max_bad", "allow_gap", "accept_reset", "deep", "group",
		"tokenizer", "template", "template_specials", "models", "block_scope", "memo", "kafka_tls", "kafka_ca", "kafka_cert", "kafka_key",
		"sasl", "sasl_user", "sasl_password_file", "value_codec", "max_record_bytes", "memory", "min_free", "rotate_bytes", "rotate_rows",
		"rotate_age", "worker"}
	publishSettings = []string{"k", "min_requests", "parts", "memory", "keep_builds"}
)

// IngestSettings and PublishSettings list the flags of the stages that a refresh file may set, in its spelling.
func IngestSettings() []string { return slices.Clone(ingestSettings) }

// PublishSettings lists those of `tailgate publish`.
func PublishSettings() []string { return slices.Clone(publishSettings) }

// ParseConfig reads a refresh file. Every fault is reported with its line, as fault.Usage. ${NAME} in a value is
// replaced by lookup(NAME).
func ParseConfig(name string, data []byte, lookup func(string) (string, bool)) (*Config, error) {
	r, root := yamldoc.New(name, data, lookup)
	if root == nil {
		return nil, r.Err()
	}
	c := &Config{Name: name, Lateness: 32 * time.Minute, Late: LateRebuild, Lease: time.Minute,
		Profile:   ProfileConfig{View: trace.ViewEngine, BlockSize: 512, PerGroup: true},
		Drift:     DriftConfig{Limits: profile.DefaultLimits()},
		Traces:    TracesConfig{Mode: synth.ModeSession, View: trace.ViewEngine, BlockSize: 512, Seed: 1},
		Retention: RetentionConfig{BlockKeys: 48 * time.Hour, Pseudonym: 90 * day, KeepLateKeys: false},
	}
	in := configReader{r, c}
	fields := r.Fields(root, "a refresh file", "root", "source", "keys", "lateness", "late", "lease", "ingest", "publish", "profile",
		"drift", "traces", "envelope", "retention", "metrics", "cron")
	if !yamldoc.IsMapping(root) { // which is told, and that all is missing need not be
		return nil, r.Err()
	}
	for _, f := range fields {
		in.field(f)
	}
	for _, need := range []struct{ key, hint string }{
		{"root", "a folder or s3://bucket/prefix"},
		{"source", "kafka://broker/topic, s3://bucket/prefix or files"},
		{"keys", "a folder of keys (tailgate keys init), or exec:CMD"},
	} {
		if !yamldoc.Has(fields, need.key) { // one without a value was told
			r.Faultf(root, "%s is missing: %s", need.key, need.hint)
		}
	}
	if !slices.ContainsFunc(c.Ingest, func(s Setting) bool { return s.Name == "format" }) {
		r.Faultf(root, "ingest.format is missing: the layout of the log's records")
	}
	if len(c.Traces.Classes) == 0 {
		c.Traces.Classes = []string{All}
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	return c, nil
}

const day = 24 * time.Hour

type configReader struct {
	*yamldoc.Reader
	c *Config
}

func (r configReader) field(f yamldoc.Field) {
	c := r.c
	switch f.Key {
	case "root":
		c.Root = r.Name(f.Value)
	case "source":
		c.Source = r.Names(f.Value)
	case "keys":
		c.Keys = r.Name(f.Value)
	case "lateness":
		c.Lateness = r.Span(f.Value, time.Second)
	case "late":
		c.Late = r.Word(f.Value, LateRebuild, LateWait)
	case "lease":
		c.Lease = r.Span(f.Value, time.Second)
	case "ingest":
		c.Ingest = r.settings(f.Value, "ingest", ingestSettings)
	case "publish":
		c.Publish = r.settings(f.Value, "publish", publishSettings)
	case "profile":
		r.profile(f.Value)
	case "drift":
		r.drift(f.Value)
	case "traces":
		r.traces(f.Value)
	case "envelope":
		c.Envelope = r.Name(f.Value)
	case "retention":
		r.retention(f.Value)
	case "metrics":
		for _, f := range r.Fields(f.Value, "metrics", "textfile", "push") {
			if f.Key == "textfile" {
				c.Metrics.Textfile = r.Name(f.Value)
			} else {
				c.Metrics.Push = r.Name(f.Value)
			}
		}
	case "cron":
		for _, f := range r.Fields(f.Value, "cron", "drift_ok") {
			c.Cron.DriftOK = r.Bool(f.Value)
		}
	}
}

// settings reads flags of a stage. A list becomes its values with commas between them.
func (r configReader) settings(n yamldoc.Node, what string, known []string) []Setting {
	var out []Setting
	for _, f := range r.Fields(n, what, known...) {
		var values []string
		for _, v := range r.List(f.Value) {
			text, _ := r.Text(v)
			values = append(values, text)
		}
		out = append(out, Setting{Name: strings.ReplaceAll(f.Key, "_", "-"), Value: strings.Join(values, ","), Line: yamldoc.Line(f.Value)})
	}
	return out
}

func (r configReader) profile(n yamldoc.Node) {
	p := &r.c.Profile
	for _, f := range r.Fields(n, "profile", "view", "block_size", "per_group") {
		switch f.Key {
		case "view":
			p.View = r.Word(f.Value, trace.ViewEngine, trace.ViewClient)
		case "block_size":
			p.BlockSize = r.blockSize(f.Value)
		case "per_group":
			p.PerGroup = r.Bool(f.Value)
		}
	}
}

func (r configReader) blockSize(n yamldoc.Node) int {
	size := r.Int(n, 16)
	if err := (trace.ExportOptions{Day: "2026-01-01", BlockSize: int(min(size, math.MaxInt32))}).Validate(); err != nil {
		r.Faultf(n, "%w", err)
	}
	return int(size)
}

func (r configReader) drift(n yamldoc.Node) {
	for _, f := range r.Fields(n, "drift", "limits") {
		for _, l := range r.Fields(f.Value, "limits") {
			text, ok := r.Text(l.Value)
			if !ok {
				continue
			}
			if err := r.c.Drift.Limits.Set(l.Key, text); err != nil {
				r.Faultf(l.At, "%w", err)
			}
		}
	}
}

func (r configReader) traces(n yamldoc.Node) {
	t := &r.c.Traces
	for _, f := range r.Fields(n, "traces", "classes", "scales", "mode", "view", "block_size", "seed") {
		switch f.Key {
		case "classes":
			t.Classes = r.distinct(f.Value)
		case "scales":
			r.scales(f.Value)
		case "mode":
			t.Mode = r.Word(f.Value, synth.Modes()...)
		case "view":
			t.View = r.Word(f.Value, trace.ViewEngine, trace.ViewClient)
		case "block_size":
			t.BlockSize = r.blockSize(f.Value)
		case "seed":
			t.Seed = uint64(r.Int(f.Value, 0))
		}
	}
	for i := range t.Scales {
		if err := t.options(i).Validate(); err != nil {
			r.Faultf(n, "scale %s: %w", t.Scales[i], err)
		}
	}
}

// distinct reads names of files: no value twice, and none that leaves its folder.
func (r configReader) distinct(n yamldoc.Node) []string {
	names := r.Names(n)
	for i, name := range names {
		switch {
		case slices.Contains(names[:i], name):
			r.Faultf(n, "%s stands twice", name)
		case strings.ContainsAny(name, `/\@`) || strings.HasPrefix(name, "."):
			r.Faultf(n, "class %q cannot name a file", name)
		}
	}
	return names
}

func (r configReader) scales(n yamldoc.Node) {
	t := &r.c.Traces
	for _, v := range r.List(n) {
		text, ok := r.Text(v)
		if !ok {
			continue
		}
		factor, err := synth.ParseScale(text)
		switch {
		case err != nil:
			r.Faultf(v, "%w", err)
		case factor == 1:
			r.Faultf(v, "scale %s is the trace itself, which is always made", text)
		case slices.Contains(t.factors, factor):
			r.Faultf(v, "scale %s stands twice", text)
		default:
			t.factors = append(t.factors, factor)
			t.Scales = append(t.Scales, strconv.FormatFloat(factor, 'g', -1, 64)+"x")
		}
	}
}

func (r configReader) retention(n yamldoc.Node) {
	c := &r.c.Retention
	for _, f := range r.Fields(n, "retention", "days", "segments", "traces", "results", "block_keys", "pseudonym_keys", "keep_late_keys") {
		switch f.Key {
		case "days":
			c.Days = r.Span(f.Value, day)
		case "segments":
			c.Segments = r.Span(f.Value, day)
		case "traces":
			c.Traces = r.Span(f.Value, day)
		case "results":
			c.Results = r.Names(f.Value)
		case "block_keys":
			c.BlockKeys = r.Span(f.Value, time.Hour)
		case "pseudonym_keys":
			c.Pseudonym = r.Span(f.Value, day)
		case "keep_late_keys":
			c.KeepLateKeys = r.Bool(f.Value)
		}
	}
}
