package refresh_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/zeebo/xxh3"

	"tailgate/internal/parquetio"
	"tailgate/internal/rng"
	"tailgate/refresh"
	"tailgate/schemas"
)

// proofSize is how many days of how many requests are simulated: a fortnight of 200,000 with TAILGATE_PROVE=full, three
// days of 20,000 with small, and of a few without.
func proofSize() (days, perDay int) {
	switch os.Getenv("TAILGATE_PROVE") {
	case "full":
		return 14, 200_000
	case "small":
		return 3, 20_000
	}
	return 3, 600
}

// simulated is the traffic of the proof, in the first format: an empty day in the second half, another gateway version from noon of the
// second day on, and late records of the first.
func simulated() gateway {
	days, perDay := proofSize()
	first := time.Date(2026, 11, 9, 0, 0, 0, 0, time.UTC) // a Monday
	g := gateway{format: gatewayFormats[0], first: first, days: days + 1, perDay: perDay, empty: map[int]bool{days - 1: true}, change: 1, late: map[int]bool{0: true}, veryLate: true}
	if days > 7 {
		g.late[4], g.late[7] = true, true
	}
	return g
}

// quiet does all nights without any disturbance, and keeps the tables and points of each.
func quiet(t *testing.T, log *gatewayLog) (after []map[string]string, places [][]string) {
	t.Helper()
	s := newSite(t, log)
	for day := range log.days {
		var list []string
		status, died, err := s.crashAt(t.Context(), log.nightOf(day), func(place string) bool {
			list = append(list, place)
			return false
		})
		if err != nil || died != "" {
			t.Fatalf("%s: %v", log.date(day), err)
		}
		want := []string{refresh.OutcomeDone, refresh.OutcomeDrift, refresh.OutcomeLate}
		if log.empty[day] {
			want = []string{refresh.OutcomeNoNewData, refresh.OutcomeLate}
		}
		if !slices.Contains(want, status.Outcome) {
			t.Errorf("%s ends with %q, exit %d: %v", log.date(day), status.Outcome, status.Exit, status.Notes)
		}
		if status.Ingest != nil && len(status.Ingest.Dead) > 0 {
			t.Errorf("%s: dead letters %v", log.date(day), status.Ingest.Dead)
		}
		after, places = append(after, s.tables(t)), append(places, list)
	}
	for day := range log.days {
		wholeRows(t, s, log, day)
	}
	return after, places
}

