package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// Eight workers that share the partitions of a topic, and shards that share the days, give the bytes of one process. The
// broker is the real one of TAILGATE_KAFKA where there is one.
func TestKafkaEightWorkers(t *testing.T) {
	dir, bin := t.TempDir(), filepath.Join(t.TempDir(), "tailgate")
	linkSelf(t, bin)
	broker := testBroker(t)
	run := func(args ...string) {
		cmd := exec.CommandContext(t.Context(), bin, append(args, "-q")...)
		cmd.Dir = dir
		if said, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%q: %v\n%s", args, err, said)
		}
	}
	run("keys", "init", "--keys", "keys")
	run("sample", "--to", broker, "--start", "2026-11-28T23:57:00Z", "--duration", "6m", "--rate", "1/s")
	ingest := []string{"ingest", broker + "/sample-litellm", "--format", "litellm", "--keys", "keys", "--min-free", "0"}
	var group sync.WaitGroup
	for i := range senders {
		group.Go(func() {
			run(append(ingest[:len(ingest):len(ingest)], "--out", "many", "--worker", fmt.Sprintf("%d/%d", i, senders))...)
		})
	}
	group.Wait()
	run(append(ingest, "--out", "one")...)
	publish := []string{"--days", "2026-11-28..2026-11-29", "--k", "1", "--min-requests", "1", "--keys", "keys"}
	run(append([]string{"publish", "one"}, publish...)...)
	for i := range 2 {
		group.Go(func() { run(append([]string{"publish", "many", "--shard", fmt.Sprintf("%d/2", i)}, publish...)...) })
	}
	group.Wait()
	for _, day := range []string{"day=2026-11-28", "day=2026-11-29"} {
		one, err := os.ReadFile(filepath.Join(dir, "one", day, "requests.parquet"))
		if err != nil {
			t.Fatal(err)
		}
		many, err := os.ReadFile(filepath.Join(dir, "many", day, "requests.parquet"))
		if err != nil || !bytes.Equal(one, many) {
			t.Errorf("%s: %d bytes by one process, %d by eight, %v", day, len(one), len(many), err)
		}
	}
}
