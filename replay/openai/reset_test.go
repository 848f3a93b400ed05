package openai_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tailgate/replay/openai"
)

// A reset that did nothing is none: the target is asked again, and a run without it does not begin.
func TestReset(t *testing.T) {
	for _, c := range []struct {
		name    string
		answers []string // the last one stands
		status  int
		asked   int32
		fault   string
	}{
		{"at once", []string{`{"success":true}`}, 200, 1, ""},
		{"an engine that says nothing", []string{""}, 200, 1, ""},
		{"a text", []string{"Cache flushed."}, 200, 1, ""},
		{"once requests are gone", []string{`{"success":false}`, `{"success":false}`, `{"success":true}`}, 200, 3, ""},
		{"never", []string{`{"success":false}`}, 200, 0, "has not reset its cache"},
		{"no such route", []string{""}, 404, 1, "answers 404"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int32
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				n := int(asked.Add(1))
				w.WriteHeader(c.status)
				io.WriteString(w, c.answers[min(n, len(c.answers))-1])
			}))
			defer srv.Close()
			cl := client(t, openai.Options{Targets: []string{srv.URL}})
			defer cl.Close()
			patience := time.Minute
			if c.asked == 0 {
				patience = time.Second
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			err := cl.Reset(ctx, "/reset_prefix_cache")
			if (err == nil) != (c.fault == "") || !strings.Contains(fmt.Sprint(err), c.fault) && err != nil {
				t.Errorf("%v, want %q", err, c.fault)
			}
			if err != nil && !strings.Contains(err.Error(), srv.URL+"/reset_prefix_cache") {
				t.Errorf("the error does not name the URL: %v", err)
			}
			if n := asked.Load(); c.asked > 0 && n != c.asked || n == 0 {
				t.Errorf("asked %d times, want %d", n, c.asked)
			}
		})
	}
}
