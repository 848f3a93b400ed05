package ingest_test

import (
	"context"
	"crypto/rand"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"tailgate/ingest"
)

// The suite runs on an in-process broker, or on a real one where these are set.
const (
	envBroker = "TAILGATE_KAFKA"      // host:port
	envData   = "TAILGATE_KAFKA_DATA" // folder that deploy/dev/kafka/run started it in, for the tests that restart it
)

// broker is a Kafka with one topic of the test's own.
type broker struct {
	*kfake.Cluster // nil on a real broker
	t              testing.TB
	addr           string
	topic          string

	data  string // folder of the fake's records
	admin *kgo.Client
}

// newBroker gives the test a topic of so many partitions; configs are pairs of topic settings.
func newBroker(t testing.TB, partitions int32, configs ...string) *broker {
	t.Helper()
	b := &broker{t: t, addr: os.Getenv(envBroker), topic: "tides-" + strings.ToLower(rand.Text())}
	if b.addr == "" {
		return newFakeBroker(t, partitions, configs...)
	}
	b.connect(partitions, configs...)
	t.Cleanup(b.deleteTopic)
	return b
}

// newFakeBroker is newBroker for a test that injects faults, which only the in-process broker does.
func newFakeBroker(t testing.TB, partitions int32, configs ...string) *broker {
	t.Helper()
	b := &broker{t: t, topic: "tides", data: t.TempDir()}
	b.startFake()
	t.Cleanup(func() { b.Close() })
	b.connect(partitions, configs...)
	return b
}

// connect opens an admin client and makes the topic.
func (b *broker) connect(partitions int32, configs ...string) {
	b.t.Helper()
	t := b.t
	admin, err := kgo.NewClient(kgo.SeedBrokers(b.addr))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(admin.Close)
	b.admin = admin
	b.createTopic(partitions, configs...)
}

// startFake starts the in-process broker, the second time with the records and the port of the first.
func (b *broker) startFake() {
	b.t.Helper()
	o := []kfake.Opt{kfake.NumBrokers(1), kfake.DataDir(b.data),
		kfake.BrokerConfigs(map[string]string{"message.max.bytes": "40000000"})}
	if b.addr != "" {
		_, port, _ := net.SplitHostPort(b.addr)
		n, _ := strconv.Atoi(port)
		o = append(o, kfake.Ports(n))
	}
	c, err := kfake.NewCluster(o...)
	if err != nil {
		b.t.Fatal(err)
	}
	b.Cluster, b.addr = c, c.ListenAddrs()[0]
}

// restart stops the broker and starts it again on its records.
func (b *broker) restart() {
	b.t.Helper()
	if b.Cluster != nil {
		b.Close()
		b.startFake()
		return
	}
	for _, command := range []string{"stop", "start"} {
		script := filepath.Join("..", "deploy", "dev", "kafka", "run")
		if out, err := exec.Command(script, command, "--data", os.Getenv(envData)).CombinedOutput(); err != nil {
			b.t.Errorf("%s the broker: %v: %s", command, err, out)
		}
	}
}

// restarts tells whether the test can restart the broker.
func (b *broker) restarts() bool { return b.Cluster != nil || os.Getenv(envData) != "" }

// needRestart skips a test on a real broker that the test cannot restart.
func (b *broker) needRestart() {
	if !b.restarts() {
		b.t.Skip(envData + " is not set")
	}
}

func (b *broker) url() string { return "kafka://" + b.addr + "/" + b.topic }

func (b *broker) open() *ingest.Kafka {
	b.t.Helper()
	return b.openWith(ingest.KafkaOptions{MaxWait: 50 * time.Millisecond})
}

func (b *broker) openWith(o ingest.KafkaOptions) *ingest.Kafka {
	b.t.Helper()
	k, err := ingest.OpenKafka(b.t.Context(), b.url(), o)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(k.Close)
	return k
}

