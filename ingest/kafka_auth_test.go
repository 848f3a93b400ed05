package ingest_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"tailgate/ingest"
	"tailgate/internal/fault"
)

// authority signs certificates for tests, as PEM files in a folder.
type authority struct {
	t    testing.TB
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t testing.TB, name string) *authority {
	t.Helper()
	a := &authority{t: t, dir: t.TempDir()}
	a.key, _ = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	a.cert = a.sign(name, &a.key.PublicKey, true)
	return a
}

func (a *authority) file(name string) string { return filepath.Join(a.dir, name) }

// sign makes a certificate for 127.0.0.1 and writes it to NAME.pem.
func (a *authority) sign(name string, key *ecdsa.PublicKey, ca bool) *x509.Certificate {
	a.t.Helper()
	want := &x509.Certificate{
		SerialNumber: big.NewInt(int64(len(name))), Subject: pkix.Name{CommonName: name}, IsCA: ca, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	parent := a.cert
	if ca {
		parent = want
	}
	der, err := x509.CreateCertificate(rand.Reader, want, parent, key, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	write(a.t, a.file(name+".pem"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return cert
}

// pair makes a certificate with its key and writes both.
func (a *authority) pair(name string) tls.Certificate {
	a.t.Helper()
	key, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	a.sign(name, &key.PublicKey, false)
	der, _ := x509.MarshalECPrivateKey(key)
	write(a.t, a.file(name+".key"), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}))
	pair, err := tls.LoadX509KeyPair(a.file(name+".pem"), a.file(name+".key"))
	if err != nil {
		a.t.Fatal(err)
	}
	return pair
}

func guarded(t *testing.T, opts ...kfake.Opt) string {
	t.Helper()
	c, err := kfake.NewCluster(append(opts, kfake.NumBrokers(1), kfake.SeedTopics(2, "tides"))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return "kafka://" + c.ListenAddrs()[0] + "/tides"
}

// tryOpen opens and reads a batch; the error is what a user would see.
func tryOpen(t *testing.T, url string, o ingest.KafkaOptions) error {
	t.Helper()
	o.MaxWait = 20 * time.Millisecond
	k, err := ingest.OpenKafka(t.Context(), url, o)
	if err != nil {
		return err
	}
	defer k.Close()
	parts, err := k.Partitions(t.Context())
	if err != nil {
		return err
	}
	_, err = k.Fetch(t.Context(), parts[0], 0)
	return err
}

func TestKafkaCredentials(t *testing.T) {
	const secret = "tide-and-time-77"
	t.Run("in-process broker", func(t *testing.T) {
		testCredentials(t, "reader", secret, guarded(t, kfake.EnableSASL(), kfake.Superuser("PLAIN", "reader", secret),
			kfake.Superuser("SCRAM-SHA-256", "reader", secret), kfake.Superuser("SCRAM-SHA-512", "reader", secret)))
	})
	t.Run("real broker", func(t *testing.T) {
		if os.Getenv(envBroker) == "" || os.Getenv(envData) == "" {
			t.Skip("needs a real broker and its folder in " + envData)
		}
		b := newBroker(t, 1)
		testCredentials(t, "dev", "dev", "kafka://"+b.guardedAddr()+"/"+b.topic)
	})
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "sasl", &ingest.SASL{Mechanism: "plain", User: "reader", Password: secret})
	if strings.Contains(log.String(), secret) || strings.Contains(fmt.Sprintf("%v %+v %#v", &ingest.SASL{Password: secret}, &ingest.SASL{Password: secret}, &ingest.SASL{Password: secret}), secret) {
		t.Error("a password reached a log")
	}
}

// guardedAddr is the listener of a broker of deploy/dev/kafka that wants SASL: two ports up.
func (b *broker) guardedAddr() string {
	b.t.Helper()
	host, port, err := net.SplitHostPort(b.addr)
	n, portErr := strconv.Atoi(port)
	if err != nil || portErr != nil {
		b.t.Fatal(err, portErr)
	}
	return net.JoinHostPort(host, strconv.Itoa(n+2))
}

func testCredentials(t *testing.T, user, secret, url string) {
	for _, m := range ingest.SASLMechanisms() {
		if err := tryOpen(t, url, ingest.KafkaOptions{SASL: &ingest.SASL{Mechanism: m, User: user, Password: secret}}); err != nil {
			t.Errorf("%s: %v", m, err)
		}
	}
	for name, c := range map[string]struct {
		sasl *ingest.SASL
		want string
		kind fault.Kind
	}{
		"wrong password, plain":  {&ingest.SASL{Mechanism: "plain", User: user, Password: secret + "x"}, "credentials", fault.Failure},
		"wrong password, scram":  {&ingest.SASL{Mechanism: "scram-sha-512", User: user, Password: secret + "x"}, "credentials|SASL", fault.Failure},
		"unknown user":           {&ingest.SASL{Mechanism: "scram-sha-256", User: "nobody", Password: secret}, "credentials|SASL", fault.Failure},
		"no credentials":         {nil, "no answer|closed|EOF", fault.Failure},
		"unknown mechanism":      {&ingest.SASL{Mechanism: "kerberos", User: user, Password: secret}, "kerberos", fault.Usage},
		"user without password":  {&ingest.SASL{Mechanism: "plain", User: user}, "password", fault.Usage},
		"characters not allowed": {&ingest.SASL{Mechanism: "scram-sha-256", User: user, Password: "\x00" + secret}, "SCRAM", fault.Usage},
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			err := tryOpen(t, url, ingest.KafkaOptions{SASL: c.sasl})
			checkRefusal(t, err, c.want, time.Since(start))
			if fault.Of(err) != c.kind || len(secret) > 4 && strings.Contains(fmt.Sprint(err), secret) {
				t.Errorf("%v", err)
			}
		})
	}
}

