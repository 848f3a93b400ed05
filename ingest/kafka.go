package ingest

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/url"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"

	"tailgate/internal/fault"
)

// KafkaOptions of [OpenKafka].
type KafkaOptions struct {
	FetchBytes int           // most bytes asked for at a time; 0 = 8 MiB
	MaxWait    time.Duration // how long a broker may wait for records; 0 = 1 s
	TLS        *tls.Config   // nil = plaintext
	SASL       *SASL         // nil = no credentials
	Logger     *slog.Logger  // nil = discard
	// SessionTimeout is how long a member of a group may be silent before its partitions go to others; 0 = 15 s.
	SessionTimeout time.Duration

	dial     func(ctx context.Context, network, address string) (net.Conn, error) // of the tests; nil = as usual
	patience time.Duration                                                        // with a fetch; 0 = fetchTimeout
}

// Time limits that keep a broker which does not answer from holding a run: opening takes at most dialTimeout
// and twice answerTimeout, together under 15 s.
const (
	dialTimeout   = 4 * time.Second
	answerTimeout = 5 * time.Second
	fetchTimeout  = 30 * time.Second
)

// Kafka is one topic of a Kafka cluster as a [Source]. It reads by offset through Client.Fetch: kafka-go's
// Reader skips what retention deleted without a word.
//
// Transactions: only decided ones are read; the records of aborted ones come with a mark.
type Kafka struct {
	topic     string
	brokers   []string
	client    *kafka.Client
	transport *kafka.Transport
	opts      KafkaOptions
	portions  portions

	mu   sync.Mutex
	rest map[int32]*answer // by partition: what has not been read of an answer
}

// OpenKafka opens the topic of a URL kafka://host:port[,host:port]/topic. A broker that cannot be reached or
// is none, and a topic that does not exist, are errors within 15 s.
func OpenKafka(ctx context.Context, rawURL string, o KafkaOptions) (*Kafka, error) {
	brokers, topic, err := parseKafkaURL(rawURL)
	if err != nil {
		return nil, fault.Mark(err, fault.Usage, "for example kafka://broker:9092/topic")
	}
	o.FetchBytes = or(o.FetchBytes, portionBytes)
	o.MaxWait = or(o.MaxWait, time.Second)
	o.patience = or(o.patience, fetchTimeout)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	mechanism, err := o.SASL.mechanism()
	if err != nil {
		return nil, fault.Mark(err, fault.Usage, "")
	}
	alive, err := reachable(ctx, brokers, &o, mechanism)
	if err != nil {
		return nil, err
	}
	t := &kafka.Transport{ClientID: "tailgate", MetadataTopics: []string{topic}, TLS: o.TLS, SASL: mechanism, Dial: o.dial}
	registerRaw()
	k := &Kafka{topic: topic, rest: map[int32]*answer{}, brokers: alive, transport: t, opts: o,
		portions: portions{bytes: portionFor(runtime.GOMAXPROCS(0))},
		client:   &kafka.Client{Addr: kafka.TCP(alive...), Transport: t}}
	if _, err := k.partitionIDs(ctx); err != nil {
		k.Close()
		return nil, err
	}
	return k, nil
}

// Close closes the connections.
func (k *Kafka) Close() { k.transport.CloseIdleConnections() }

func parseKafkaURL(raw string) (brokers []string, topic string, err error) {
	rest, ok := strings.CutPrefix(raw, "kafka://")
	if !ok {
		return nil, "", errors.New("kafka URL must begin with kafka://")
	}
	hosts, topic, _ := strings.Cut(rest, "/")
	if topic, err = url.PathUnescape(topic); err != nil || topic == "" || strings.ContainsAny(topic, "/?#") {
		return nil, "", errors.New("kafka URL must name one topic after the brokers")
	}
	for host := range strings.SplitSeq(hosts, ",") {
		if _, _, err := net.SplitHostPort(host); err != nil {
			host = net.JoinHostPort(strings.Trim(host, "[]"), "9092")
		}
		if strings.HasPrefix(host, ":") {
			return nil, "", errors.New("kafka URL must name the brokers as host:port, separated by commas")
		}
		brokers = append(brokers, host)
	}
	return brokers, topic, nil
}

