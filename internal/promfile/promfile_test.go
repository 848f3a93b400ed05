package promfile_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"tailgate/internal/promfile"
)

func text(t *testing.T) []byte {
	t.Helper()
	r := prometheus.NewRegistry()
	g := prometheus.NewGauge(prometheus.GaugeOpts{Name: "tailgate_x", Help: "An x."})
	g.Set(1.5)
	r.MustRegister(g)
	out, err := promfile.Text(r)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

const want = "# HELP tailgate_x An x.\n# TYPE tailgate_x gauge\ntailgate_x 1.5\n"

func TestText(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.prom")
	if err := promfile.WriteFile(path, text(t)); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
	if err := promfile.WriteFile(filepath.Join(t.TempDir(), "none", "x.prom"), nil); err == nil {
		t.Error("no folder, no error")
	}
}

func TestGroupURL(t *testing.T) {
	for gateway, want := range map[string]string{
		"http://g:9091":                     "http://g:9091/metrics/job/tailgate_ingest/shard/1-of-8",
		"https://u:p@g/push/":               "https://u:p@g/push/metrics/job/tailgate_ingest/shard/1-of-8",
		"http://g:9091/metrics/job/own/x/y": "http://g:9091/metrics/job/own/x/y",
	} {
		if got, err := promfile.GroupURL(gateway, "tailgate_ingest", "shard", "1-of-8"); err != nil || got != want {
			t.Errorf("%s: %s, %v", gateway, got, err)
		}
	}
	for _, bad := range []string{"", "g:9091", "ftp://g", "http://", "http://u:secret@g\x00", "ftp://u:secret@g"} {
		if got, err := promfile.GroupURL(bad, "j"); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q gives %s, %v", bad, got, err)
		}
	}
}

func TestPush(t *testing.T) {
	var method, path, body, kind, user string
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		method, path, body, kind = r.Method, r.URL.Path, string(b), r.Header.Get("Content-Type")
		user, _, _ = r.BasicAuth()
		w.WriteHeader(http.StatusAccepted)
	}))
	defer gateway.Close()
	group, err := promfile.GroupURL(strings.Replace(gateway.URL, "http://", "http://u:secret@", 1), "tailgate_refresh")
	if err != nil {
		t.Fatal(err)
	}
	if err := promfile.Push(t.Context(), group, text(t)); err != nil {
		t.Fatal(err)
	}
	if method != http.MethodPut || path != "/metrics/job/tailgate_refresh" || body != want || user != "u" || !strings.HasPrefix(kind, "text/plain; version=0.0.4") {
		t.Errorf("%s %s by %q as %q:\n%s", method, path, user, kind, body)
	}
}

// What may pass is tried again, what may not is not, and no error has the password.
func TestPushFails(t *testing.T) {
	for name, c := range map[string]struct {
		status, tries int
	}{"refused": {http.StatusBadRequest, 1}, "redirected": {http.StatusFound, 1}, "broken": {http.StatusBadGateway, 3}} {
		t.Run(name, func(t *testing.T) {
			tries := 0
			gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				tries++
				w.Header().Set("Location", "/elsewhere")
				http.Error(w, "why not", c.status)
			}))
			defer gateway.Close()
			err := promfile.Push(t.Context(), strings.Replace(gateway.URL, "http://", "http://u:secret@", 1), nil)
			if err == nil || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), "why not") || tries != c.tries {
				t.Errorf("%d tries: %v", tries, err)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := promfile.Push(ctx, "http://u:secret@127.0.0.1:1", nil); err == nil || strings.Contains(err.Error(), "secret") {
		t.Error(err)
	}
}
