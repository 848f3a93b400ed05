package ingest

import (
	"context"
	"net"
	"time"

	"tailgate/internal/objstore"
)

// Store is where a lake is kept.
type Store = store

// SetHook makes f the failpoint hook of o.
func SetHook(o *Options, f func(point string) error) { o.hook = f }

// DecodeCount returns a function that decodes a message and counts its items.
func DecodeCount(format string) func(value []byte) int {
	o := Options{Format: format}
	decode := o.decoder()
	return func(value []byte) int {
		items := decode(value)
		for _, it := range items {
			if it.rec != nil {
				it.rec.clear()
			}
		}
		return len(items)
	}
}

// SetBeforeDecode makes f see each message before it is decoded.
func SetBeforeDecode(o *Options, f func(value []byte)) { o.beforeDecode = f }

// SetPublishHook makes f the failpoint hook of o.
func SetPublishHook(o *PublishOptions, f func(point string) error) { o.hook = f }

// SetStore puts f around the store of o.
func SetStore(o *Options, f func(Store) Store) { o.wrap = f }

// SetClock makes f the clock of the rotation.
func SetClock(o *Options, f func() time.Time) { o.now = f }

// SetFree makes f tell the free space of the disk.
func SetFree(o *Options, f func(dir string) (int64, error)) { o.free = f }

// WatchMemory makes f see every change of what open segments hold.
func WatchMemory(o *Options, f func(by int64)) { o.watchMemory = f }

// SetNetwork makes dial open the connections of o, and patience the limit of a fetch.
func SetNetwork(o *KafkaOptions, dial func(ctx context.Context, network, address string) (net.Conn, error), patience time.Duration) {
	o.dial, o.patience = dial, patience
}

// RowCount returns a function that decodes a message, makes the rows of its records, and counts them; nothing is
// written.
func RowCount(format string, anon Anonymizer) func(value []byte) int {
	o := Options{Format: format, Anonymizer: anon}.withDefaults()
	decode, rows := o.decoder(), newRowMaker(&o)
	return func(value []byte) (n int) {
		items := decode(value)
		for i := range items {
			rec := items[i].rec
			if rec == nil {
				continue
			}
			if _, err := rows.row(rec, place{topic: "k_test"}); err == nil {
				n++
			}
			rec.clear()
		}
		return n
	}
}

// SetForgetHook makes f the failpoint hook of o.
func SetForgetHook(o *ForgetOptions, f func(point string) error) { o.hook = f }

// SetExpireHook makes f the failpoint hook of o.
func SetExpireHook(o *ExpireOptions, f func(point string) error) { o.hook = f }

// DeadLetters returns the open letters of all published segments of a lake in a folder, in the order of their place.
func DeadLetters(lake string) ([]DeadLetter, error) {
	return deadLetters(context.Background(), objstore.NewDir(lake))
}

// DeadLettersIn does what DeadLetters does for a lake in a bucket.
func DeadLettersIn(ctx context.Context, lake *objstore.S3) ([]DeadLetter, error) {
	return deadLetters(ctx, lake)
}

func deadLetters(ctx context.Context, s objects) ([]DeadLetter, error) {
	logs, err := logsIn(ctx, s)
	if err != nil {
		return nil, err
	}
	var out []DeadLetter
	for _, id := range logs {
		segments, err := recoverIn(ctx, s, id)
		if err != nil {
			return nil, err
		}
		for i := range segments {
			f := &segments[i].facts
			if f.deadRecords() == 0 {
				continue
			}
			rows, _, err := openLetters(ctx, s, id, f)
			if err != nil {
				return nil, err
			}
			out = append(out, rows...)
		}
	}
	return out, nil
}
