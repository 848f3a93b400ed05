package refresh_test

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"tailgate/internal/rng"
)

// envBroker names a real broker (host:port) that takes the place of the in-process one.
const envBroker = "TAILGATE_KAFKA"

// gateway simulates days of traffic through a gateway: tenants with system prompts of their own, sessions whose
// prompts grow, more by day than by night and less at weekends.
type gateway struct {
	format gatewayFormat
	first  time.Time // midnight of the first day
	days   int
	perDay int          // requests of a working day
	empty  map[int]bool // days without traffic
	change int          // from noon of this day on, records have the layout of the gateway's next version
	// late are days of which some requests are logged after their night: in the night of the next day that has traffic.
	late map[int]bool
	// veryLate are some requests of the first day that are logged on the last one.
	veryLate bool
}

// logRecord is one record of the gateway's log.
type logRecord struct {
	at        time.Time // when the log took it
	partition int32
	value     []byte
}

const gatewayPartitions = 3

// gatewayFormat is how a gateway logs calls.
type gatewayFormat struct {
	name   string               // as tailgate ingest knows it
	batch  int                  // calls of a session in one record, at most
	record func([]*call) []byte // in the layout of the version of the first
}

// gatewayFormats are those of the proof.
var gatewayFormats = []gatewayFormat{
	{name: "litellm", batch: 1, record: litellmRecord},
	{name: "otlp-json", batch: 2, record: otlpRecord},
}

func (g *gateway) day(i int) time.Time { return g.first.AddDate(0, 0, i) }

func (g *gateway) date(i int) string { return g.day(i).Format(time.DateOnly) }

// volume is the number of requests of a day.
func (g *gateway) volume(day int) int {
	switch weekday := g.day(day).Weekday(); {
	case g.empty[day]:
		return 0
	case weekday == time.Saturday || weekday == time.Sunday:
		return g.perDay / 2
	}
	return g.perDay
}

// records makes the whole log, in the order in which the log took it.
func (g *gateway) records() []logRecord {
	var out []logRecord
	for day := range g.days {
		r := rng.New(11, "gateway", g.date(day))
		for n, session := 0, 0; n < g.volume(day); session++ {
			turns := 1 + r.IntN(6)
			at := g.day(day).Add(g.hour(r.Float64) + time.Duration(r.Int64N(1e9)))
			var calls []*call // of the next record
			var rec logRecord
			for turn := range min(turns, g.volume(day)-n) {
				q := &call{session: fmt.Sprintf("%s-%d", g.date(day), session), turn: turn, at: at, tenant: session % 40 * (session % 7) % 23,
					duration: time.Duration(200+r.IntN(8000)) * time.Millisecond}
				q.version = g.versionAt(at)
				rec.at = latest(rec.at, at.Add(q.duration+time.Duration(r.IntN(3000))*time.Millisecond))
				switch k := n % 500; {
				case k == 17 && g.late[day]:
					rec.at = latest(rec.at, g.nextDay(day).Add(10*time.Hour+time.Duration(n)*time.Millisecond))
				case k == 33 && g.veryLate && day == 0:
					rec.at = latest(rec.at, g.day(g.days-1).Add(11*time.Hour+time.Duration(n)*time.Millisecond))
				}
				n++
				if calls = append(calls, q); len(calls) == g.format.batch || turn == turns-1 || n == g.volume(day) {
					rec.partition, rec.value = int32(session%gatewayPartitions), g.format.record(calls)
					out, calls, rec = append(out, rec), nil, logRecord{}
				}
				at = at.Add(q.duration + time.Duration(2000+r.IntN(60_000))*time.Millisecond)
				if at.After(g.day(day + 1).Add(-time.Minute)) {
					at = g.day(day + 1).Add(-time.Minute)
				}
			}
		}
	}
	slices.SortStableFunc(out, func(a, b logRecord) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.partition, b.partition)) })
	return out
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// nextDay is the next day with traffic.
func (g *gateway) nextDay(day int) time.Time {
	for day++; g.empty[day]; day++ {
	}
	return g.day(day)
}

// hour draws a time of day, three times as often at 14:00 as at 02:00.
func (g *gateway) hour(draw func() float64) time.Duration {
	for {
		h := 23 * draw()
		if draw() < 0.6+0.4*math.Sin((h-8)/12*math.Pi) {
			return time.Duration(h * float64(time.Hour))
		}
	}
}

