package ingest_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"tailgate/ingest"
	"tailgate/internal/rng"
)

// Environment of the process that TestKilledWriters kills.
const (
	envURL  = "TAILGATE_TEST_KAFKA"
	envLake = "TAILGATE_TEST_LAKE"
)

// TestKilledWriters kills two writers of one lake, again and again at random moments, and lets them finish at
// last: every request is there, once.
func TestKilledWriters(t *testing.T) {
	if url := os.Getenv(envURL); url != "" {
		ingestUntilKilled(t, url, os.Getenv(envLake))
		return
	}
	rounds := 3
	if os.Getenv("TAILGATE_PROVE") == "full" {
		rounds = 500
	}
	const requests = 1500
	b := newBroker(t, 3)
	b.produceRequests(requests, 3)
	lake := t.TempDir()
	rand := rng.New(1, "kills")
	for range rounds {
		lives := [2]time.Duration{}
		for i := range lives {
			lives[i] = time.Duration(60+rand.IntN(300)) * time.Millisecond
		}
		both(func(i int) {
			ctx, cancel := context.WithTimeout(t.Context(), lives[i])
			defer cancel()
			_ = writer(ctx, b.url(), lake).Run() // killed, as a rule
		})
	}
	before := len(segmentRows(t, lake))
	both(func(int) {
		if out, err := writer(t.Context(), b.url(), lake).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
	checkComplete(t, segmentRows(t, lake), requests)
	t.Logf("%d kills, %d of %d rows before the last run", 2*rounds, before, requests)
}

// both runs f for 0 and 1 at once.
func both(f func(i int)) {
	var wg sync.WaitGroup
	for i := range 2 {
		wg.Go(func() { f(i) })
	}
	wg.Wait()
}

// writer is a process of this test binary that ingests.
func writer(ctx context.Context, url, lake string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestKilledWriters$")
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s", envURL, url), fmt.Sprintf("%s=%s", envLake, lake))
	return cmd
}

// child is a process of this test binary that runs the test of the caller with one more environment variable.
func child(t *testing.T, env string) *exec.Cmd {
	name, _, _ := strings.Cut(t.Name(), "/")
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+name+"$")
	cmd.Env = append(os.Environ(), env)
	return cmd
}

func ingestUntilKilled(t *testing.T, url, lake string) {
	k, err := ingest.OpenKafka(t.Context(), url, ingest.KafkaOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	o := options(lake)
	o.RotateRows = 20
	run(t, k, o)
}
