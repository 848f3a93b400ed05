// Command yardstick times the way from gateway logs to Parquet beside the same way in Python (pipeline.py), over the
// same logs in the same run, and prints both:
//
//	yardstick -tailgate bin/tailgate -python VENV/bin/python -vocabulary DIR -mb 100
//
// With -kafka the logs are on a broker too, and a row tells how fast they come from there.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kgo"

	"tailgate/internal/chatlogs"
)

func main() {
	y := yardstick{}
	flag.StringVar(&y.tailgate, "tailgate", "bin/tailgate", "our program")
	flag.StringVar(&y.python, "python", "", "a Python with tools/yardstick/requirements.txt")
	flag.StringVar(&y.script, "script", "tools/yardstick/pipeline.py", "the peer")
	flag.StringVar(&y.vocabulary, "vocabulary", "", "folder of the vocabularies as tiktoken caches them")
	flag.StringVar(&y.kafka, "kafka", "", "address of a broker; \"\" = files only")
	flag.IntVar(&y.mb, "mb", 100, "megabytes of logs of each workload")
	flag.Parse()
	if err := y.run(); err != nil {
		fmt.Fprintln(os.Stderr, "yardstick:", err)
		os.Exit(1)
	}
}

type yardstick struct {
	tailgate, python, script, vocabulary, kafka string
	mb                                          int
	dir                                         string
	table                                       *tabwriter.Writer
}

// workloads differ in how much of their text repeats.
var workloads = []struct {
	name string
	o    chatlogs.Options
}{
	{"single turns", chatlogs.Options{Seed: 1, Turns: 1, System: 1200, User: 2300, Answer: 200}},
	{"chats of 14 turns", chatlogs.Options{Seed: 2, Turns: 14, Sessions: 60}},
}

