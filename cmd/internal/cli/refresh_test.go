package cli

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"tailgate/refresh"
)

// Every setting of a refresh file is a flag of its stage.
func TestRefreshSettingsAreFlags(t *testing.T) {
	var in ingestFlags
	var out publishFlags
	fl, publish := pflag.NewFlagSet("ingest", pflag.ContinueOnError), pflag.NewFlagSet("publish", pflag.ContinueOnError)
	in.register(fl)
	out.register(publish)
	for _, s := range refresh.IngestSettings() {
		if fl.Lookup(strings.ReplaceAll(s, "_", "-")) == nil {
			t.Errorf("ingest has no flag for %s", s)
		}
	}
	for _, s := range refresh.PublishSettings() {
		if publish.Lookup(strings.ReplaceAll(s, "_", "-")) == nil {
			t.Errorf("publish has no flag for %s", s)
		}
	}
	// Those that the file does not have belong to the commands alone.
	fl.VisitAll(func(f *pflag.Flag) {
		if f.Name == "metrics-file" || f.Name == "push" {
			return
		}
		found := false
		for _, s := range refresh.IngestSettings() {
			found = found || strings.ReplaceAll(s, "_", "-") == f.Name
		}
		if !found {
			t.Errorf("a refresh file cannot set --%s", f.Name)
		}
	})
}

func TestRefreshCode(t *testing.T) {
	strict, easy := &refresh.Config{}, &refresh.Config{}
	easy.Cron.DriftOK = true
	for _, tt := range []struct {
		code int
		cron bool
		c    *refresh.Config
		want int
	}{{0, true, strict, 0}, {3, true, strict, 3}, {3, true, easy, 0}, {3, false, easy, 3}, {8, true, strict, 0}, {9, true, strict, 0}, {8, false, strict, 8}, {9, false, strict, 9}} {
		if got := refreshCode(tt.code, tt.cron, tt.c); got != tt.want {
			t.Errorf("code %d, cron %t: %d, want %d", tt.code, tt.cron, got, tt.want)
		}
	}
}
