package pipenet_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"tailgate/internal/pipenet"
)

func TestHTTPRunsInVirtualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := pipenet.Listen()
		srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			time.Sleep(time.Hour)
			io.WriteString(w, "hello")
		})}
		go srv.Serve(l)
		defer srv.Close()
		tr := &http.Transport{DialContext: l.DialContext}
		defer tr.CloseIdleConnections()
		start := time.Now()
		req, _ := http.NewRequest(http.MethodGet, "http://pipe/", nil)
		resp, err := tr.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || string(body) != "hello" {
			t.Errorf("body %q, %v", body, err)
		}
		if d := time.Since(start); d != time.Hour {
			t.Errorf("took %v of virtual time", d)
		}
	})
}

func TestCloseAndCancelEndWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := pipenet.Listen()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := l.DialContext(ctx, "tcp", "x"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("dial without accept: %v", err)
		}
		accepted := make(chan error)
		go func() { _, err := l.Accept(); accepted <- err }()
		l.Close()
		l.Close()
		if err := <-accepted; !errors.Is(err, net.ErrClosed) {
			t.Errorf("accept after close: %v", err)
		}
		if _, err := l.DialContext(t.Context(), "tcp", "x"); !errors.Is(err, net.ErrClosed) {
			t.Errorf("dial after close: %v", err)
		}
	})
}
