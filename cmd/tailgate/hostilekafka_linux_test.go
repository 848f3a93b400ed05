package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go/compress"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// topics are those of a broker in this process, which takes batches as they are.
type topics struct {
	t      *testing.T
	addr   string
	client *kgo.Client
}

func newTopics(t *testing.T) *topics {
	t.Helper()
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.BrokerConfigs(map[string]string{"message.max.bytes": "134217728"}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	client, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.BrokerMaxWriteBytes(256<<20))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return &topics{t: t, addr: c.ListenAddrs()[0], client: client}
}

// topic is the URL of a new topic of one partition with these batches.
func (b *topics) topic(name string, batches ...[]byte) string {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), time.Minute)
	defer cancel()
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = name, 1, 1
	create := kmsg.NewPtrCreateTopicsRequest()
	create.Topics = append(create.Topics, topic)
	made, err := create.RequestWith(ctx, b.client)
	if err == nil {
		err = kerr.ErrorForCode(made.Topics[0].ErrorCode)
	}
	if err != nil {
		b.t.Fatal(err)
	}
	for _, batch := range batches {
		partition := kmsg.NewProduceRequestTopicPartition()
		partition.Records = batch
		topic := kmsg.NewProduceRequestTopic()
		topic.Topic, topic.TopicID, topic.Partitions = name, made.Topics[0].TopicID, append(topic.Partitions, partition)
		produce := kmsg.NewPtrProduceRequest()
		produce.Acks, produce.TimeoutMillis, produce.Topics = -1, 10_000, append(produce.Topics, topic)
		done, err := produce.RequestWith(ctx, b.client)
		if err == nil {
			err = kerr.ErrorForCode(done.Topics[0].Partitions[0].ErrorCode)
		}
		if err != nil {
			b.t.Fatalf("%s: %v", name, err)
		}
	}
	return "kafka://" + b.addr + "/" + name
}

// consuming is the command for a topic.
func consuming(url, format, keys string) []string {
	args := ingesting(format, keys)
	args[1] = url
	return args
}

// batch is one of Kafka's format 2 that says it has count records, which are packed as they are.
func batch(count int, codec compress.Compression, packed []byte) []byte {
	b := kmsg.RecordBatch{Length: int32(49 + len(packed)), PartitionLeaderEpoch: -1, Magic: 2, Attributes: int16(codec), LastOffsetDelta: int32(count - 1),
		FirstTimestamp: 1_795_000_000_000, MaxTimestamp: 1_795_000_000_000, ProducerID: -1, ProducerEpoch: -1, FirstSequence: -1, NumRecords: int32(count), Records: packed}
	out := b.AppendTo(nil)
	binary.BigEndian.PutUint32(out[17:], crc32.Checksum(out[21:], crc32.MakeTable(crc32.Castagnoli)))
	return out
}

// records are n of a batch, whose offsets go on from there; a nil value is null.
func records(n int, value func(i int) []byte, from int) []byte {
	var out, body []byte
	for i := range n {
		r := kmsg.Record{OffsetDelta: int32(from + i), Value: value(i)}
		body = r.AppendTo(body[:0])[1:] // without the length, which was 0
		out = append(binary.AppendVarint(out, int64(len(body))), body...)
	}
	return out
}

// one is a batch of one record.
func one(value []byte) []byte {
	return batch(1, 0, records(1, func(int) []byte { return value }, 0))
}

// compressed packs what is written n times.
func compressed(codec compress.Compression, piece []byte, n int) []byte {
	var out bytes.Buffer
	w := codec.Codec().NewWriter(&out)
	for range n {
		_, _ = w.Write(piece)
	}
	_ = w.Close()
	return out.Bytes()
}

