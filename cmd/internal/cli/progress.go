package cli

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"

	"tailgate/replay"
)

// plainEvery is how often progress is printed where stderr is not a terminal.
const plainEvery = 10 * time.Second

// progressLine shows the state of a long command: one live line on a terminal, else a line every 10 s.
type progressLine struct {
	mu    sync.Mutex
	w     io.Writer // nil = quiet
	live  bool
	shown bool
	last  time.Time
}

func (a *app) progress() *progressLine {
	if a.quiet {
		return &progressLine{}
	}
	f, ok := a.stderr.(*os.File)
	return &progressLine{w: a.stderr, live: ok && term.IsTerminal(int(f.Fd())), last: time.Now()}
}

func (p *progressLine) show(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.w == nil:
	case p.live:
		fmt.Fprintf(p.w, "\r\x1b[K%s", text)
		p.shown = true
	case time.Since(p.last) >= plainEvery:
		fmt.Fprintln(p.w, text)
		p.last = time.Now()
	}
}

// end clears the live line, so that what follows starts on a fresh one.
func (p *progressLine) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shown {
		fmt.Fprint(p.w, "\r\x1b[K")
		p.shown = false
	}
}

// replayProgress is one line: time and what is left, planned and achieved rate, what is in flight and how it ends,
// latency, our own lateness, tokens.
func replayProgress(p replay.Progress) string {
	left := ""
	if p.Left != replay.Never {
		left = "  left " + p.Left.Round(time.Second).String()
	}
	rate := fmt.Sprintf("%.1f/s", p.SentRate)
	if p.PlannedRate > 0 {
		rate = fmt.Sprintf("%.1f of %.1f/s", p.SentRate, p.PlannedRate)
	}
	waiting := ""
	if p.Waiting > 0 {
		waiting = fmt.Sprintf(" (%d wait)", p.Waiting)
	}
	return fmt.Sprintf("%s%s  sent %d of %d, %s  in flight %d%s  ok %d  failed %d  ttft p50 %s p99 %s  lag p99 %s  %.0f tokens/s",
		p.Elapsed.Round(time.Second), left, p.Sent, p.Rows, rate, p.InFlight, waiting, p.OK, p.Failed, stampText(p.TTFTP50),
		stampText(p.TTFTP99), stampText(p.LagP99), p.OutputRate)
}

// stampText is a latency for people; "-" when there is none yet.
func stampText(d time.Duration) string {
	if d == replay.Never {
		return "-"
	}
	return d.Round(10 * time.Microsecond).String()
}
