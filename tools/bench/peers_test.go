package main

import (
	"fmt"
	"strings"
	"testing"
)

func TestPeerRows(t *testing.T) {
	output := func(metric string) string {
		text := ""
		for _, r := range peerRows {
			pkg, name, _ := strings.Cut(r.bench, ".")
			text += fmt.Sprintf("pkg: tailgate/%s\n%s-2   \t       3\t 1000 ns/op\t  70.1 MB/s\t %s\n", pkg, name, strings.ReplaceAll(metric, "PEER", r.named))
		}
		return text
	}
	for name, c := range map[string]struct {
		text, want string
		faults     int
	}{
		"fast":      {output("80.0 x_vs_PEER\t 9.0 warm_x_vs_PEER"), "| 80 |", 0},
		"slow":      {output("0.05 x_vs_PEER\t 9.0 warm_x_vs_PEER"), "(below)", len(peerRows)},
		"no peer":   {output("70 first_MB/s"), "skipped", 0},
		"not there": {"pkg: tailgate/internal/bpe\n", "missing", len(peerRows)},
	} {
		_, ratios, err := parse(strings.NewReader(c.text))
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		if got := len(ratios.report(&out, peerRows, true)); got != c.faults || !strings.Contains(out.String(), c.want) {
			t.Errorf("%s: %d faults, want %d\n%s", name, got, c.faults, out.String())
		}
	}
}
