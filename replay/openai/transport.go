package openai

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"tailgate/internal/fault"
)

// TLS says how https targets are trusted and what the client shows them. The zero value is the system's
// certificate authorities and no client certificate.
type TLS struct {
	CAFile            string // PEM of the authorities to trust instead of the system's
	CertFile, KeyFile string // PEM of the client's certificate and key; both or none
	ServerName        string // expected in the target's certificate; "" = the URL's host
	Insecure          bool   // trust any certificate
}

func (t *TLS) check() error {
	if (t.CertFile == "") != (t.KeyFile == "") {
		return errors.New("tls: the client's certificate and its key are given together or not at all")
	}
	return nil
}

func (t *TLS) config() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName, ClientSessionCache: tls.NewLRUClientSessionCache(0)}
	// The operator asked for it, and was warned.
	c.InsecureSkipVerify = t.Insecure
	if t.CAFile != "" {
		pem, err := os.ReadFile(t.CAFile)
		if err != nil {
			return nil, fault.Mark(fmt.Errorf("reading the certificate authorities: %w", err), fault.Usage, "")
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fault.Mark(fmt.Errorf("%s: holds no certificate in PEM", t.CAFile), fault.Usage, "")
		}
	}
	if t.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
		if err != nil {
			return nil, fault.Mark(fmt.Errorf("reading the client's certificate: %w", err), fault.Usage, "")
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// newHTTP makes a transport of net/http.
func newHTTP(o *Options, config *tls.Config, dial func(context.Context, string, string) (net.Conn, error)) *http.Transport {
	idle, perHost := o.IdleTimeout, o.MaxIdlePerHost
	if idle == 0 {
		idle = defaultIdle
	}
	if perHost == 0 {
		perHost = 1 << 30 // net/http reads 0 as two
	}
	// Without TLS there is no ALPN and nothing but HTTP/1.1.
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(!o.HTTP1)
	return &http.Transport{
		DialContext:         dial,
		TLSClientConfig:     config,
		TLSHandshakeTimeout: 30 * time.Second,
		MaxIdleConnsPerHost: perHost,
		IdleConnTimeout:     idle,
		DisableCompression:  true,
		// Events are small, and 10,000 connections have a buffer each.
		ReadBufferSize: 2 << 10,
		// Any proxy of the environment would be measured with the target: none is used.
		Proxy:     nil,
		Protocols: &protocols,
	}
}

// names resolves every host name once, so that no request waits for a resolver and none is sent elsewhere in the
// middle of a run. A name with several addresses (a headless service) has them in turn.
type names struct {
	dialer  net.Dialer
	resolve func(ctx context.Context, host string) ([]string, error)

	mu    sync.Mutex
	known map[string]*addresses
}

type addresses struct {
	ready chan struct{} // closed when the others are set
	list  []string
	err   error
	next  int // guarded by names.mu
}

func newNames() *names {
	return &names{
		dialer:  net.Dialer{Timeout: 30 * time.Second, KeepAlive: 15 * time.Second},
		resolve: net.DefaultResolver.LookupHost, known: map[string]*addresses{},
	}
}

// dial connects to one of the addresses of addr, the next one in turn first.
func (n *names) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil || net.ParseIP(host) != nil || strings.Contains(host, "%") {
		return n.dialer.DialContext(ctx, network, addr)
	}
	list, err := n.lookup(ctx, host)
	if err != nil {
		return nil, err
	}
	var first error
	for _, ip := range list {
		conn, err := n.dialer.DialContext(ctx, network, net.JoinHostPort(ip, port))
		if err == nil {
			return conn, nil
		}
		if first == nil {
			first = err
		}
	}
	return nil, first
}

// lookup returns the addresses of host, rotated by one for each call. A failure is not kept: a name may come up
// while --wait-ready waits.
func (n *names) lookup(ctx context.Context, host string) ([]string, error) {
	n.mu.Lock()
	a, known := n.known[host]
	if !known {
		a = &addresses{ready: make(chan struct{})}
		n.known[host] = a
	}
	n.mu.Unlock()
	if !known {
		a.list, a.err = n.resolve(ctx, host)
		if a.err == nil && len(a.list) == 0 {
			a.err = &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
		}
		if a.err != nil {
			n.mu.Lock()
			delete(n.known, host)
			n.mu.Unlock()
		}
		close(a.ready)
	}
	select {
	case <-a.ready:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if a.err != nil {
		return nil, a.err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	at := a.next % len(a.list)
	a.next++
	return append(append([]string(nil), a.list[at:]...), a.list[:at]...), nil
}