// wholeRows holds a day of the lake against what the gateway logged: each call with its prompt and its tokens, whatever
// the version.
func wholeRows(t *testing.T, s *site, log *gatewayLog, day int) {
	t.Helper()
	if log.empty[day] {
		return
	}
	rows, _, err := parquetio.ReadFile[schemas.Request](filepath.Join(s.root(), "lake", "day="+log.date(day), "requests.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	tokens := 0
	for i := range rows {
		r := &rows[i]
		if r.PromptState != schemas.PromptFull || r.Session == nil || r.InputTokens == nil || len(r.HashIDs) == 0 && r.PrivateBlocks == 0 {
			t.Fatalf("%s, arrived at %v: %+v", log.format.name, r.ArrivedAt, r)
		}
		if r.OutputTokens != nil {
			tokens += int(*r.OutputTokens)
		}
	}
	if refused := log.veryLate && day == 0; !refused && len(rows) != log.volume(day) {
		t.Errorf("%s has %d rows of %d calls", log.date(day), len(rows), log.volume(day))
	}
	if tokens == 0 {
		t.Errorf("%s has no output tokens", log.date(day))
	}
}

// figuresOfNights prints a claim's figure, which tools/prove collects.
func figuresOfNights(t *testing.T, log *gatewayLog, claim, format string, args ...any) {
	t.Helper()
	broker := "in-process"
	if log.real {
		broker = "real"
	}
	t.Logf("figures %s [%s]: %s", claim, broker, fmt.Sprintf(format, args...))
}

// envNight is a night of a child process, as JSON.
const envNight = "TAILGATE_TEST_NIGHT"

// childNight is what a child does, and where it kills itself.
type childNight struct {
	Site  site
	Night night
	Every int      // it dies at each so manyth place by the place's hash; 0 = nowhere
	Seen  []string // but not at these
	Place string   // file for the place
}

// TestNightChild is not a test: it is the process that others kill.
func TestNightChild(t *testing.T) {
	var c childNight
	if json.Unmarshal([]byte(os.Getenv(envNight)), &c) != nil {
		t.Skip("runs as a child")
	}
	_, _, err := c.Site.crashAt(t.Context(), c.Night, func(place string) bool {
		if c.Every > 0 && xxh3.HashString(place)%uint64(c.Every) == 0 && !slices.Contains(c.Seen, place) {
			if err := os.WriteFile(c.Place, []byte(place), 0o600); err != nil {
				t.Fatal(err)
			}
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
		return false
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (c childNight) command(t *testing.T) *exec.Cmd {
	t.Helper()
	data, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestNightChild$")
	cmd.Env = append(os.Environ(), envNight+"="+string(data))
	return cmd
}

// sigkilled tells whether a child was killed; one that ended with a fault ends the test.
func sigkilled(t *testing.T, cmd *exec.Cmd) bool {
	t.Helper()
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL {
		return true
	}
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return false
}

// Real processes are killed by SIGKILL, at places by name and at random moments.
func TestKilledNights(t *testing.T) {
	g := simulated()
	log := newGatewayLog(t, g)
	want, _ := quiet(t, log)
	s := newSite(t, log)
	r := rng.New(5, "kills")
	every, random := 6, 2 // TestNightsThatDieAtEachPlace has all places
	switch os.Getenv("TAILGATE_PROVE") {
	case "full":
		every, random = 3, 10
	case "small":
		every, random = 4, 5
	}
	kills := 0
	for day := range log.days {
		c := childNight{Site: *s, Night: log.nightOf(day)}
		for range random {
			cmd := c.command(t)
			timer := time.AfterFunc(time.Duration(50+r.IntN(1500))*time.Millisecond, func() {
				if cmd.Process != nil {
					_ = cmd.Process.Kill()
				}
			})
			if sigkilled(t, cmd) {
				kills++
			}
			timer.Stop()
		}
		c.Every, c.Place = every, filepath.Join(t.TempDir(), "place")
		for sigkilled(t, c.command(t)) {
			kills++
			place, err := os.ReadFile(c.Place)
			if err != nil {
				t.Fatal(err)
			}
			c.Seen = append(c.Seen, string(place))
		}
		if _, err := s.run(t.Context(), log.nightOf(day), nil); err != nil {
			t.Fatalf("%s, after %d kills: %v", log.date(day), kills, err)
		}
		sameTables(t, log.date(day), want[day], s.tables(t))
	}
	if kills == 0 {
		t.Error("no child was killed")
	}
	figuresOfNights(t, log, "F2", "%d kills by SIGKILL in %d nights: every table, profile and trace equal to the undisturbed run's", kills, log.days)
}

// Two nights at the same time: one says that another is running, and the tables are those of one.
func TestTwoNightsAtATime(t *testing.T) {
	g := simulated()
	g.days, g.veryLate, g.empty = 2, false, nil
	log := newGatewayLog(t, g)
	want, _ := quiet(t, log)
	s := newSite(t, log)
	for day := range log.days {
		var second error
		if _, err := s.run(t.Context(), log.nightOf(day), func(point string) {
			if point == "step-"+string(refresh.StepProfile) && second == nil {
				_, second = s.run(t.Context(), log.nightOf(day), nil)
			}
		}); err != nil {
			t.Fatal(err)
		}
		if second == nil || !strings.Contains(second.Error(), "another refresh is running") {
			t.Errorf("the second night says %v", second)
		}
		sameTables(t, log.date(day), want[day], s.tables(t))
		status, err := s.run(t.Context(), log.nightOf(day), nil)
		if err != nil || status.Outcome != refresh.OutcomeNoNewData && status.Outcome != refresh.OutcomeLate {
			t.Errorf("a third one: %v, %v", status, err)
		}
		sameTables(t, log.date(day)+", once more", want[day], s.tables(t))
	}
	figuresOfNights(t, log, "F3", "%d nights beside another: one gives way; the tables are those of one run", log.days)
}

// A clock that goes back changes nothing, and is named.
func TestClockGoneBack(t *testing.T) {
	g := simulated()
	g.days, g.veryLate, g.empty = 2, false, nil
	log := newGatewayLog(t, g)
	s := newSite(t, log)
	for day := range log.days {
		if _, err := s.run(t.Context(), log.nightOf(day), nil); err != nil {
			t.Fatal(err)
		}
	}
	want := s.tables(t)
	_, err := s.run(t.Context(), log.nightOf(0), nil)
	if err == nil || !strings.Contains(err.Error(), "clock went back") {
		t.Errorf("the clock went back by a day: %v", err)
	}
	sameTables(t, "after it", want, s.tables(t))
	n := log.nightOf(0)
	n.Now = log.day(2).Add(5 * time.Hour)
	if _, err := s.run(t.Context(), n, nil); err != nil {
		t.Errorf("an earlier day by a clock that is right: %v", err)
	}
	sameTables(t, "after an earlier day once more", want, s.tables(t))
	figuresOfNights(t, log, "F4", "a clock a day back: exit 1 and nothing changed")
}

// Rows that come after the key of their day was destroyed are refused, and change nothing; a backfill reads the day again
// under a new key and has them.
func TestLateRowsOfADestroyedKey(t *testing.T) {
	g := simulated()
	g.late = nil
	log := newGatewayLog(t, g)
	s := newSite(t, log)
	for day := range log.days - 1 {
		if _, err := s.run(t.Context(), log.nightOf(day), nil); err != nil {
			t.Fatal(err)
		}
	}
	want := s.tables(t)
	if _, err := os.Stat(s.keys() + "/b-" + stamp(log.first) + ".key"); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("two days after the day closed its key is there: %v", err)
	}
	last := log.nightOf(log.days - 1)
	status, err := s.run(t.Context(), last, nil)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(status.Days, func(d refresh.DayStatus) bool { return d.Day == log.date(0) })
	if i < 0 || status.Days[i].Refused == 0 {
		t.Fatalf("no row of %s is refused: %+v", log.date(0), status.Days)
	}
	refused := status.Days[i].Refused
	got := s.tables(t)
	for path, sum := range want {
		if got[path] != sum {
			t.Errorf("%s has changed", path)
		}
	}
	back := night{Day: log.date(0), Now: last.Now.Add(time.Hour), Backfill: true}
	status, err = s.run(t.Context(), back, nil)
	if err != nil {
		t.Fatal(err)
	}
	if i := slices.IndexFunc(status.Days, func(d refresh.DayStatus) bool { return d.Day == log.date(0) }); i < 0 || status.Days[i].Rows != int64(g.volume(0)) {
		t.Errorf("the backfill has not all of %d rows: %+v", g.volume(0), status.Days)
	}
	got = s.tables(t)
	for path, sum := range want {
		if other := strings.Contains(path, log.date(0)); !other && got[path] != sum {
			t.Errorf("the backfill changed %s", path)
		}
	}
	figuresOfNights(t, log, "F5", "%d rows behind a destroyed key: refused, the tables unchanged; a backfill has all %d", refused, g.volume(0))
}