func (y *yardstick) run() (err error) {
	if y.dir, err = os.MkdirTemp("", "yardstick"); err != nil {
		return fmt.Errorf("making a folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(y.dir)) }()
	y.table = tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(y.table, "logs\tpipeline\tcores\tMB/s\tMB/cpu-s\tpeak RSS MB\trows")
	for i, w := range workloads {
		files, size, err := y.write(i, w.o)
		if err != nil {
			return err
		}
		for _, cores := range []int{1, 2} {
			if err := y.compare(w.name, files, size, cores); err != nil {
				return err
			}
		}
		if y.kafka != "" {
			if err := y.fromBroker(w.name, files, size); err != nil {
				return err
			}
		}
		if err := y.table.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// write writes the logs of a workload as two files.
func (y *yardstick) write(n int, o chatlogs.Options) (files []string, size int64, err error) {
	log, err := chatlogs.New(o)
	if err != nil {
		return nil, 0, err
	}
	var record []byte
	for i := range 2 {
		path := filepath.Join(y.dir, fmt.Sprintf("w%d-%d.jsonl", n, i))
		f, err := os.Create(path)
		if err != nil {
			return nil, 0, fmt.Errorf("writing the logs: %w", err)
		}
		w := bufio.NewWriterSize(f, 1<<20)
		for part := int64(0); part < int64(y.mb)*500_000; part += int64(len(record)) {
			record = append(log.Append(record[:0]), '\n')
			_, _ = w.Write(record) // Flush tells
			size += int64(len(record))
		}
		if err := errors.Join(w.Flush(), f.Close()); err != nil {
			return nil, 0, fmt.Errorf("writing the logs: %w", err)
		}
		files = append(files, path)
	}
	fmt.Fprintf(os.Stderr, "%s: %d MB, %.0f %% of the text new\n", workloads[n].name, size/1e6, 100*float64(log.New)/float64(log.Text))
	return files, size, nil
}

// compare runs the peer and ours over the files: one after the other on one core, side by side on two.
func (y *yardstick) compare(name string, files []string, size int64, cores int) error {
	out, err := os.MkdirTemp(y.dir, "out")
	if err != nil {
		return fmt.Errorf("making a folder: %w", err)
	}
	groups := [][]string{files}
	if cores == 1 {
		groups = [][]string{files[:1], files[1:]}
	}
	var peer usage
	for i, group := range groups {
		folder := filepath.Join(out, strconv.Itoa(i))
		if err := os.Mkdir(folder, 0o755); err != nil {
			return fmt.Errorf("making a folder: %w", err)
		}
		u, text, err := timed([]string{"TIKTOKEN_CACHE_DIR=" + y.vocabulary}, y.python, append([]string{y.script, folder}, group...)...)
		if err != nil {
			return err
		}
		rows, _, _ := strings.Cut(text, " ")
		if u.rows, err = strconv.ParseInt(rows, 10, 64); err != nil {
			return fmt.Errorf("reading the peer's rows: %w", err)
		}
		peer.add(u)
	}
	y.row(name, "Python", cores, size, peer)
	ours, err := y.ours(out, cores, files)
	if err != nil {
		return err
	}
	y.row(name, "tailgate", cores, size, ours)
	if peer.rows != ours.rows {
		return fmt.Errorf("%s: %d rows against %d", name, ours.rows, peer.rows)
	}
	return nil
}

// ours ingests sources into a new lake.
func (y *yardstick) ours(dir string, cores int, sources []string) (u usage, err error) {
	keys, lake := filepath.Join(dir, "keys"), filepath.Join(dir, "lake")
	if _, _, err := timed(nil, y.tailgate, "keys", "init", "--keys", keys, "--quiet"); err != nil {
		return u, err
	}
	args := append([]string{"ingest"}, sources...)
	args = append(args, "--format", "litellm", "--template", "chatml", "--out", lake, "--keys", keys, "--min-free", "1MiB", "--quiet", "--json")
	one, text, err := timed([]string{"GOMAXPROCS=" + strconv.Itoa(cores)}, y.tailgate, args...)
	if err != nil {
		return u, err
	}
	var report struct {
		Total struct {
			Rows int64 `json:"rows"`
		} `json:"total"`
	}
	if err := json.Unmarshal([]byte(text), &report); err != nil {
		return u, fmt.Errorf("reading the report: %w", err)
	}
	one.rows = report.Total.Rows
	return one, nil
}

// fromBroker puts the files on a topic of two partitions and ingests it.
func (y *yardstick) fromBroker(name string, files []string, size int64) error {
	topic := fmt.Sprintf("yardstick-%d", time.Now().UnixNano())
	conn, err := kafka.Dial("tcp", y.kafka)
	if err != nil {
		return fmt.Errorf("reaching the broker: %w", err)
	}
	err = conn.CreateTopics(kafka.TopicConfig{Topic: topic, NumPartitions: len(files), ReplicationFactor: 1})
	if err := errors.Join(err, conn.Close()); err != nil {
		return fmt.Errorf("creating a topic: %w", err)
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(y.kafka), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(kgo.Lz4Compression()), kgo.UnknownTopicRetries(50))
	if err != nil {
		return fmt.Errorf("reaching the broker: %w", err)
	}
	defer client.Close()
	for i, path := range files {
		if err := produce(client, topic, i, path); err != nil {
			return err
		}
	}
	out, err := os.MkdirTemp(y.dir, "kafka")
	if err != nil {
		return fmt.Errorf("making a folder: %w", err)
	}
	u, err := y.ours(out, 2, []string{"kafka://" + y.kafka + "/" + topic})
	if err == nil {
		y.row(name, "tailgate, from a broker", 2, size, u)
	}
	return err
}

func produce(client *kgo.Client, topic string, partition int, path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("reading the logs: %w", err)
	}
	var batch []*kgo.Record
	for line := range bytes.Lines(data) {
		batch = append(batch, &kgo.Record{Topic: topic, Partition: int32(partition), Value: bytes.TrimSuffix(line, []byte{'\n'})})
	}
	if err := client.ProduceSync(context.Background(), batch...).FirstErr(); err != nil {
		return fmt.Errorf("producing: %w", err)
	}
	return nil
}

// usage is what a pipeline took.
type usage struct {
	wall, cpu time.Duration
	rss       int64 // bytes, the most
	rows      int64
}

func (u *usage) add(v usage) {
	u.wall += v.wall
	u.cpu += v.cpu
	u.rss = max(u.rss, v.rss)
	u.rows += v.rows
}

// timed runs a command and returns what it took and its output.
func timed(env []string, name string, args ...string) (u usage, out string, err error) {
	cmd := exec.Command(name, args...)
	cmd.Env, cmd.Stderr = append(os.Environ(), env...), os.Stderr
	began := time.Now()
	text, err := cmd.Output()
	if err != nil {
		return u, "", fmt.Errorf("running %s: %w", filepath.Base(name), err)
	}
	u.wall = time.Since(began)
	u.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	if r, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		u.rss = r.Maxrss << 10
	}
	return u, string(text), nil
}

func (y *yardstick) row(name, what string, cores int, size int64, u usage) {
	mb := float64(size) / 1e6
	fmt.Fprintf(y.table, "%s\t%s\t%d\t%.1f\t%.1f\t%d\t%d\n", name, what, cores, mb/u.wall.Seconds(), mb/u.cpu.Seconds(), u.rss>>20, u.rows)
}