func (b *broker) createTopic(partitions int32, configs ...string) {
	b.t.Helper()
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = b.topic, partitions, 1
	for i := 0; i < len(configs); i += 2 {
		c := kmsg.NewCreateTopicsRequestTopicConfig()
		c.Name, c.Value = configs[i], kmsg.StringPtr(configs[i+1])
		topic.Configs = append(topic.Configs, c)
	}
	req := kmsg.NewPtrCreateTopicsRequest()
	req.Topics = append(req.Topics, topic)
	resp := request(b, req)
	if err := kerr.ErrorForCode(resp.Topics[0].ErrorCode); err != nil {
		b.t.Fatal(err)
	}
}

func (b *broker) deleteTopic() {
	topic := kmsg.NewDeleteTopicsRequestTopic()
	topic.Topic = kmsg.StringPtr(b.topic)
	req := kmsg.NewPtrDeleteTopicsRequest()
	req.Topics, req.TopicNames = append(req.Topics, topic), []string{b.topic}
	resp := request(b, req)
	if err := kerr.ErrorForCode(resp.Topics[0].ErrorCode); err != nil {
		b.t.Error(err)
	}
}

// deleteRecords removes the records of partition 0 before offset to, as retention does.
func (b *broker) deleteRecords(to int64) {
	b.t.Helper()
	partition := kmsg.NewDeleteRecordsRequestTopicPartition()
	partition.Offset = to
	topic := kmsg.NewDeleteRecordsRequestTopic()
	topic.Topic, topic.Partitions = b.topic, append(topic.Partitions, partition)
	req := kmsg.NewPtrDeleteRecordsRequest()
	req.Topics, req.TimeoutMillis = append(req.Topics, topic), 10_000
	resp := request(b, req)
	if err := kerr.ErrorForCode(resp.Topics[0].Partitions[0].ErrorCode); err != nil {
		b.t.Error(err)
	}
}

// committed is the position that a group was told.
func (b *broker) committed(group string, partition int32) int64 {
	b.t.Helper()
	topic := kmsg.NewOffsetFetchRequestTopic()
	topic.Topic, topic.Partitions = b.topic, []int32{partition}
	req := kmsg.NewPtrOffsetFetchRequest()
	req.Group, req.Topics = group, append(req.Topics, topic)
	resp := request(b, req)
	return resp.Topics[0].Partitions[0].Offset
}

// request sends an admin request. The context is not the test's: clean-up needs it too.
func request[R kmsg.Response](b *broker, req interface {
	kmsg.Request
	RequestWith(context.Context, kmsg.Requestor) (R, error)
}) R {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	resp, err := req.RequestWith(ctx, b.admin)
	if err != nil {
		b.t.Fatalf("%T: %v", req, err)
	}
	return resp
}

// keyed is a key and a value; a nil value is a tombstone. A zero time is now.
type keyed struct {
	key, value []byte
	at         time.Time
}

// produce appends values to one partition as one batch; nil is a tombstone.
func (b *broker) produce(partition int, codec kafka.Compression, values ...[]byte) {
	b.t.Helper()
	messages := make([]keyed, len(values))
	for i, v := range values {
		messages[i].value = v
	}
	b.produceKeyed(partition, codec, messages)
}

// produceKeyed appends one batch. The broker may not know a new topic or its leader yet: then it tries again.
func (b *broker) produceKeyed(partition int, codec kafka.Compression, messages []keyed) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), time.Minute)
	defer cancel()
	for {
		err := b.tryProduce(ctx, partition, codec, messages)
		if err == nil {
			return
		}
		soon := slices.ContainsFunc([]error{kafka.NotLeaderForPartition, kafka.UnknownTopicOrPartition,
			protocol.ErrNoTopic, protocol.ErrNoLeader}, func(e error) bool { return errors.Is(err, e) })
		if !soon {
			b.t.Fatal(err)
		}
	}
}

