package cli

import (
	"bytes"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"tailgate/replay"
)

func TestReplayMetrics(t *testing.T) {
	var notes bytes.Buffer
	a := &app{stderr: &notes}
	m, err := a.serveReplayMetrics(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := regexp.MustCompile(`http://\S+`).FindString(notes.String())
	read := func() string {
		resp, err := http.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if text := read(); !strings.Contains(text, "\ntailgate_replay_ttft_p99_seconds -1\n") || !strings.Contains(text, "\ntailgate_replay_sent 0\n") {
		t.Error(text)
	}
	m.show(replay.Progress{Sent: 7, Waiting: 2, LagP99: 3 * time.Millisecond, TTFTP99: time.Second, SentRate: 1.5})
	text := read()
	for _, want := range []string{"sent 7", "backlog 2", "lag_p99_seconds 0.003", "ttft_p99_seconds 1", "sent_rate 1.5"} {
		if !strings.Contains(text, "\ntailgate_replay_"+want+"\n") {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if _, err := a.serveReplayMetrics(t.Context(), url[len("http://"):strings.LastIndex(url, "/")]); err == nil {
		t.Error("an address that is taken is served")
	}
	if m, err := a.serveReplayMetrics(t.Context(), ""); m != nil || err != nil {
		t.Error(m, err)
	}
}
