package ingest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/segmentio/kafka-go"
)

// sessionTimeout is how long a member may be silent before its partitions go to others, unless KafkaOptions say
// otherwise. Brokers want 6 s or more.
const sessionTimeout = 15 * time.Second

// assignment is the part of a topic that a member of a group has, until its context ends.
type assignment struct {
	ctx        context.Context
	partitions map[int32]bool
	commit     func(p Partition, next int64) error
	end        func() // gives it back
}

// errRevoked is the cause that ends an assignment.
var errRevoked = errors.New("the group hands its partitions out anew")

// membership is a place in a group that hands partitions out.
type membership interface {
	// next waits for the next assignment. The one before must have ended.
	next(ctx context.Context) (*assignment, error)
	leave()
}

// distributor is a source whose partitions a group can hand out.
type distributor interface {
	Source
	join(group string) (membership, error)
}

// kafkaMember is a member of a Kafka consumer group. The group only hands partitions out: where to read on is
// never asked of it.
type kafkaMember struct {
	k     *Kafka
	group *kafka.ConsumerGroup
	name  string
}

func (k *Kafka) join(group string) (membership, error) {
	mechanism, err := k.opts.SASL.mechanism()
	if err != nil {
		return nil, err
	}
	session := or(k.opts.SessionTimeout, sessionTimeout)
	g, err := kafka.NewConsumerGroup(kafka.ConsumerGroupConfig{
		ID: group, Brokers: k.brokers, Topics: []string{k.topic},
		Dialer:         &kafka.Dialer{ClientID: "tailgate", Timeout: dialTimeout, TLS: k.opts.TLS, SASLMechanism: mechanism},
		SessionTimeout: session, HeartbeatInterval: session / 5, RebalanceTimeout: session, JoinGroupBackoff: time.Second,
		Timeout:               max(answerTimeout, session), // joining is answered when all members have come
		WatchPartitionChanges: true, PartitionWatchInterval: time.Minute,
	})
	if err != nil {
		return nil, fmt.Errorf("joining group %s: %w", group, err)
	}
	return &kafkaMember{k: k, group: g, name: group}, nil
}

// joinPatience is how long a group may fail before the member gives up.
const joinPatience = time.Minute

func (m *kafkaMember) next(ctx context.Context) (*assignment, error) {
	for deadline := time.Now().Add(joinPatience); ; {
		gen, err := m.group.Next(ctx)
		if err == nil {
			return m.assign(ctx, gen), nil
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("waiting for partitions of group %s: %w", m.name, context.Cause(ctx))
		}
		if errors.Is(err, kafka.ErrGroupClosed) || time.Now().After(deadline) {
			return nil, fmt.Errorf("waiting for partitions of group %s: %w", m.name, err)
		}
		m.k.opts.Logger.Debug("joining the group failed, trying again", "group", m.name, "error", err)
	}
}

func (m *kafkaMember) assign(ctx context.Context, gen *kafka.Generation) *assignment {
	ctx, cancel := context.WithCancelCause(ctx)
	gen.Start(func(over context.Context) { // a member that is not back in time after this loses its place, no more
		select {
		case <-over.Done():
			cancel(errRevoked)
		case <-ctx.Done():
		}
	})
	a := &assignment{ctx: ctx, partitions: map[int32]bool{}, end: func() { cancel(nil) }}
	for _, p := range gen.Assignments[m.k.topic] {
		a.partitions[int32(p.ID)] = true
	}
	a.commit = func(p Partition, next int64) error {
		return gen.CommitOffsets(map[string]map[int]int64{p.Topic: {int(p.ID): next}})
	}
	return a
}

// leavePatience bounds how long a run waits for its leave: the group notices anyway.
const leavePatience = 3 * time.Second

func (m *kafkaMember) leave() {
	left := make(chan struct{})
	go func() {
		defer close(left)
		_ = m.group.Close()
	}()
	select {
	case <-left:
	case <-time.After(leavePatience):
	}
}