func (b *broker) tryProduce(ctx context.Context, partition int, codec kafka.Compression, messages []keyed) error {
	records := make([]kafka.Record, len(messages))
	for i, m := range messages {
		records[i] = kafka.Record{Key: kafka.NewBytes(m.key), Value: kafka.NewBytes(m.value), Time: m.at}
	}
	transport := &kafka.Transport{}
	defer transport.CloseIdleConnections()
	client := kafka.Client{Addr: kafka.TCP(b.addr), Transport: transport}
	resp, err := client.Produce(ctx, &kafka.ProduceRequest{
		Topic: b.topic, Partition: partition, RequiredAcks: kafka.RequireAll, Compression: codec,
		Records: kafka.NewRecordReader(records...),
	})
	if err != nil {
		return err
	}
	return resp.Error
}

// produceRequests spreads the requests 0 … n−1 over the partitions, in batches.
func (b *broker) produceRequests(n, partitions int) { b.produceRange(0, n, partitions) }

// produceRange spreads the requests from … to−1 over the partitions, in batches.
func (b *broker) produceRange(from, to, partitions int) {
	values := make([][][]byte, partitions)
	for i := from; i < to; i++ {
		p := i % partitions
		values[p] = append(values[p], litellm(i, nil))
		if len(values[p]) == 40 || i >= to-partitions {
			b.produce(p, kafka.Zstd, values[p]...)
			values[p] = nil
		}
	}
}

// transaction appends values to partition 0 as one transaction, of which end decides. No other transaction may be
// open when it ends.
func (b *broker) transaction(id string, values ...[]byte) (end func(kgo.TransactionEndTry)) {
	b.t.Helper()
	p, err := kgo.NewClient(kgo.SeedBrokers(b.addr), kgo.TransactionalID(b.topic+id),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.DefaultProduceTopic(b.topic))
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(p.Close)
	if err := p.BeginTransaction(); err != nil {
		b.t.Fatal(err)
	}
	for _, v := range values {
		if err := p.ProduceSync(b.t.Context(), &kgo.Record{Value: v}).FirstErr(); err != nil {
			b.t.Fatal(err)
		}
	}
	return func(commit kgo.TransactionEndTry) {
		b.t.Helper()
		if err := p.EndTransaction(b.t.Context(), commit); err != nil {
			b.t.Fatal(err)
		}
		b.settle()
	}
}

// settle waits until no transaction of partition 0 is open: its marker is written after its end was granted.
func (b *broker) settle() {
	b.t.Helper()
	for deadline := time.Now().Add(time.Minute); b.end(0) != b.end(1); {
		if time.Now().After(deadline) {
			b.t.Fatal("a transaction stays open")
		}
	}
}

// end is the end of partition 0, for readers of everything (isolation 0) or of what is decided (1).
func (b *broker) end(isolation int8) int64 {
	b.t.Helper()
	partition := kmsg.NewListOffsetsRequestTopicPartition()
	partition.Timestamp = -1
	topic := kmsg.NewListOffsetsRequestTopic()
	topic.Topic, topic.Partitions = b.topic, append(topic.Partitions, partition)
	req := kmsg.NewPtrListOffsetsRequest()
	req.IsolationLevel, req.Topics = isolation, append(req.Topics, topic)
	resp := request(b, req)
	return resp.Topics[0].Partitions[0].Offset
}

// offsets reads partition 0 with another client, up to offset end, and returns the offsets that hold a record.
func (b *broker) offsets(end int64) []int64 {
	b.t.Helper()
	c, err := kgo.NewClient(kgo.SeedBrokers(b.addr), kgo.KeepControlRecords(),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{b.topic: {0: kgo.NewOffset().AtStart()}}))
	if err != nil {
		b.t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(b.t.Context(), time.Minute)
	defer cancel()
	var out []int64
	for len(out) == 0 || out[len(out)-1] < end-1 {
		fetched := c.PollFetches(ctx)
		if err := fetched.Err(); errors.Is(err, context.DeadlineExceeded) {
			b.t.Fatalf("record %d did not come: %v", end-1, out)
		}
		fetched.EachRecord(func(r *kgo.Record) { out = append(out, r.Offset) })
	}
	return out
}