// TestHostileBatches: batches that become much more than they are, or are not what they say, between two good records.
func TestHostileBatches(t *testing.T) {
	keys, broker := newKeys(t), newTopics(t)
	good, mib := one([]byte(goodLiteLLM)), size(200, 8192)
	zeros := make([]byte, 1<<20)
	bomb := func(codec compress.Compression) func() []byte {
		return func() []byte { return batch(3, codec, compressed(codec, zeros, mib)) }
	}
	tiny := func(codec compress.Compression, value []byte) func() []byte {
		return func() []byte {
			n := size(4_000_000, 9_000_000) // of 10 bytes: more would be a bomb
			of := records(n, func(int) []byte { return value }, 0)
			if codec != 0 {
				of = compressed(codec, of, 1)
			}
			return batch(n, codec, of)
		}
	}
	raw := func(count int, codec compress.Compression, packed []byte) func() []byte {
		return func() []byte { return batch(count, codec, packed) }
	}
	xerial := "\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01"
	cases := []struct {
		name, prints string
		batch        func() []byte
	}{
		{"a bomb of gzip", `"inflates": 3\b`, bomb(compress.Gzip)},
		{"a bomb of snappy", `"inflates": 3\b`, func() []byte { return batch(3, compress.Snappy, compressed(compress.Snappy, zeros, 200)) }},
		{"a bomb of lz4", `"inflates": 3\b`, func() []byte { return batch(3, compress.Lz4, compressed(compress.Lz4, zeros, size(200, 4096))) }},
		{"a bomb of zstd", `"inflates": 3\b`, bomb(compress.Zstd)},
		{"a bomb of two billion records", `"inflates": 1048576\b`, func() []byte {
			return batch(math.MaxInt32, compress.Zstd, compressed(compress.Zstd, zeros, 200))
		}},
		{"two billion records that are none", `"broken_batch": 1048576\b`, raw(math.MaxInt32, 0, []byte("abc"))},
		{"a snappy block that claims 4 GiB", `"inflates": 3\b`, raw(3, compress.Snappy, []byte("\xff\xff\xff\xff\x0f\x00a"))},
		{"a snappy block that claims 90 MB", ``, raw(3, compress.Snappy, []byte("\x80\x93\xeb\x2a\x00a"))},
		{"a snappy frame that claims 4 GiB", ``, raw(3, compress.Snappy, []byte(xerial+"\xff\xff\xff\xff\x01\x00a"))},
		{"a snappy frame below zero", ``, raw(3, compress.Snappy, []byte(xerial+"\x80\x00\x00\x00\x01\x00a"))},
		{"snappy frames of nothing", ``, raw(3, compress.Snappy, append([]byte(xerial), bytes.Repeat([]byte("\x00\x00\x00\x01\x00"), 1<<20)...))},
		{"a zstd window of 2 GiB", ``, raw(3, compress.Zstd, []byte("\x28\xb5\x2f\xfd\x00\xa8"+strings.Repeat("\x00\x00\x00", 1000)))},
		{"a zstd window of 512 MiB", ``, raw(3, compress.Zstd, []byte("\x28\xb5\x2f\xfd\x00\x98"+strings.Repeat("\x00\x00\x00", 1000)))},
		{"a zstd frame that claims 1 GB", ``, raw(3, compress.Zstd, []byte("\x28\xb5\x2f\xfd\xe0\x00\x00\x00\x40\x00\x00\x00\x00"+strings.Repeat("\x02\x00\x10a", 10)))},
		{"zstd frames of nothing", ``, raw(3, compress.Zstd, bytes.Repeat([]byte("\x28\xb5\x2f\xfd\x20\x00\x01\x00\x00"), 1<<20))},
		{"gzip members of nothing", ``, raw(3, compress.Gzip, bytes.Repeat(compressed(compress.Gzip, nil, 1), 1<<18))},
		{"a cut gzip stream", ``, func() []byte {
			p := compressed(compress.Gzip, []byte("abc"), 1000)
			return batch(3, compress.Gzip, p[:len(p)-9])
		}},
		{"no gzip at all", ``, raw(3, compress.Gzip, zeros)},
		{"no lz4 at all", ``, raw(3, compress.Lz4, zeros)},
		{"millions of nulls", `"tombstone": \d{7}`, tiny(compress.Zstd, nil)},
		{"millions of nulls, not compressed", `"tombstone": \d{7}`, tiny(0, nil)},
		{"millions of empty records", `"empty": \d{7}`, tiny(compress.Gzip, []byte{})},
		{"a count beyond the records", `"broken_batch": 999999\b`, raw(1_000_000, 0, records(1, func(int) []byte { return []byte(goodLiteLLM) }, 0))},
		{"a record without end", ``, raw(1, 0, bytes.Repeat([]byte{0xff}, 1<<20))},
		{"a record of 2^62 bytes", ``, raw(1, 0, binary.AppendVarint(nil, 1<<62))},
		{"a value of 2^62 bytes", ``, raw(1, 0, append(binary.AppendVarint(nil, 20), append([]byte{0, 0, 0, 1}, binary.AppendVarint(nil, 1<<62)...)...))},
		{"a key of 64 MiB", ``, func() []byte {
			r := kmsg.Record{Key: bytes.Repeat(zeros, 64), Value: []byte(goodLiteLLM)}
			body := r.AppendTo(nil)[1:]
			return batch(1, compress.Zstd, compressed(compress.Zstd, append(binary.AppendVarint(nil, int64(len(body))), body...), 1))
		}},
		{"an offset beyond the batch", `"broken_batch": 2\b`, raw(2, 0, records(1, func(int) []byte { return nil }, 1<<30))},
		{"an offset below the batch", `"broken_batch": 2\b`, raw(2, 0, records(1, func(int) []byte { return nil }, -1<<30))},
		{"the same offset again", `"broken_batch": 1\b`, raw(2, 0, slices.Repeat(records(1, func(int) []byte { return nil }, 0), 2))},
		{"no record", `"rows": 2\b`, raw(0, 0, nil)},
	}
	var all []hostile
	for i, c := range cases {
		if !chosen(i) {
			continue
		}
		url := broker.topic(fmt.Sprintf("batches-%d", i), good, c.batch(), good)
		all = append(all, hostile{name: c.name, args: consuming(url, "litellm", keys), prints: c.prints, leaves: []string{"lake"},
			mib: 512, cpu: time.Duration(size(8, 60)) * time.Second})
	}
	survivesAll(t, all)
}

