package main

import (
	"context"
	"crypto/rand"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestKafkaScripts runs the scripts about brokers, on the real one of TAILGATE_KAFKA where there is one (started by
// deploy/dev/kafka/run in TAILGATE_KAFKA_DATA), else on an in-process one.
func TestKafkaScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/kafka",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exit": exit, "refused": refused, "broker": startBroker, "silent": startSilent, "produce": produce,
		},
	})
}

// startupLimit is how long a command may take to say that it cannot reach what it needs.
const startupLimit = 15 * time.Second

// refused CODE cmd…: the command must end with this code within the limit, with one line that says why on stderr,
// and a hint at most.
func refused(ts *testscript.TestScript, neg bool, args []string) {
	began := time.Now()
	exit(ts, neg, args)
	if took := time.Since(began); took > startupLimit {
		ts.Fatalf("it took %v to say so", took)
	}
	lines := strings.Split(strings.TrimSpace(ts.ReadFile("stderr")), "\n")
	lines = slices.DeleteFunc(lines, func(l string) bool { return strings.HasPrefix(l, "warning: ") })
	if len(lines) == 2 && strings.HasPrefix(lines[1], "hint: ") {
		lines = lines[:1]
	}
	if len(lines) != 1 || !strings.HasPrefix(lines[0], "tailgate ") {
		ts.Fatalf("not one line and a hint:\n%s", ts.ReadFile("stderr"))
	}
	if strings.Contains(ts.ReadFile("stderr"), "not-the-password") {
		ts.Fatalf("the password is told")
	}
}

// broker: gives a broker with a topic logs of one record, as $PLAIN, and the same behind SASL, as $GUARDED; both are
// kafka://host:port without the topic, which is $TOPIC. The user is dev and the password dev.
func startBroker(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: broker")
	}
	topic := "logs-" + strings.ToLower(rand.Text())
	plain, guarded := os.Getenv("TAILGATE_KAFKA"), ""
	if plain != "" && os.Getenv("TAILGATE_KAFKA_DATA") != "" { // as deploy/dev/kafka/run lays it out
		host, port, err := net.SplitHostPort(plain)
		ts.Check(err)
		n, err := strconv.Atoi(port)
		ts.Check(err)
		guarded = net.JoinHostPort(host, strconv.Itoa(n+2))
		makeTopic(ts, plain, topic)
	} else {
		plain = fakeBroker(ts, kfake.SeedTopics(1, topic))
		guarded = fakeBroker(ts, kfake.SeedTopics(1, topic), kfake.EnableSASL(), kfake.Superuser("PLAIN", "dev", "dev"),
			kfake.Superuser("SCRAM-SHA-512", "dev", "dev"))
	}
	ts.Setenv("PLAIN", "kafka://"+plain)
	ts.Setenv("GUARDED", "kafka://"+guarded)
	ts.Setenv("TOPIC", topic)
}

func fakeBroker(ts *testscript.TestScript, opts ...kfake.Opt) string {
	c, err := kfake.NewCluster(append(opts, kfake.NumBrokers(1))...)
	ts.Check(err)
	ts.Defer(c.Close)
	return c.ListenAddrs()[0]
}

// makeTopic makes a topic of one partition until the script ends.
func makeTopic(ts *testscript.TestScript, addr, name string) {
	client, err := kgo.NewClient(kgo.SeedBrokers(addr))
	ts.Check(err)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = name, 1, 1
	req := kmsg.NewPtrCreateTopicsRequest()
	req.Topics = append(req.Topics, topic)
	_, err = req.RequestWith(ctx, client)
	ts.Check(err)
	ts.Defer(func() {
		defer cancel()
		defer client.Close()
		topic := kmsg.NewDeleteTopicsRequestTopic()
		topic.Topic = kmsg.StringPtr(name)
		req := kmsg.NewPtrDeleteTopicsRequest()
		req.Topics, req.TopicNames = append(req.Topics, topic), []string{name}
		_, _ = req.RequestWith(ctx, client)
	})
}

// silent NAME: a listener that takes connections and never says anything; $NAME is kafka://host:port.
func startSilent(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: silent NAME")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	ts.Defer(func() { l.Close() })
	ts.Setenv(args[0], "kafka://"+l.Addr().String())
}
