package refresh

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"tailgate/anonymize"
	"tailgate/anonymize/audit"
	"tailgate/ingest"
	"tailgate/internal/canary"
	"tailgate/internal/fault"
	"tailgate/schemas"
	"tailgate/trace"
)

// Results of the check with canaries.
const (
	CanaryClean = "clean"
	CanaryFound = "found"
)

// CanaryResult is what became of texts that were planted in example logs of every format, which this very binary then
// ingested, published and made traces of, in a temporary folder. It has no text in it.
type CanaryResult struct {
	Result     string           `json:"result"`  // CanaryClean or CanaryFound
	Planted    int              `json:"planted"` // texts: in every string and beside every key
	Spellings  int              `json:"spellings"`
	Formats    map[string]int64 `json:"formats"` // rows by format
	Days       int              `json:"days"`    // that were published
	Files      int              `json:"files"`   // that were searched
	Bytes      int64            `json:"bytes"`
	Pages      int64            `json:"pages"` // of Parquet, decompressed
	Values     int64            `json:"values"`
	Found      int64            `json:"found"` // planted texts, and strings that the allow-list does not know
	Findings   []audit.Finding  `json:"findings"`
	Unreadable int              `json:"unreadable"`
}

type canaryOptions struct {
	hash anonymize.Options
	tool string
	wrap func(ingest.Anonymizer) ingest.Anonymizer // nil = nothing
}

// canaryMemo bounds what the check's anonymizer remembers.
const canaryMemo = 4 << 20

// checkCanaries runs the stages over planted logs. Logs lie in memory only; what the stages write and say is searched.
func checkCanaries(ctx context.Context, o canaryOptions) (out CanaryResult, err error) {
	dir, err := memoryFolder()
	if err != nil {
		return out, fmt.Errorf("making a temporary folder: %w", err)
	}
	defer os.RemoveAll(dir)
	c := &canaryRun{dir: filepath.Join(dir, "out"), out: CanaryResult{Formats: map[string]int64{}}}
	c.log = slog.New(slog.NewTextHandler(&c.said, &slog.HandlerOptions{Level: slog.LevelDebug}))
	if err := os.Mkdir(c.dir, 0o700); err != nil {
		return out, fmt.Errorf("making a temporary folder: %w", err)
	}
	if err := c.keys(ctx, filepath.Join(dir, "keys"), o); err != nil {
		return out, err
	}
	defer c.hasher.Close()
	if err := c.stages(ctx, o.tool); err != nil {
		return out, err
	}
	return c.search(ctx)
}

// memoryFolder makes a temporary folder in memory, where the system has a file system for that.
func memoryFolder() (string, error) {
	if dir, err := canaryFolder("/dev/shm"); err == nil {
		return dir, nil
	}
	return canaryFolder(os.TempDir())
}

// canaryFolder makes a folder for one check, and removes what checks that were killed a day ago or earlier have left: each
// takes seconds.
func canaryFolder(in string) (string, error) {
	const pattern = "tailgate-canary-"
	left, _ := filepath.Glob(filepath.Join(in, pattern+"*"))
	for _, dir := range left {
		if info, err := os.Lstat(dir); err == nil && info.IsDir() && time.Since(info.ModTime()) > day {
			_ = os.RemoveAll(dir) // another user's stays
		}
	}
	return os.MkdirTemp(in, pattern)
}

// canaryRun is one check.
type canaryRun struct {
	dir     string
	planter canary.Planter
	hasher  *anonymize.Hasher
	anon    ingest.Anonymizer
	said    bytes.Buffer
	log     *slog.Logger
	out     CanaryResult
}

// keys makes keys for this check alone.
func (c *canaryRun) keys(ctx context.Context, dir string, o canaryOptions) error {
	ring, err := anonymize.InitKeyDir(dir, time.Now())
	if err != nil {
		return err
	}
	keys, err := ring.Load(ctx, "")
	if err != nil {
		return err
	}
	o.hash.Memo = canaryMemo
	if c.hasher, err = anonymize.NewHasher(keys, o.hash); err != nil {
		return err
	}
	if c.anon = c.hasher; o.wrap != nil {
		c.anon = o.wrap(c.hasher)
	}
	return nil
}

func (c *canaryRun) lake() string { return filepath.Join(c.dir, "lake") }

