package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/spf13/cobra"

	"tailgate/internal/samplelogs"
)

func (a *app) sampleCommand() *cobra.Command {
	var o samplelogs.Options
	var rate rateFlag
	var start, out, broker string
	cmd := &cobra.Command{
		Use:   "sample -o DIR | --to kafka://broker",
		Short: "Write fictional gateway logs to try everything with",
		Long: `Writes fictional multi-tenant gateway logs, in LiteLLM's and OpenTelemetry's layouts: as litellm.jsonl and
otlp.jsonl into a folder, or to the topics sample-litellm and sample-otlp of a broker.

Exit codes: 0 done; 1 failed while running; 2 wrong usage.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			at, err := parseTime("start", start)
			o.Start, o.Rate = at, float64(rate)
			errs := []error{err, o.Validate()}
			if (out == "") == (broker == "") {
				errs = append(errs, errors.New("give either -o DIR or --to kafka://broker"))
			}
			if err := allFaults(errs...); err != nil {
				return err
			}
			if broker != "" {
				return a.sampleToKafka(cmd.Context(), broker, o)
			}
			files, err := samplelogs.WriteFiles(out, o)
			for _, f := range files {
				fmt.Fprintln(a.stdout, f)
			}
			return err
		},
	}
	rate = 1
	fl := cmd.Flags()
	fl.Uint64Var(&o.Seed, "seed", 1, "seed of everything that is drawn")
	fl.DurationVar(&o.Duration, "duration", 2*time.Hour, "length of the logs")
	fl.Var(&rate, "rate", "mean request rate, such as 1/s")
	fl.StringVar(&start, "start", "2026-11-28T18:00:00Z", "when the logs start")
	fl.StringVarP(&out, "output", "o", "", "folder to write files into")
	fl.StringVar(&broker, "to", "", "Kafka broker to write to, kafka://host:port; the topics must exist or be creatable")
	return cmd
}

// Topics of the sample logs on a broker.
const sampleTopicPrefix = "sample-"

// sampleToKafka writes the sample logs to a broker, keyed and with the time at which a gateway would emit them.
func (a *app) sampleToKafka(ctx context.Context, url string, o samplelogs.Options) error {
	address := strings.TrimSuffix(strings.TrimPrefix(url, "kafka://"), "/")
	if err := createTopics(ctx, address); err != nil {
		return err
	}
	w := &kafka.Writer{Addr: kafka.TCP(address), Balancer: &kafka.Hash{}, BatchSize: 500, BatchBytes: 8 << 20,
		BatchTimeout: 10 * time.Millisecond, RequiredAcks: kafka.RequireAll, Compression: kafka.Zstd}
	defer w.Close()
	var batch []kafka.Message
	counts := map[string]int{}
	flush := func() error {
		if err := w.WriteMessages(ctx, batch...); err != nil {
			return fmt.Errorf("writing to %s: %w", url, err)
		}
		batch = batch[:0]
		return nil
	}
	err := samplelogs.Generate(o, func(r samplelogs.Record) error {
		topic := sampleTopicPrefix + r.Topic
		counts[topic]++
		batch = append(batch, kafka.Message{Topic: topic, Key: r.Key, Value: r.Value, Time: r.At})
		if len(batch) < 500 {
			return nil
		}
		return flush()
	})
	if err == nil && len(batch) > 0 {
		err = flush()
	}
	if err != nil {
		return err
	}
	for _, topic := range []string{sampleTopicPrefix + "litellm", sampleTopicPrefix + "otlp"} {
		fmt.Fprintf(a.stdout, "%s/%s\t%d messages\n", strings.TrimSuffix(url, "/"), topic, counts[topic])
	}
	return nil
}

func createTopics(ctx context.Context, address string) error {
	client := &kafka.Client{Addr: kafka.TCP(address), Timeout: 10 * time.Second}
	var topics []kafka.TopicConfig
	for _, name := range []string{"litellm", "otlp"} {
		topics = append(topics, kafka.TopicConfig{Topic: sampleTopicPrefix + name, NumPartitions: 3, ReplicationFactor: 1,
			// The records carry their own old times: without this, retention would remove them at once.
			ConfigEntries: []kafka.ConfigEntry{{ConfigName: "retention.ms", ConfigValue: "-1"}}})
	}
	resp, err := client.CreateTopics(ctx, &kafka.CreateTopicsRequest{Topics: topics})
	if err != nil {
		return fmt.Errorf("connecting to kafka://%s: %w", address, err)
	}
	for name, err := range resp.Errors {
		if err != nil && !errors.Is(err, kafka.TopicAlreadyExists) {
			return fmt.Errorf("creating topic %s: %w", name, err)
		}
	}
	return nil
}
