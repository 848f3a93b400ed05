package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"tailgate/ingest"
	"tailgate/internal/objstore"
	"tailgate/replay"
)

// kafkaFlags say how to reach a Kafka cluster. The password has no flag: others can read a command line.
type kafkaFlags struct {
	tls           bool
	ca, cert, key string
	sasl, user    string
	passwordFile  string
}

// envPassword is the environment variable of the SASL password.
const envPassword = "TAILGATE_SASL_PASSWORD"

func (f *kafkaFlags) register(fl *pflag.FlagSet) {
	fl.BoolVar(&f.tls, "kafka-tls", false, "speak TLS with the brokers; implied by --kafka-ca, --kafka-cert and --kafka-key")
	fl.StringVar(&f.ca, "kafka-ca", "", "PEM file of the authorities that sign the brokers' certificates (default: those of the system)")
	fl.StringVar(&f.cert, "kafka-cert", "", "PEM file of the client certificate")
	fl.StringVar(&f.key, "kafka-key", "", "PEM file of the client certificate's key")
	fl.StringVar(&f.sasl, "sasl", "", "SASL mechanism: "+strings.Join(ingest.SASLMechanisms(), ", "))
	fl.StringVar(&f.user, "sasl-user", "", "SASL user; the password is in "+envPassword+" or in --sasl-password-file")
	fl.StringVar(&f.passwordFile, "sasl-password-file", "", "file with the SASL password")
}

// options reads the files that the flags name.
func (f *kafkaFlags) options(a *app) (o ingest.KafkaOptions, err error) {
	o.Logger = a.logger()
	var errs []error
	if f.tls || f.ca != "" || f.cert != "" || f.key != "" {
		o.TLS, err = ingest.TLSFiles{CA: f.ca, Cert: f.cert, Key: f.key}.Config()
		errs = append(errs, err)
	}
	if f.sasl != "" || f.user != "" {
		password, err := f.password(a)
		errs = append(errs, err)
		if f.sasl == "" {
			errs = append(errs, errors.New("--sasl-user needs --sasl"))
		}
		o.SASL = &ingest.SASL{Mechanism: f.sasl, User: f.user, Password: password}
		if f.sasl == "plain" && o.TLS == nil {
			a.note("warning: SASL plain without TLS sends the password in clear")
		}
	}
	return o, allFaults(errs...)
}

func (f *kafkaFlags) password(a *app) (string, error) {
	if f.passwordFile != "" {
		data, err := os.ReadFile(f.passwordFile)
		if err != nil {
			return "", fmt.Errorf("reading the SASL password: %w", err)
		}
		return strings.TrimRight(string(data), "\r\n"), nil
	}
	if p, _ := a.getenv(envPassword); p != "" {
		return p, nil
	}
	return "", fmt.Errorf("--sasl needs a password in %s or --sasl-password-file", envPassword)
}

// openBucket opens s3://bucket/prefix; TAILGATE_S3_ENDPOINT names a server other than AWS.
func (a *app) openBucket(ctx context.Context, url string) (*objstore.S3, error) {
	endpoint, _ := a.getenv("TAILGATE_S3_ENDPOINT")
	s, err := objstore.OpenS3(ctx, url, objstore.S3Options{Endpoint: endpoint})
	if err != nil {
		return nil, usage(err, "for example s3://bucket/prefix")
	}
	return s, nil
}

// openSource opens what the arguments name: one Kafka topic, one bucket, or files.
func (a *app) openSource(ctx context.Context, sources []string, k *kafkaFlags, follow bool) (ingest.Source, error) {
	first := sources[0]
	if len(sources) > 1 && (strings.HasPrefix(first, "kafka://") || objstore.IsS3(first)) {
		return nil, usage(errors.New("one Kafka topic or one bucket at a time"), "")
	}
	switch {
	case strings.HasPrefix(first, "kafka://"):
		o, err := k.options(a)
		if err != nil {
			return nil, err
		}
		if follow { // all partitions are fetched at once
			o.FetchBytes = 1 << 20
		}
		return ingest.OpenKafka(ctx, first, o)
	case objstore.IsS3(first):
		bucket, err := a.openBucket(ctx, first)
		if err != nil {
			return nil, err
		}
		return ingest.OpenBucket(ctx, bucket)
	}
	return ingest.OpenFiles(sources, a.stdin)
}

// runFlags say how far a run goes and what it may take.
type runFlags struct {
	until, worker, valueCodec       string
	follow                          bool
	maxRecord, memory, minFree, rot sizeFlag
	rotateRows                      int64
	rotateAge                       time.Duration
}

// registerBounds adds the flags that say where a run ends.
func (f *runFlags) registerBounds(fl *pflag.FlagSet) {
	fl.StringVar(&f.until, "until", "now", "now: the end at the start; end: until nothing more comes; or a time, as the log took the records")
	fl.BoolVar(&f.follow, "follow", false, "go on until interrupted")
}

func (f *runFlags) register(fl *pflag.FlagSet) {
	fl.StringVar(&f.worker, "worker", "", "i/n: read only the partitions of worker i of n, counted from 0")
	valueCodecFlag(fl, &f.valueCodec)
	f.maxRecord, f.memory, f.minFree, f.rot = 32<<20, 256<<20, 2<<30, 128<<20
	fl.Var(&f.maxRecord, "max-record-bytes", "larger records are dead letters, also after decompression")
	fl.Var(&f.memory, "memory", "memory of all open segments together")
	fl.Var(&f.minFree, "min-free", "free space without which no segment is begun; 0 does not look")
	fl.Var(&f.rot, "rotate-bytes", "size in memory at which a segment is published")
	fl.Int64Var(&f.rotateRows, "rotate-rows", 250_000, "rows at which a segment is published")
	fl.DurationVar(&f.rotateAge, "rotate-age", time.Minute, "age at which a segment is published")
}

// apply puts the flags into o and returns their faults.
func (f *runFlags) apply(o *ingest.Options) error {
	var errs []error
	o.Follow, o.ValueCodec = f.follow, f.valueCodec
	o.MaxRecordBytes, o.Memory, o.MinFree = int64(f.maxRecord), int64(f.memory), int64(f.minFree)
	o.RotateBytes, o.RotateRows, o.RotateAge = int64(f.rot), f.rotateRows, f.rotateAge
	if f.minFree == 0 {
		o.MinFree = -1
	}
	switch f.until {
	case "now", "":
	case "end":
		o.UntilEnd = true
	default:
		t, err := parseTime("until", f.until)
		if err == nil && t.After(now()) {
			err = fmt.Errorf("--until: %s is to come; --follow waits", t.Format(time.RFC3339))
		}
		errs = append(errs, err)
		o.Until = t
	}
	if f.worker != "" {
		part, err := replay.ParseShard(f.worker)
		if err != nil {
			errs = append(errs, fmt.Errorf("--worker: %q is not i/n with i from 0 to n-1", f.worker))
		}
		o.Worker, o.Workers = part.Index, part.Count
	}
	return errors.Join(errs...)
}

// valueCodecFlag is the flag of all commands that read records.
func valueCodecFlag(fl *pflag.FlagSet, to *string) {
	fl.StringVar(to, "value-codec", ingest.CodecAuto, "compression of the records' values: "+strings.Join(ingest.ValueCodecs(), ", "))
}
