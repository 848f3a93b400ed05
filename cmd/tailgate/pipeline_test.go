package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"tailgate/ingest"
	"tailgate/internal/canary"
	"tailgate/internal/testshared"
)

// fixtureFormats names the format of each fixture of ingest.
var fixtureFormats = map[string]string{
	"litellm.jsonl": "litellm", "litellm-spend.jsonl": "litellm-spend", "otlp.json": "otlp-json", "otlp-events.json": "otlp-json",
	"otlp-events.binpb": "otlp-proto", "openinference.json": "openinference", "vllm.json": "vllm", "envoy.jsonl": "envoy",
	"openai.jsonl": "openai", "kong.jsonl": "kong", "higress.jsonl": "higress", "apisix.jsonl": "apisix", "helicone.jsonl": "helicone",
	"bedrock.jsonl": "bedrock", "cloudflare.jsonl": "cloudflare", "databricks.jsonl": "databricks",
}

// pipeline runs commands in processes of their own; what they say is kept in out, next to what they write.
type pipeline struct {
	t        *testing.T
	bin, out string
	said     bytes.Buffer
	ran      int
}

// run runs a command, which must end with one of the codes, and returns its stdout.
func (p *pipeline) run(codes string, args ...string) string {
	p.t.Helper()
	cmd := exec.CommandContext(p.t.Context(), p.bin, args...)
	cmd.Dir = filepath.Dir(p.out)
	cmd.Env = append(os.Environ(), "TMPDIR="+filepath.Join(p.out, "tmp"), "TAILGATE_MIN_FREE=1KiB")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	_ = cmd.Run()
	if code := fmt.Sprint(cmd.ProcessState.ExitCode()); !strings.Contains(codes, code) {
		p.t.Fatalf("%v: exit %s\n%s%s", args, code, stdout.String(), stderr.String())
	}
	p.ran++
	p.said.Write(stdout.Bytes())
	p.said.Write(stderr.Bytes())
	return stdout.String()
}

