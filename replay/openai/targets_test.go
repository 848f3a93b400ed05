package openai

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"tailgate/internal/fault"
	"tailgate/replay"
	"tailgate/schemas"
)

func threeTargets(t *testing.T, strategy string) *Client {
	t.Helper()
	c, err := New(Options{Targets: []string{"http://a", "http://b", "http://c"}, Strategy: strategy, Prompts: &replay.Prompts{}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func sessionCall(session string) *replay.Call {
	row := &schemas.TraceRow{}
	if session != "" {
		row.Session = &session
	}
	return &replay.Call{Row: row}
}

func TestStrategies(t *testing.T) {
	names := func(c *Client, calls ...*replay.Call) string {
		var out []string
		for _, call := range calls {
			out = append(out, strings.TrimPrefix(c.pick(call).name, "http://"))
		}
		return strings.Join(out, "")
	}
	none := sessionCall("")
	if got := names(threeTargets(t, ""), none, none, none, none, none); got != "abcab" {
		t.Errorf("round robin: %s", got)
	}
	c := threeTargets(t, replay.StrategyLeastInFlight)
	if got := names(c, none, none, none); got != "abc" {
		t.Errorf("least in flight, equal: %s", got)
	}
	ended := replay.NewOutcome()
	ended.Status = schemas.ResultOK
	c.targets[1].note(&ended)
	if got := names(c, none); got != "b" {
		t.Errorf("least in flight: %s", got)
	}
	c = threeTargets(t, replay.StrategySticky)
	counts := map[string]int{}
	for i := range 3000 {
		s := sessionCall(fmt.Sprint("s", i))
		first := names(c, s)
		if again := names(c, s); again != first {
			t.Fatalf("session %d went to %s and %s", i, first, again)
		}
		counts[first]++
	}
	for name, n := range counts {
		if n < 850 || n > 1150 {
			t.Errorf("%s has %d of 3000 sessions", name, n)
		}
	}
	if got := names(c, none, none, none); got != "abc" {
		t.Errorf("sticky without a session: %s", got)
	}
}

func TestParticipation(t *testing.T) {
	c := threeTargets(t, "")
	note := func(target int, status string, n int) {
		for range n {
			o := replay.NewOutcome()
			o.Status = status
			c.targets[target].sent.Add(1)
			c.targets[target].note(&o)
		}
	}
	if invalid, notes := c.Participation(); invalid != nil || notes != nil {
		t.Errorf("nothing was sent: %v, %v", invalid, notes)
	}
	note(0, schemas.ResultOK, 5)
	note(1, schemas.ResultReset, 4)
	invalid, notes := c.Participation()
	if len(invalid) != 1 || !strings.Contains(invalid[0], "http://b answered none of its 4 requests") {
		t.Errorf("%v", invalid)
	}
	if len(notes) != 1 || !strings.Contains(notes[0], "http://c got no request: 1 targets did the work of 3") {
		t.Errorf("%v", notes)
	}
	if f := c.Facts()[1]; f.Sent != 4 || f.Failed != 4 || f.OK != 0 {
		t.Errorf("%+v", f)
	}
}

func TestNamesAreResolvedOnceAndTakenInTurn(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	var mu sync.Mutex
	asked, fail := 0, true
	n := newNames()
	n.resolve = func(context.Context, string) ([]string, error) {
		mu.Lock()
		defer mu.Unlock()
		asked++
		if fail {
			return nil, errors.New("not yet")
		}
		return []string{"127.0.0.1", "127.0.0.2"}, nil
	}
	if _, err := n.dial(t.Context(), "tcp", "pod:"+port); err == nil {
		t.Fatal("a name that does not resolve was dialed")
	}
	fail = false
	var wait sync.WaitGroup
	for range 20 {
		wait.Go(func() {
			conn, err := n.dial(t.Context(), "tcp", "pod:"+port)
			if err != nil {
				t.Error(err)
				return
			}
			conn.Close()
		})
	}
	wait.Wait()
	if asked != 2 {
		t.Errorf("asked %d times", asked)
	}
	first, err := n.lookup(t.Context(), "pod")
	if err != nil {
		t.Fatal(err)
	}
	if second, _ := n.lookup(t.Context(), "pod"); first[0] == second[0] || len(second) != 2 {
		t.Errorf("%v, then %v", first, second)
	}
}

// authority makes a certificate authority and a leaf of it, in PEM files.
func authority(t *testing.T) (ca, cert, key string) {
	t.Helper()
	dir := t.TempDir()
	write := func(name, kind string, der []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"engine.internal"},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert = write("cert.pem", "CERTIFICATE", der)
	return cert, cert, write("key.pem", "PRIVATE KEY", keyDER)
}

func TestTLSOptions(t *testing.T) {
	ca, cert, key := authority(t)
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(pair.Leaf)
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `{"data":[{"id":"behind-tls"}]}`)
	}))
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool}
	srv.StartTLS()
	defer srv.Close()
	for _, c := range []struct {
		name string
		tls  TLS
		says string // "" = it works
	}{
		{"all right", TLS{CAFile: ca, CertFile: cert, KeyFile: key, ServerName: "engine.internal"}, ""},
		{"any certificate", TLS{CertFile: cert, KeyFile: key, Insecure: true}, ""},
		{"another name", TLS{CAFile: ca, CertFile: cert, KeyFile: key}, "TLS handshake"},
		{"nobody vouches", TLS{CertFile: cert, KeyFile: key, ServerName: "engine.internal"}, "TLS handshake"},
		{"no client certificate", TLS{CAFile: ca, ServerName: "engine.internal"}, "TLS handshake"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cl, err := New(Options{Targets: []string{srv.URL}, TLS: c.tls, Prompts: &replay.Prompts{}})
			if err != nil {
				t.Fatal(err)
			}
			defer cl.Close()
			told, err := cl.Describe(t.Context())
			switch {
			case c.says == "" && (err != nil || told["model"] != "behind-tls"):
				t.Errorf("%v, %v", told, err)
			case c.says != "" && (fault.Of(err) != fault.Failure || !strings.Contains(err.Error(), c.says) || !strings.Contains(fault.Hint(err), "--tls-ca")):
				t.Errorf("%v (%s)", err, fault.Hint(err))
			}
		})
	}
	for _, bad := range []TLS{{CAFile: "nosuch"}, {CAFile: key}, {CertFile: key, KeyFile: key}} {
		if _, err := New(Options{Targets: []string{"https://a"}, TLS: bad, Prompts: &replay.Prompts{}}); fault.Of(err) != fault.Usage {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}