// checkRefusal wants one line within 15 s that holds one of the words.
func checkRefusal(t *testing.T, err error, words string, took time.Duration) {
	t.Helper()
	if err == nil {
		t.Fatal("it was let in")
	}
	found := false
	for w := range strings.SplitSeq(words, "|") {
		found = found || strings.Contains(err.Error(), w)
	}
	if !found || strings.Contains(err.Error(), "\n") || took > 15*time.Second {
		t.Errorf("after %v: %v", took, err)
	}
	t.Logf("%v: %v (hint: %s)", took.Round(time.Millisecond), err, fault.Hint(err))
}

func TestKafkaTLS(t *testing.T) {
	t.Parallel()
	own, other := newAuthority(t, "own"), newAuthority(t, "other")
	pool := x509.NewCertPool()
	pool.AddCert(own.cert)
	server := own.pair("broker")
	plain := guarded(t)
	simple := guarded(t, kfake.TLS(&tls.Config{Certificates: []tls.Certificate{server}}))
	mutual := guarded(t, kfake.TLS(&tls.Config{Certificates: []tls.Certificate{server}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool}))
	own.pair("client")
	other.pair("client")
	load := func(f ingest.TLSFiles) *tls.Config {
		t.Helper()
		cfg, err := f.Config()
		if err != nil {
			t.Fatal(err)
		}
		return cfg
	}
	trust := load(ingest.TLSFiles{CA: own.file("own.pem")})
	with := func(a *authority) *tls.Config {
		return load(ingest.TLSFiles{CA: own.file("own.pem"), Cert: a.file("client.pem"), Key: a.file("client.key")})
	}
	for name, c := range map[string]struct {
		url  string
		tls  *tls.Config
		want string // "" = it works
	}{
		"server certificate":          {simple, trust, ""},
		"client certificate":          {mutual, with(own), ""},
		"no client certificate":       {mutual, trust, "TLS handshake"},
		"client of another authority": {mutual, with(other), "TLS handshake"},
		"another authority":           {simple, load(ingest.TLSFiles{CA: other.file("other.pem")}), "not trusted"},
		"system authorities":          {simple, load(ingest.TLSFiles{}), "not trusted"},
		"TLS to plaintext":            {plain, trust, "no TLS|closed|no answer"},
		"plaintext to TLS":            {simple, nil, "closed|no answer|reaching"},
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			err := tryOpen(t, c.url, ingest.KafkaOptions{TLS: c.tls})
			if c.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			checkRefusal(t, err, c.want, time.Since(start))
		})
	}
	for _, f := range []ingest.TLSFiles{{CA: "/none"}, {CA: own.file("client.key")}, {Cert: own.file("client.pem")},
		{Cert: own.file("client.pem"), Key: other.file("client.key")}} {
		if _, err := f.Config(); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%+v: %v", f, err)
		}
	}
}
