package ingest_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"tailgate/ingest"
	"tailgate/internal/fault"
)

// T11: a run that begins within a batch gets the whole batch from the broker, and takes what is its.
func TestKafkaResumesWithinABatch(t *testing.T) {
	for name, codec := range map[string]kafka.Compression{"plain": 0, "gzip": kafka.Gzip, "zstd": kafka.Zstd} {
		b := newBroker(t, 1)
		b.produce(0, codec, requests(0, 40)...)
		b.produce(0, codec, requests(40, 80)...)
		o := options(t.TempDir())
		o.RotateRows = 7
		published := 0
		ingest.SetHook(&o, func(point string) error {
			if point == "after-link" {
				published++
			}
			if published == 8 { // 56 rows: within the second batch
				return errors.New("killed")
			}
			return nil
		})
		if _, err := ingest.Run(t.Context(), b.open(), o); err == nil {
			t.Fatal("the run was not killed")
		}
		ingest.SetHook(&o, nil)
		p := run(t, b.open(), o).Partitions[0]
		if p.First != 56 || p.Rows != 24 || p.Holes != 0 {
			t.Errorf("%s: %+v", name, p)
		}
		checkComplete(t, segmentRows(t, o.Lake), 80)
		figures(t, "T11", b, "%s: resumed at offset 56 of the batch 40–79: 24 rows, its first 16 records are not read twice", name)
	}
}

// T10 on the disk of a real broker: a byte of a batch flips there, and the broker sends it as it is. What lies before
// is read, nothing of the batch becomes a row.
func TestKafkaCorruptDisk(t *testing.T) {
	b := newBroker(t, 1)
	data := os.Getenv(envData)
	if b.Cluster != nil || data == "" {
		t.Skip("needs a real broker and its folder in " + envData + "; TestCorruptBatchIsNoRow stands in")
	}
	b.produce(0, 0, requests(0, 10)...)
	log := filepath.Join(data, "records", b.topic+"-0", "00000000000000000000.log")
	st, err := os.Stat(log)
	if err != nil {
		t.Fatal(err)
	}
	b.produce(0, 0, requests(10, 20)...)
	f, err := os.OpenFile(log, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	at, flip := st.Size()+500, []byte{0} // in a value of the second batch
	if _, err := f.ReadAt(flip, at); err != nil {
		t.Fatal(err)
	}
	flip[0] ^= 4
	if _, err := f.WriteAt(flip, at); err != nil {
		t.Fatal(err)
	}
	o := options(t.TempDir())
	src := b.openWith(ingest.KafkaOptions{MaxWait: 50 * time.Millisecond, FetchBytes: 1})
	_, err = ingest.Run(t.Context(), src, o)
	if fault.Of(err) != fault.Data || !strings.Contains(err.Error(), "crc32") || strings.Contains(err.Error(), "\n") {
		t.Errorf("%v", err)
	}
	checkComplete(t, segmentRows(t, o.Lake), 10)
	figures(t, "T10", b, "one bit flipped in the broker's log: exit 6 at its batch, the 10 rows before it are there, 0 of it")
}
