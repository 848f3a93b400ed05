package ingest_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"testing"

	"github.com/segmentio/kafka-go"

	"tailgate/ingest"
)

// TestKafkaMemoryOfLargeRecords: records of 31 MB in eight partitions at once, read to the end and followed, in less
// than 512 MiB. The in-process broker would count, too.
func TestKafkaMemoryOfLargeRecords(t *testing.T) {
	if os.Getenv("TAILGATE_PROVE") != "full" || os.Getenv(envBroker) == "" {
		t.Skip("needs a real broker in " + envBroker + " and TAILGATE_PROVE=full")
	}
	const partitions, records, limit = 8, 24, 512 << 20
	b := newBroker(t, partitions, "max.message.bytes", "40000000")
	for i := range records {
		value := litellm(i, fields{"messages": string(bytes.Repeat([]byte("gull and kelp "), 31<<20/14))})
		b.produce(i%partitions, []kafka.Compression{kafka.Zstd, 0}[i/partitions%2], value)
	}
	for _, follow := range []bool{false, true} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		o := options(t.TempDir())
		o.Follow, o.Anonymizer = follow, untokenized{fakeAnon{key: "k1"}}
		o.OnProgress = func(p ingest.Progress) {
			if follow && p.Records == records {
				cancel()
			}
		}
		src := b.openWith(ingest.KafkaOptions{})
		forgetPeak()
		if _, err := ingest.Run(ctx, src, o); err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		peak := peakBytes()
		checkOffsets(t, segmentRows(t, o.Lake), records)
		if peak > limit {
			t.Errorf("follow %v: %d MiB", follow, peak>>20)
		}
		figures(t, "T12", b, "%d records of 31 MB in %d partitions, followed %v: %d rows, %d MiB at most (VmHWM)", records, partitions, follow, records, peak>>20)
	}
}