// stages ingests every sample, and publishes and exports what came of it.
func (c *canaryRun) stages(ctx context.Context, tool string) error {
	samples, err := ingest.Samples()
	if err != nil {
		return err
	}
	for _, s := range samples {
		if err := c.ingest(ctx, s, tool); err != nil {
			return err
		}
	}
	days, err := ingest.Days(c.lake())
	if err != nil {
		return err
	}
	for _, day := range days {
		report, err := ingest.Publish(ctx, ingest.PublishOptions{Lake: c.lake(), Day: day, K: 1, MinRequests: 1, KeepBuilds: -1, Tool: tool, Logger: c.log,
			Keys: func(string) (ingest.Keyer, error) { return c.hasher, nil }, Memory: 16 << 20})
		if err != nil {
			return err
		}
		c.say(report)
		if err := c.export(ctx, day); err != nil {
			return err
		}
	}
	c.out.Days = len(days)
	return os.WriteFile(filepath.Join(c.dir, "said"), c.said.Bytes(), 0o600)
}

// say keeps what the stages tell.
func (c *canaryRun) say(v any) {
	_ = json.NewEncoder(&c.said).Encode(v) // to memory
}

// ingest brings one sample into the lake, with a broken record behind it.
func (c *canaryRun) ingest(ctx context.Context, s ingest.Sample, tool string) error {
	values := [][]byte{c.planter.Binary(s.Data)}
	if !s.Binary {
		var err error
		if values, err = c.planter.JSON(s.Data); err != nil {
			return err
		}
		values = append(values, []byte(`{"broken`+c.planter.New()+`":`))
	}
	report, err := ingest.Run(ctx, plantedLog{topic: c.planter.New(), values: values}, ingest.Options{
		Format: s.Format, Lake: c.lake(), Anonymizer: c.anon, MaxBad: 1, MinFree: -1, Logger: c.log,
		Footer: schemas.Footer{Tool: tool, Tokenizer: c.hasher.TokenizerID(), Template: c.hasher.TemplateID(), Epoch: c.hasher.Epoch()},
	})
	if err != nil {
		return fmt.Errorf("the sample of format %s: %w", s.Format, err)
	}
	c.out.Formats[s.Format] += report.Total.Rows
	c.say(report)
	return nil
}

// export makes a trace of a day, where it has something for an engine.
func (c *canaryRun) export(ctx context.Context, day string) error {
	t, err := trace.ExportStream(ctx, c.lake(), trace.ExportOptions{Day: day, View: trace.ViewEngine, BlockSize: 16, Seed: 1})
	if fault.Of(err) == fault.Data {
		return nil
	}
	if err != nil {
		return err
	}
	defer t.Close()
	return t.WriteFile(ctx, filepath.Join(c.dir, day+".jsonl"), "", "")
}

// search looks for the canaries in all that was written and said.
func (c *canaryRun) search(ctx context.Context) (CanaryResult, error) {
	report, err := audit.Path(ctx, c.dir, audit.Options{Canaries: c.planter.Bytes()})
	if err != nil {
		return c.out, err
	}
	o := &c.out
	o.Planted, o.Spellings, o.Files, o.Bytes, o.Pages, o.Values = report.Canaries, report.Spellings, report.Files, report.Bytes, report.Pages, report.Values
	o.Found, o.Findings, o.Unreadable = report.Found, report.Findings, len(report.Unreadable)
	o.Findings = o.Findings[:min(len(o.Findings), 20)]
	if o.Result = CanaryClean; o.Found > 0 || o.Unreadable > 0 {
		o.Result = CanaryFound
	}
	for format, rows := range o.Formats {
		if rows == 0 {
			return c.out, fmt.Errorf("the sample of format %s gave no row", format)
		}
	}
	return c.out, nil
}

// plantedLog is a log in memory.
type plantedLog struct {
	topic  string
	values [][]byte
}

// Partitions implements ingest.Source.
func (l plantedLog) Partitions(context.Context) ([]ingest.Partition, error) {
	return []ingest.Partition{{Topic: l.topic, End: int64(len(l.values))}}, nil
}

// Fetch implements ingest.Source.
func (l plantedLog) Fetch(_ context.Context, _ ingest.Partition, from int64) (ingest.Batch, error) {
	end := int64(len(l.values))
	if from < 0 || from > end {
		return ingest.Batch{}, ingest.ErrOutOfRange
	}
	b := ingest.Batch{Next: end, High: end}
	for i := from; i < end; i++ {
		b.Records = append(b.Records, ingest.Record{Offset: i, Value: bytes.Clone(l.values[i]), Size: int64(len(l.values[i]))})
	}
	return b, nil
}

// Commit implements ingest.Source.
func (plantedLog) Commit(context.Context, string, ingest.Partition, int64) error {
	return errors.New("nobody is told")
}
