package ingest_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"tailgate/ingest"
	"tailgate/internal/rng"
)

// envPublish is the lake that the child of TestKilledBuilds publishes.
const envPublish = "TAILGATE_TEST_PUBLISH"

// TestKilledBuilds kills builds of a day at random moments: the live file is always one that a build ended
// with, and the next build leaves nothing of them.
func TestKilledBuilds(t *testing.T) {
	if lake := os.Getenv(envPublish); lake != "" {
		for i := range 1000 {
			publishWith(t, ingest.PublishOptions{Lake: lake, K: 1, MinRequests: 1, Memory: 1, Tool: fmt.Sprint(i % 2)})
		}
		return
	}
	rounds := 3
	if os.Getenv("TAILGATE_PROVE") == "full" {
		rounds = 100
	}
	lake := lakeIn(t, traffic(7, 300), 100)
	var builds [2][]byte
	for i := range builds {
		_, builds[i] = publishWith(t, ingest.PublishOptions{Lake: lake, K: 1, MinRequests: 1, Tool: fmt.Sprint(i)})
	}
	rand := rng.New(2, "kills")
	for range rounds {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(100+rand.IntN(400))*time.Millisecond)
		cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestKilledBuilds$")
		cmd.Env = append(os.Environ(), envPublish+"="+lake)
		_ = cmd.Run() // killed
		cancel()
		paths, err := filepath.Glob(filepath.Join(lake, "day=*", "*.parquet"))
		if err != nil || len(paths) != 1 {
			t.Fatalf("the glob finds %v, %v", paths, err)
		}
		data, err := os.ReadFile(paths[0])
		if err != nil || !bytes.Equal(data, builds[0]) && !bytes.Equal(data, builds[1]) {
			t.Fatalf("the live file is no build: %d bytes, %v", len(data), err)
		}
	}
	if _, got := publishWith(t, ingest.PublishOptions{Lake: lake, K: 1, MinRequests: 1, Tool: "1"}); !bytes.Equal(got, builds[1]) {
		t.Error("after the kills the day has other bytes")
	}
	if left := workFiles(t, lake); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}