// varint and field make messages of protobuf.
func varint(v uint64) []byte { return binary.AppendUvarint(nil, v) }

func field(n int, content []byte) []byte {
	return slices.Concat(varint(uint64(n)<<3|2), varint(uint64(len(content))), content)
}

// TestHostileProtobuf: OTLP with lengths that lie, values in values, and counts without end, as records of a topic
// between two good ones. A file of them is no log (exit 1, with the hint).
func TestHostileProtobuf(t *testing.T) {
	keys, broker := newKeys(t), newTopics(t)
	nested := func(levels int, fields ...int) []byte { // written from the end, which is the innermost
		var heads [][]byte
		for i, length := 0, 0; i < levels; i++ {
			heads = append(heads, slices.Concat(varint(uint64(fields[i%len(fields)])<<3|2), varint(uint64(length))))
			length += len(heads[i])
		}
		slices.Reverse(heads)
		return slices.Concat(heads...)
	}
	good, err := os.ReadFile("../../ingest/testdata/otlp-events.binpb")
	if err != nil {
		t.Fatal(err)
	}
	var (
		n         = size(300_000, 1_000_000)
		span      = func(inner []byte) []byte { return field(1, field(2, field(2, inner))) }
		called    = slices.Concat(field(1, make([]byte, 16)), field(2, make([]byte, 8))) // a span by its ids
		attribute = func(key string, value []byte) []byte {
			return field(9, slices.Concat(field(1, []byte(key)), field(2, value)))
		}
		content = func(value []byte) []byte {
			return span(slices.Concat(called, attribute("gen_ai.input.messages", value)))
		}
	)
	messages := map[string][]byte{
		"lying length":              {0x0a, 0xff, 0xff, 0xff, 0xff, 0x7f},
		"length of 2^63":            {0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f},
		"length of 2^64":            {0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01},
		"varint without end":        bytes.Repeat([]byte{0xff}, 1<<20),
		"groups in groups":          append([]byte{0x0b}, bytes.Repeat([]byte{0x0b}, 1<<20)...),
		"groups in a span":          span(slices.Concat(called, bytes.Repeat([]byte{0x83, 0x01}, 1<<20))),
		"values in values":          content(nested(100_000, 5, 1)),
		"lists of maps":             content(nested(100_000, 2, 1, 6, 1)),
		"values in the body":        field(1, field(2, field(2, field(5, nested(100_000, 5, 1))))),
		"many values":               content(field(5, bytes.Repeat(field(1, nil), n))),
		"many spans":                field(1, field(2, bytes.Repeat(field(2, called), n))),
		"many spans without ids":    field(1, field(2, bytes.Repeat(field(2, nil), n))),
		"many attributes":           span(slices.Concat(called, bytes.Repeat(field(9, field(1, []byte("k"))), n))),
		"one attribute many times":  span(slices.Concat(called, bytes.Repeat(attribute("gen_ai.input.messages", field(1, []byte("[]"))), n/4))),
		"numbered attributes":       span(slices.Concat(called, manyAttributes(n/4))),
		"many resources":            bytes.Repeat(field(1, nil), 10*n),
		"many scopes":               field(1, bytes.Repeat(field(2, nil), 10*n)),
		"attributes of a resource":  field(1, field(1, bytes.Repeat(field(1, field(1, []byte("k"))), n))),
		"many events":               span(slices.Concat(called, bytes.Repeat(field(11, field(2, []byte("gen_ai.user.message"))), n))),
		"ids of a megabyte":         span(slices.Concat(field(1, make([]byte, 1<<20)), field(2, make([]byte, 1<<20)), field(4, make([]byte, 1<<20)))),
		"one field many times":      span(slices.Concat(called, bytes.Repeat(field(4, make([]byte, 100)), n/4))),
		"brackets in the content":   content(field(1, bytes.Repeat([]byte("["), 4<<20))),
		"broken UTF-8 in content":   content(field(1, bytes.Repeat([]byte{0xff}, 8<<20))),
		"messages in the content":   content(field(1, []byte("["+strings.Repeat(`{"role":"user","parts":[{}]},`, n/4)+"{}]"))),
		"content of 30 MiB":         content(field(1, []byte(`[{"role":"user","parts":[{"type":"text","content":"`+strings.Repeat("a b ", 7<<20)+`"}]}]`))),
		"larger than a record":      content(field(1, bytes.Repeat([]byte("a"), 40<<20))),
		"a gzip bomb":               compressed(compress.Gzip, make([]byte, 1<<20), size(200, 8192)),
		"a zstd bomb":               compressed(compress.Zstd, make([]byte, 1<<20), size(200, 8192)),
		"stamps beyond all bounds":  span(slices.Concat(called, []byte{0x39}, bytes.Repeat([]byte{0xff}, 8), []byte{0x41}, bytes.Repeat([]byte{0x7f}, 8))),
		"counts beyond all bounds":  span(slices.Concat(called, attribute("gen_ai.usage.input_tokens", slices.Concat([]byte{0x18}, varint(1<<63))))),
		"cut in the middle":         good[:len(good)/2],
		"good with a lie":           slices.Concat(good, []byte{0x0a, 0xff, 0xff, 0xff, 0x7f}),
		"good, but of another type": bytes.ReplaceAll(good, []byte{0x0a}, []byte{0x0d}),
	}
	var cases []hostile
	for i, name := range slices.Sorted(maps.Keys(messages)) {
		m := messages[name]
		for j, format := range []string{"otlp-proto", "openinference", "vllm"} {
			if !chosen(3*i + j) {
				continue
			}
			url := broker.topic(fmt.Sprintf("%s-%d", format, i), one(good), one(m), one(good))
			h := hostile{name: format + ", " + name, args: consuming(url, format, keys), prints: `"next": 3,`, leaves: []string{"lake"}, mib: 384, cpu: time.Duration(size(3, 20)) * time.Second}
			cases = append(cases, h)
		}
		if chosen(i) {
			cases = append(cases, hostile{name: "a file, " + name, files: map[string]any{"log": m}, args: ingesting("otlp-proto", keys), exit: []int{0, 1}, leaves: []string{"lake"}, mib: 384})
		}
	}
	survivesAll(t, cases)
}

// manyAttributes are n of a span that belong to the messages of a prompt by their names.
func manyAttributes(n int) []byte {
	var out []byte
	for i := range n {
		out = append(out, field(9, slices.Concat(field(1, fmt.Appendf(nil, "llm.input_messages.%d.message.content", i)), field(2, field(1, []byte("a")))))...)
	}
	return out
}
