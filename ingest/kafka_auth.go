package ingest

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/sasl"
	"github.com/segmentio/kafka-go/sasl/plain"
	"github.com/segmentio/kafka-go/sasl/scram"

	"tailgate/internal/fault"
)

// SASL are the credentials for a Kafka cluster. The password never reaches a log, an error or a file.
type SASL struct {
	Mechanism string // plain | scram-sha-256 | scram-sha-512
	User      string
	Password  string
}

// String keeps the password out of logs.
func (s *SASL) String() string { return s.Mechanism + " as " + s.User }

// GoString keeps the password out of logs.
func (s *SASL) GoString() string { return s.String() }

// SASLMechanisms lists the mechanisms of [SASL].
func SASLMechanisms() []string { return []string{"plain", "scram-sha-256", "scram-sha-512"} }

// mechanism is nil for no credentials.
func (s *SASL) mechanism() (sasl.Mechanism, error) {
	if s == nil {
		return nil, nil
	}
	if s.User == "" || s.Password == "" {
		return nil, errors.New("SASL needs a user and a password")
	}
	var m sasl.Mechanism
	var err error
	switch s.Mechanism {
	case "plain":
		return plain.Mechanism{Username: s.User, Password: s.Password}, nil
	case "scram-sha-256":
		m, err = scram.Mechanism(scram.SHA256, s.User, s.Password)
	case "scram-sha-512":
		m, err = scram.Mechanism(scram.SHA512, s.User, s.Password)
	default:
		return nil, fmt.Errorf("SASL mechanism %q is not one of %s", s.Mechanism, strings.Join(SASLMechanisms(), ", "))
	}
	if err != nil {
		return nil, errors.New("SASL user or password has characters that SCRAM does not allow")
	}
	return m, nil
}

// TLSFiles are PEM files: the authorities to trust ("" = those of the system) and a client's certificate with
// its key (both or neither).
type TLSFiles struct{ CA, Cert, Key string }

// Config reads the files.
func (f TLSFiles) Config() (*tls.Config, error) {
	cfg := &tls.Config{MinVersion: tls.VersionTLS12}
	if f.CA != "" {
		pem, err := os.ReadFile(f.CA)
		if err != nil {
			return nil, fmt.Errorf("reading the certificate authorities: %w", err)
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("reading the certificate authorities: %s has no PEM certificate", f.CA)
		}
	}
	if (f.Cert == "") != (f.Key == "") {
		return nil, errors.New("a client certificate needs its key, and a key its certificate")
	}
	if f.Cert != "" {
		pair, err := tls.LoadX509KeyPair(f.Cert, f.Key)
		if err != nil {
			return nil, fmt.Errorf("reading the client certificate: %w", err)
		}
		cfg.Certificates = []tls.Certificate{pair}
	}
	return cfg, nil
}

// reachable returns the brokers that accept us; none is an error.
func reachable(ctx context.Context, brokers []string, o *KafkaOptions, m sasl.Mechanism) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	errs := make([]error, len(brokers))
	var all sync.WaitGroup
	for i, b := range brokers {
		all.Go(func() { errs[i] = knock(ctx, b, o, m) })
	}
	all.Wait()
	var alive []string
	for i, b := range brokers {
		if errs[i] == nil {
			alive = append(alive, b)
		}
	}
	if len(alive) == 0 {
		return nil, refused(ctx, brokers[0], o, errs[0])
	}
	return alive, nil
}

// knock connects to a broker, proves who we are and asks what it speaks. The library's dialer bounds only the
// connecting, so that the connection is closed under it when ctx ends.
func knock(ctx context.Context, broker string, o *KafkaOptions, m sasl.Mechanism) error {
	d := kafka.Dialer{TLS: o.TLS, SASLMechanism: m}
	d.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		if err == nil {
			context.AfterFunc(ctx, func() { conn.Close() })
		}
		return conn, err
	}
	conn, err := d.DialContext(ctx, "tcp", broker)
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = conn.ApiVersions()
	return err
}

// refused words why no broker accepted us, with the next step.
func refused(ctx context.Context, broker string, o *KafkaOptions, err error) error {
	var (
		dial      *net.OpError
		untrusted *tls.CertificateVerificationError
		record    tls.RecordHeaderError
		alert     tls.AlertError
	)
	listener := "is it a Kafka broker, and does this listener need TLS (--kafka-tls)?"
	if o.TLS != nil {
		listener = "is it a Kafka broker, and is this port its TLS listener?"
	}
	say := func(hint, format string, args ...any) error {
		return fault.Mark(fmt.Errorf("reaching the Kafka broker %s: "+format, append([]any{broker}, args...)...), fault.Failure, hint)
	}
	switch {
	case errors.As(err, &untrusted):
		return say("--kafka-ca names a file with the authority that signed it", "its certificate is not trusted: %w", untrusted.Err)
	case errors.As(err, &record):
		return say("leave --kafka-tls out, or name the port of the TLS listener", "it speaks no TLS on this port")
	case errors.As(err, &alert) || strings.Contains(err.Error(), "remote error: tls"):
		return say("does it want a client certificate (--kafka-cert, --kafka-key)?", "it refused the TLS handshake: %w", innermost(err))
	case errors.Is(err, kafka.SASLAuthenticationFailed):
		return say("check --sasl-user, the password and --sasl", "it refused the credentials")
	case errors.Is(err, kafka.IllegalSASLState):
		return say("leave --sasl out, or name the port of the SASL listener", "it wants no credentials on this port")
	case errors.Is(err, kafka.UnsupportedSASLMechanism):
		return say("", "it does not offer SASL %s", o.SASL.Mechanism)
	case errors.As(err, &dial) && dial.Op == "dial":
		return fmt.Errorf("reaching the Kafka broker: %w", dial)
	case ctx.Err() != nil: // also within the handshake of SASL: nobody has refused anything
		return say(listener, "no answer")
	case strings.Contains(err.Error(), "SASL"):
		return say("check --sasl-user, the password and --sasl", "SASL failed: %w", innermost(err))
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return say(listener, "it closed the connection")
	}
	return say(listener, "%w", innermost(err))
}

// innermost is the first cause, in its own words.
func innermost(err error) error {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err
		}
		err = next
	}
}