func (g *gateway) versionAt(at time.Time) int {
	if g.change > 0 && !at.Before(g.day(g.change).Add(12*time.Hour)) {
		return 2
	}
	return 1
}

// call is one request.
type call struct {
	session  string
	turn     int
	tenant   int
	at       time.Time
	duration time.Duration
	version  int
}

// prompt is role and text of each message: what the tenant's application always says, and what was said so far.
func (c *call) prompt() [][2]string {
	out := [][2]string{{"system", words(uint64(c.tenant), 40)}}
	seed := uint64(len(c.session))
	for _, b := range []byte(c.session) {
		seed = rng.Hash(seed, uint64(b))
	}
	for turn := range c.turn {
		out = append(out, [2]string{"user", words(seed+uint64(2*turn), 12)}, [2]string{"assistant", words(seed+uint64(2*turn+1), 20)})
	}
	return append(out, [2]string{"user", words(seed+uint64(2*c.turn), 12)})
}

// answer is what a call came to: tokens in and out, whether it was streamed, and whether it failed.
func (c *call) answer() (in, out int, stream, failed bool) {
	for _, m := range c.prompt() {
		in += len(m[1])/4 + 4
	}
	h := rng.Hash(uint64(c.at.UnixMicro()), uint64(c.turn))
	return in, 1 + int(h%400), h>>20%4 > 0, h>>30%83 == 0
}

// words is n made-up words.
func words(seed uint64, n int) string {
	var b strings.Builder
	for i := range n {
		h := rng.Hash(seed, uint64(i), 77)
		for range 2 + h%3 {
			b.WriteByte("bdfgklmnprst"[h>>8%12])
			b.WriteByte("aeiou"[h>>16%5])
			h = rng.Hash(h)
		}
		b.WriteByte(' ')
	}
	return b.String()
}

// gatewayLog is a topic that holds the log of a gateway.
type gatewayLog struct {
	gateway
	url  string
	real bool
}

// newGatewayLog produces the whole log. What a night reads of it is told by its mark alone.
func newGatewayLog(t *testing.T, g gateway) *gatewayLog {
	t.Helper()
	address, real := os.LookupEnv(envBroker)
	if !real {
		c, err := kfake.NewCluster(kfake.NumBrokers(1))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		address = c.ListenAddrs()[0]
	}
	topic := "night-" + strings.ToLower(rand.Text())
	client, err := kgo.NewClient(kgo.SeedBrokers(address), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.DefaultProduceTopic(topic))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	makeTopic(t, client, topic)
	if real {
		t.Cleanup(func() { dropTopic(t, address, topic) })
	}
	var failed error
	for _, r := range g.records() {
		client.Produce(t.Context(), &kgo.Record{Partition: r.partition, Value: r.value, Timestamp: r.at}, func(_ *kgo.Record, err error) {
			failed = errors.Join(failed, err)
		})
	}
	if err := errors.Join(client.Flush(t.Context()), failed); err != nil {
		t.Fatal(err)
	}
	return &gatewayLog{gateway: g, url: "kafka://" + address + "/" + topic, real: real}
}

func makeTopic(t *testing.T, client *kgo.Client, name string) {
	t.Helper()
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = name, gatewayPartitions, 1
	keep := kmsg.NewCreateTopicsRequestTopicConfig()
	keep.Name, keep.Value = "retention.ms", kmsg.StringPtr("-1") // the days lie in the past
	topic.Configs = append(topic.Configs, keep)
	req := kmsg.NewPtrCreateTopicsRequest()
	req.Topics = append(req.Topics, topic)
	resp, err := req.RequestWith(t.Context(), client)
	if err == nil {
		err = kerr.ErrorForCode(resp.Topics[0].ErrorCode)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func dropTopic(t *testing.T, address, name string) {
	client, err := kgo.NewClient(kgo.SeedBrokers(address))
	if err != nil {
		t.Error(err)
		return
	}
	defer client.Close()
	topic := kmsg.NewDeleteTopicsRequestTopic()
	topic.Topic = kmsg.StringPtr(name)
	req := kmsg.NewPtrDeleteTopicsRequest()
	req.Topics, req.TopicNames = append(req.Topics, topic), []string{name}
	if _, err := req.RequestWith(context.Background(), client); err != nil {
		t.Error(err)
	}
}
