//go:build unix

package ingest_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"tailgate/ingest"
	"tailgate/internal/fault"
)

// A group of three hands six partitions out. One member is killed in the middle, another joins: those that are left
// wait for its partitions and read them, and every request is there, once.
func TestKafkaGroupDistributes(t *testing.T) {
	const requests, partitions = 1200, 6
	b, lake := newBroker(t, partitions), t.TempDir()
	b.produceRequests(requests, partitions)
	group := envGroup + "=share-" + b.topic
	victim := startWriter(t, b, lake, group, envHold+"=1")
	if !victim.says(writerHolds) {
		t.Fatal("the first member ended early")
	}
	second, third := startWriter(t, b, lake, group), startWriter(t, b, lake, group)
	for i, w := range []writer{second, third} { // they have done their parts, the rest is the first one's
		if !w.says("waiting for the other members") {
			t.Fatalf("member %d ended early: %v", i+2, w.Wait())
		}
	}
	before := len(segmentRows(t, lake))
	if before == 0 || before >= requests {
		t.Errorf("%d rows while a member stands still", before)
	}
	if err := victim.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = victim.Wait()
	fourth := startWriter(t, b, lake, group)
	for i, w := range []writer{second, third, fourth} {
		if out, err := w.finish(); err != nil {
			t.Errorf("member %d: %v: %s", i+2, err, out)
		}
	}
	checkComplete(t, segmentRows(t, lake), requests)
	for p := range int32(partitions) {
		if at := b.committed(strings.TrimPrefix(group, envGroup+"="), p); at < requests/partitions {
			t.Errorf("the group was told %d of partition %d", at, p)
		}
	}
	t.Logf("%d of %d rows when a member was killed; in the end %d, 0 missing, 0 duplicates", before, requests, requests)
}

// Alone, a member has everything; a second run has nothing to do, also without records, and until a time.
func TestKafkaGroupOfOne(t *testing.T) {
	b := newBroker(t, 3)
	b.produceRequests(90, 3)
	k := b.openWith(ingest.KafkaOptions{MaxWait: 50 * time.Millisecond, SessionTimeout: 6 * time.Second})
	o := options(t.TempDir())
	o.Group, o.Distribute, o.RotateRows = "alone-"+b.topic, true, 20
	if r := run(t, k, o); r.Total.Rows != 90 || len(r.Partitions) != 3 {
		t.Errorf("%+v", r)
	}
	if r := run(t, k, o); r.Total.Rows != 0 {
		t.Errorf("a second run added %d rows", r.Total.Rows)
	}
	checkComplete(t, segmentRows(t, o.Lake), 90)
	o.Follow = true
	ctx, cancel := context.WithCancel(t.Context())
	o.OnProgress = func(p ingest.Progress) {
		if p.Elapsed > 0 {
			cancel()
		}
	}
	if _, err := ingest.Run(ctx, k, o); !errors.Is(err, context.Canceled) {
		t.Errorf("an interrupted member: %v", err)
	}
}

func TestDistributeNeedsAGroupAndATopic(t *testing.T) {
	o := options(t.TempDir())
	o.Distribute, o.Workers = true, 2
	if _, err := ingest.Run(t.Context(), newMemory(), o); fault.Of(err) != fault.Usage ||
		!strings.Contains(err.Error(), "needs a group") || !strings.Contains(err.Error(), "exclude each other") {
		t.Errorf("%v", err)
	}
	o.Group, o.Workers = "g", 0
	if _, err := ingest.Run(t.Context(), newMemory(), o); fault.Of(err) != fault.Usage || !strings.Contains(err.Error(), "Kafka topic") {
		t.Errorf("%v", err)
	}
}