// TestNoTextLeavesThePipeline plants a canary in every string and beside every key of every fixture, and in the
// topic, keys and headers of a Kafka log, brings them through all stages, and audits all that was written or said.
// Then one canary is written where it should not be, and the same audit must see it.
func TestNoTextLeavesThePipeline(t *testing.T) {
	testshared.NotUnderRace(t, "54 commands, one after the other: minutes, and nothing that other tests do not race")
	dir := t.TempDir()
	p := &pipeline{t: t, bin: filepath.Join(dir, "tailgate"), out: filepath.Join(dir, "out")}
	linkSelf(t, p.bin)
	for _, d := range []string{p.out, filepath.Join(p.out, "tmp"), filepath.Join(dir, "logs")} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	var c canary.Planter
	p.run("0", "keys", "init", "--keys", "keys")
	p.ingestAll(dir, &c)
	days, err := filepath.Glob(filepath.Join(p.out, "lake", "_segments", "*"))
	if err != nil || len(days) < len(fixtureFormats) {
		t.Fatalf("%d topics, %v", len(days), err)
	}
	p.laterStages()
	canaries := filepath.Join(dir, "canaries")
	write := func(path, text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(canaries, strings.Join(c.Texts, "\n"))
	write(filepath.Join(p.out, "said"), p.said.String())
	clean := p.run("0", "audit", "out", "--canaries", canaries, "--json")
	var report struct {
		Files, Canaries int
		Pages           int64
		Tables          map[string]int
	}
	if err := json.Unmarshal([]byte(clean), &report); err != nil || report.Canaries < 500 || report.Pages < 1000 ||
		report.Tables["requests"] == 0 || report.Tables["dead_letters"] == 0 || report.Tables["trace"] == 0 || report.Tables["profile_rate"] == 0 {
		t.Errorf("%v: %+v", err, report)
	}
	t.Logf("%d commands, %d canaries, %d files, %d pages", p.ran, report.Canaries, report.Files, report.Pages)
	write(filepath.Join(p.out, "tmp", "left-behind"), "…"+strings.ToUpper(c.Texts[7])+"…")
	p.run("7", "audit", "out", "--canaries", canaries)
}

// ingestAll brings all fixtures and a Kafka topic into one lake.
func (p *pipeline) ingestAll(dir string, c *canary.Planter) {
	p.t.Helper()
	fixtures := filepath.Join("..", "..", "ingest", "testdata")
	var kafka [][]byte
	for name, format := range fixtureFormats {
		data, err := os.ReadFile(filepath.Join(fixtures, name))
		if err != nil {
			p.t.Fatal(err)
		}
		values := [][]byte{c.Binary(data)}
		if !strings.HasSuffix(name, ".binpb") {
			if values, err = c.JSON(data); err != nil {
				p.t.Fatal(err)
			}
			values = append(values, []byte(`{"broken`+c.New()+`":`))
		}
		if format == "litellm" {
			kafka = values
		}
		path := filepath.Join(dir, "logs", c.New()+"-"+name)
		if err := os.WriteFile(path, append(bytes.Join(values, []byte("\n")), '\n'), 0o600); err != nil {
			p.t.Fatal(err)
		}
		if strings.HasSuffix(name, ".binpb") {
			p.produce(c, "otlp-proto", values)
			continue
		}
		p.run("01", "ingest", path, "--format", format, "--out", "out/lake", "--keys", "keys", "--max-bad", "100%",
			"--metrics-file", "out/"+format+".prom")
		p.run("01", "inspect", path, "--format", format)
		p.run("01", "reprocess", path, "--format", format, "--out", "out/lake", "--keys", "keys")
	}
	p.produce(c, "litellm", kafka)
}

// produce writes values to a new topic, with canaries in its name, keys and headers, and ingests it.
func (p *pipeline) produce(c *canary.Planter, format string, values [][]byte) {
	p.t.Helper()
	broker, topic := strings.TrimPrefix(testBroker(p.t), "kafka://"), c.New()
	client, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(broker, ",")...), kgo.AllowAutoTopicCreation(), kgo.DefaultProduceTopic(topic))
	if err != nil {
		p.t.Fatal(err)
	}
	defer client.Close()
	for _, v := range values {
		record := &kgo.Record{Value: v, Key: []byte(c.New()), Timestamp: time.Now(), Headers: []kgo.RecordHeader{{Key: c.New(), Value: []byte(c.New())}}}
		if err := client.ProduceSync(p.t.Context(), record).FirstErr(); err != nil {
			p.t.Fatal(err)
		}
	}
	p.run("0", "ingest", "kafka://"+broker+"/"+topic, "--format", format, "--out", "out/lake", "--keys", "keys", "--max-bad", "100%")
}

// laterStages publishes each day that has rows, and makes profiles, traces and rescaled traces of them.
func (p *pipeline) laterStages() {
	p.t.Helper()
	days, err := ingest.Days(filepath.Join(p.out, "lake"))
	if err != nil || len(days) == 0 {
		p.t.Fatalf("%d days, %v", len(days), err)
	}
	for _, day := range days {
		p.run("0", "publish", "out/lake", "--day", day, "--k", "1", "--min-requests", "1", "--keys", "keys", "--metrics-file", "out/publish.prom")
		trace := "out/" + day + ".jsonl"
		p.run("06", "trace", "export", "out/lake", "--day", day, "-o", trace) // a day may have nothing for an engine
		if _, err := os.Stat(filepath.Join(filepath.Dir(p.out), trace)); err == nil {
			p.run("0123456", "rescale", trace, "--scale", "1.5x", "-o", "out/"+day+"-more.parquet")
			p.run("0", "trace", "info", trace)
			p.run("0", "profile", trace, "-o", "out/profile-"+day)
		}
	}
}
