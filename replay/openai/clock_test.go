package openai_test

import (
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tailgate/internal/pipenet"
	"tailgate/replay"
	"tailgate/replay/openai"
)

// The offset lies within its error, whatever the target's clock says and however long an answer takes.
func TestClockOffset(t *testing.T) {
	for _, ahead := range []time.Duration{0, 40 * time.Millisecond, -1700 * time.Millisecond, 3 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			l := pipenet.Listen()
			srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				time.Sleep(3 * time.Millisecond)
				w.Header().Set("Date", time.Now().Add(-ahead).UTC().Format(http.TimeFormat))
				time.Sleep(time.Millisecond)
			})}
			var served sync.WaitGroup
			served.Go(func() { _ = srv.Serve(l) })
			tr := client(t, openai.Options{Targets: []string{"http://target"}, DialContext: l.DialContext, Prompts: &replay.Prompts{BlockSize: 16}})
			time.Sleep(123 * time.Millisecond)
			c, err := tr.ClockOffset(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if off := time.Duration(c.OffsetUs)*time.Microsecond - ahead; off.Abs() > time.Duration(c.ErrorUs)*time.Microsecond || c.ErrorUs > 10_000 || c.Source != "target" {
				t.Errorf("ahead by %v: %+v", ahead, c)
			}
			tr.Close()
			srv.Close()
			served.Wait()
		})
	}
}
