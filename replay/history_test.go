package replay_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"tailgate/internal/fault"
	"tailgate/replay"
	"tailgate/schemas"
)

// parrot answers every request at once with its own row number and notes what it was handed.
type parrot struct {
	mu     sync.Mutex
	fail   int64 // row that fails; -1 = none
	before map[int64][]string
	kept   map[int64]bool
}

func (p *parrot) Send(_ context.Context, c *replay.Call, done func(*replay.Call)) {
	go func() {
		p.mu.Lock()
		var said []string
		for x := c.Before; x != nil; x = x.Before {
			said = append(said, x.Answer.Text)
		}
		slices.Reverse(said)
		p.before[c.Row.Row], p.kept[c.Row.Row] = said, c.KeepAnswer
		p.mu.Unlock()
		o := &c.Outcome
		o.Sent, o.Closed, o.Status = c.Now(), c.Now(), schemas.ResultOK
		o.Answer.Text = string(rune('a' + c.Row.Row))
		if c.Row.Row == p.fail {
			o.Status, o.ErrorKind = schemas.ResultReset, replay.KindReset
		}
		done(c)
	}()
}

func (*parrot) Close() error { return nil }

func TestLiveHistoryHandsAnswersToTheNextTurn(t *testing.T) {
	// Rows 0 → 1 → 2 and, of the same parent, 0 → 3; row 4 is alone.
	p := plan(0, 1, 2, 3, 4)
	for child, parent := range map[int]int64{1: 0, 2: 1, 3: 0} {
		p.Rows[child].Parent = &parent
	}
	for _, c := range []struct {
		name string
		fail int64
		want map[int64]string
	}{
		{"all well", -1, map[int64]string{0: "", 1: "a", 2: "a b", 3: "a", 4: ""}},
		{"a failed turn breaks the chain", 1, map[int64]string{0: "", 1: "a", 2: "", 3: "a", 4: ""}},
	} {
		t.Run(c.name, func(t *testing.T) {
			tr := &parrot{fail: c.fail, before: map[int64][]string{}, kept: map[int64]bool{}}
			rec, err := replay.NewRecorder(t.TempDir(), "run", schemas.Footer{})
			if err != nil {
				t.Fatal(err)
			}
			o := replay.Options{Turns: replay.TurnsThink, History: replay.HistoryLive}
			if _, err := replay.RunReal(t.Context(), p, o, tr, rec); err != nil {
				t.Fatal(err)
			}
			if err := rec.Discard(); err != nil {
				t.Fatal(err)
			}
			for row, want := range c.want {
				if got := strings.Join(tr.before[row], " "); got != want {
					t.Errorf("row %d was handed %q, want %q", row, got, want)
				}
				if kept := tr.kept[row]; kept != (row == 0 || row == 1) {
					t.Errorf("row %d: keep answer %v", row, kept)
				}
			}
		})
	}
}

func TestLiveHistoryNeedsThinkTimes(t *testing.T) {
	o := replay.Options{History: replay.HistoryLive}
	if err := o.Validate(); fault.Of(err) != fault.Usage || !strings.Contains(err.Error(), "think") {
		t.Errorf("%v", err)
	}
}