// partitionIDs asks for the topic's partitions. A topic that is being created is asked for again.
func (k *Kafka) partitionIDs(ctx context.Context) ([]int, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	for {
		m, err := k.client.Metadata(ctx, &kafka.MetadataRequest{Topics: []string{k.topic}})
		if err != nil {
			return nil, k.unanswered(ctx, "asking for the topic's partitions", err)
		}
		if len(m.Topics) == 1 {
			ids, err := topicPartitions(&m.Topics[0])
			if !errors.Is(err, kafka.LeaderNotAvailable) {
				return ids, err
			}
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("reading topic %s: no leader for it", k.topic)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func topicPartitions(t *kafka.Topic) ([]int, error) {
	switch {
	case errors.Is(t.Error, kafka.LeaderNotAvailable):
		return nil, t.Error
	case errors.Is(t.Error, kafka.UnknownTopicOrPartition):
		return nil, fault.Mark(fmt.Errorf("reading topic %s: the broker has no such topic", t.Name), fault.Failure,
			"topics are never created by reading; check the name")
	case t.Error != nil:
		return nil, fmt.Errorf("reading topic %s: %w", t.Name, t.Error)
	}
	ids := make([]int, len(t.Partitions))
	for i, p := range t.Partitions {
		ids[i] = p.ID
	}
	slices.Sort(ids)
	return ids, nil
}

// unanswered words the error of a request: a limit that passed means that no broker spoke Kafka with us.
func (k *Kafka) unanswered(ctx context.Context, doing string, err error) error {
	var slow net.Error
	if errors.Is(ctx.Err(), context.DeadlineExceeded) || errors.As(err, &slow) && slow.Timeout() {
		return fault.Mark(fmt.Errorf("%s: no answer from %s", doing, strings.Join(k.brokers, ",")), fault.Failure,
			"is it a Kafka broker, and does this listener need TLS (--kafka-tls) or credentials (--sasl)?")
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return fault.Mark(fmt.Errorf("%s: %s closed the connection", doing, strings.Join(k.brokers, ",")), fault.Failure,
			"does this listener need credentials (--sasl) or TLS (--kafka-tls)?")
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// Partitions lists the topic's partitions with their first and last offsets. While a partition's leader moves,
// it asks again.
func (k *Kafka) Partitions(ctx context.Context) ([]Partition, error) {
	ids, err := k.partitionIDs(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	for {
		parts, err := k.bounds(ctx, ids)
		if !leaderMoves(err) {
			return parts, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// leaderMoves tells whether err is that of a partition which has no leader now or a new one.
func leaderMoves(err error) bool {
	return errors.Is(err, kafka.NotLeaderForPartition) || errors.Is(err, kafka.LeaderNotAvailable) ||
		errors.Is(err, protocol.ErrNoLeader)
}

// bounds asks once for the first and last offsets of the partitions ids.
func (k *Kafka) bounds(ctx context.Context, ids []int) ([]Partition, error) {
	requests := make([]kafka.OffsetRequest, 0, 2*len(ids))
	for _, id := range ids {
		requests = append(requests, kafka.FirstOffsetOf(id), kafka.LastOffsetOf(id))
	}
	resp, err := k.client.ListOffsets(ctx, &kafka.ListOffsetsRequest{
		Topics: map[string][]kafka.OffsetRequest{k.topic: requests}, IsolationLevel: kafka.ReadCommitted,
	})
	if err != nil {
		return nil, k.unanswered(ctx, "asking for the topic's offsets", err)
	}
	offsets := resp.Topics[k.topic]
	slices.SortFunc(offsets, func(a, b kafka.PartitionOffsets) int { return a.Partition - b.Partition })
	parts := make([]Partition, 0, len(ids))
	for _, o := range offsets {
		if o.Error != nil {
			return nil, fmt.Errorf("asking for the offsets of %s/%d: %w", k.topic, o.Partition, o.Error)
		}
		parts = append(parts, Partition{Topic: k.topic, ID: int32(o.Partition), First: o.FirstOffset, End: o.LastOffset})
	}
	if len(parts) != len(ids) {
		return nil, fmt.Errorf("asking for the offsets of %s: %d of %d partitions answered", k.topic, len(parts), len(ids))
	}
	return parts, nil
}

// OffsetsAt finds, by partition, the first record that the log took at t or later.
func (k *Kafka) OffsetsAt(ctx context.Context, t time.Time) (map[int32]int64, error) {
	ids, err := k.partitionIDs(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	requests := make([]kafka.OffsetRequest, len(ids))
	for i, id := range ids {
		requests[i] = kafka.TimeOffsetOf(id, t)
	}
	resp, err := k.client.ListOffsets(ctx, &kafka.ListOffsetsRequest{
		Topics: map[string][]kafka.OffsetRequest{k.topic: requests}, IsolationLevel: kafka.ReadCommitted,
	})
	if err != nil {
		return nil, k.unanswered(ctx, "asking for the topic's offsets by time", err)
	}
	found := map[int32]int64{}
	for _, o := range resp.Topics[k.topic] {
		if o.Error != nil {
			return nil, fmt.Errorf("asking for the offsets of %s/%d by time: %w", k.topic, o.Partition, o.Error)
		}
		for offset := range o.Offsets {
			if offset >= 0 {
				found[int32(o.Partition)] = offset
			}
		}
	}
	return found, nil
}

// Retention is for how long the topic keeps its records; false where the broker does not tell, or keeps them for ever.
// A limit by size comes on top.
func (k *Kafka) Retention(ctx context.Context) (time.Duration, bool) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	resp, err := k.client.DescribeConfigs(ctx, &kafka.DescribeConfigsRequest{Resources: []kafka.DescribeConfigRequestResource{
		{ResourceType: kafka.ResourceTypeTopic, ResourceName: k.topic, ConfigNames: []string{"retention.ms"}},
	}})
	if err != nil {
		return 0, false
	}
	for _, r := range resp.Resources {
		for _, e := range r.ConfigEntries {
			ms, err := strconv.ParseInt(e.ConfigValue, 10, 64)
			if e.ConfigName == "retention.ms" && err == nil && ms > 0 && ms < math.MaxInt64/int64(time.Millisecond) {
				return time.Duration(ms) * time.Millisecond, true
			}
		}
	}
	return 0, false
}
