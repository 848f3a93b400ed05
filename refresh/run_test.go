package refresh_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tailgate/anonymize"
	"tailgate/internal/fault"
	"tailgate/refresh"
)

// noDrift is for tests whose few requests are no traffic to compare.
const noDrift = "drift: {limits: {request_rate: off, iat_cv: off, idc_60s: off, burstiness: off, mean_turns: off, input_length_ks: off, " +
	"output_length_ks: off, input_length_psi: off, output_length_psi: off, hit_curve: off}}\n"

const twoTraces = "traces: {classes: [all, interactive, nosuch], scales: [1.5x]}\n"

// Three nights: each day whole, with its own epoch, though its rows are logged on two nights; a second run does nothing.
func TestThreeNights(t *testing.T) {
	log := &timedLog{}
	log.days(0, 3, 200)
	p := newPlace(t, log)
	p.extra = twoTraces
	epochs := map[string]bool{}
	for day := range 3 {
		s := p.good(day, refresh.OutcomeDone)
		if n := len(s.Days); n != 1 || s.Days[0].Rows != 200 || s.Days[0].Refused != 0 || !s.Days[0].Complete {
			t.Errorf("days %+v", s.Days)
		}
		epochs[s.Days[0].Epoch] = true
		if s.LastGoodDay != dayName(day) || s.Exit != 0 {
			t.Errorf("last good day %s, exit %d", s.LastGoodDay, s.Exit)
		}
		if against := s.Drift.Against; day > 0 && against != dayName(day-1) {
			t.Errorf("drift against %q", against)
		}
	}
	if len(epochs) != 3 {
		t.Errorf("epochs %v, want one a day", epochs)
	}
	before := p.tables()
	for _, name := range []string{"traces/day=" + dayName(2) + "/all@1.5x.jsonl.zst", "traces/day=" + dayName(0) + "/interactive.jsonl.zst",
		"lake/day=" + dayName(1) + "/requests.parquet", "profiles/day=" + dayName(2) + "/profile_rate.parquet"} {
		if before[name] == "" {
			t.Errorf("%s is missing", name)
		}
	}
	s := p.good(2, refresh.OutcomeNoNewData)
	if s.Exit != 8 {
		t.Errorf("exit %d of a second run, want 8", s.Exit)
	}
	for _, r := range s.Steps {
		if r.State == refresh.StepDone {
			t.Errorf("the second run did %s", r.Step)
		}
	}
	if diff := cmp.Diff(before, p.tables()); diff != "" {
		t.Errorf("the second run changed something:\n%s", diff)
	}
	data, err := os.ReadFile(filepath.Join(p.root, refresh.StatusFile))
	if err != nil {
		t.Fatal(err)
	}
	if last, err := refresh.ParseStatus(data); err != nil || last.Outcome != refresh.OutcomeNoNewData || last.LastGoodDay != dayName(2) {
		t.Errorf("status %+v, %v", last, err)
	}
	page, err := os.ReadFile(filepath.Join(p.root, refresh.StatusPage))
	if err != nil || !strings.Contains(string(page), dayName(2)) {
		t.Errorf("page: %v\n%s", err, page)
	}
}

// killed is what a crash throws.
type killed struct{ point string }

// crashAt runs a day that dies at the n-th point, and tells whether it came so far.
func crashAt(p *place, day, n int) (point string, died bool) {
	defer func() {
		if k, ok := recover().(killed); ok {
			point, died = k.point, true
		}
		p.crash = nil
	}()
	p.crash = func(point string) {
		if n--; n < 0 {
			panic(killed{point})
		}
	}
	if _, err := p.run(day); err != nil {
		p.t.Fatal(err)
	}
	return "", false
}

// A run that dies at any border of two steps, or before or after any rename, is finished by the next, with the bytes of
// one that nothing disturbed. Every point is tried with TAILGATE_PROVE, else every seventh.
func TestKilledAnywhere(t *testing.T) {
	log := &timedLog{}
	log.days(0, 2, 60)
	calm := newPlace(t, log)
	calm.extra = twoTraces
	calm.good(0, refresh.OutcomeDone)
	first := filepath.Join(t.TempDir(), "first")
	if err := os.CopyFS(first, os.DirFS(calm.root)); err != nil {
		t.Fatal(err)
	}
	calm.good(1, refresh.OutcomeDone)
	want := calm.tables()
	step := 7
	if os.Getenv("TAILGATE_PROVE") != "" {
		step = 1
	}
	points := map[string]bool{}
	for n := 0; ; n += step {
		p := newPlace(t, log)
		p.copyKeys(calm)
		p.extra = twoTraces
		if err := os.CopyFS(p.root, os.DirFS(first)); err != nil {
			t.Fatal(err)
		}
		point, died := crashAt(p, 1, n)
		if !died {
			break
		}
		points[point] = true
		if _, err := p.run(1); err != nil {
			t.Fatalf("after a crash at %s: %v", point, err)
		}
		if diff := cmp.Diff(want, p.tables()); diff != "" {
			t.Fatalf("after a crash at %s:\n%s", point, diff)
		}
		if left, err := os.ReadDir(filepath.Join(p.root, "state", "work")); err == nil && len(left) > 0 {
			t.Errorf("after a crash at %s: %d folders are left", point, len(left))
		}
		if s, err := p.run(1); err != nil || s.Outcome != refresh.OutcomeNoNewData {
			t.Fatalf("after a crash at %s, third run: %v %+v", point, err, s)
		}
	}
	if len(points) < 5 {
		t.Errorf("it died at %v only", points)
	}
	for _, must := range []string{"before-rename-traces/day=" + dayName(1), "after-rename-profiles/day=" + dayName(1), "step-ingest", "before-good",
		"before-write-reports/status.json", "after-write-state/day=" + dayName(1) + ".json"} {
		if !points[must] && step == 1 {
			t.Errorf("no crash at %s: %v", must, points)
		}
	}
}

// Late rows make the day, and what was made of it, anew in the next night; what waits is told where the file says so.
func TestLateRows(t *testing.T) {
	for _, late := range []string{"rebuild", "wait"} {
		t.Run(late, func(t *testing.T) {
			log := &timedLog{}
			log.days(0, 1, 60)
			p := newPlace(t, log)
			p.extra = "late: " + late + "\n" + noDrift
			p.good(0, refresh.OutcomeDone)
			for i := range 5 { // logged on the next day
				log.add(500+i, midnight(0).Add(20*time.Hour), midnight(1).Add(5*time.Hour))
			}
			log.days(1, 2, 60)
			if late == "wait" {
				s := p.good(1, refresh.OutcomeLate)
				if s.Exit != 9 || s.Days[0].Day != dayName(0) || s.Days[0].Waiting != 5 {
					t.Errorf("exit %d, days %+v", s.Exit, s.Days)
				}
				p.now = midnight(3)
				if s := p.good(0, refresh.OutcomeDone); s.Days[0].Rows != 65 {
					t.Errorf("named, the day has %+v", s.Days)
				}
				return
			}
			s := p.good(1, refresh.OutcomeDone)
			if len(s.Days) != 2 || s.Days[0].Day != dayName(0) || s.Days[0].Rows != 65 || s.Days[0].Late != 5 || s.Days[0].Refused != 0 {
				t.Errorf("days %+v", s.Days)
			}
		})
	}
}

// Once the key is destroyed a day takes no late rows; a backfill reads it again under a new one.
func TestBackfillAfterTheKey(t *testing.T) {
	log := &timedLog{}
	log.days(0, 1, 60)
	p := newPlace(t, log)
	p.extra = noDrift
	s := p.good(0, refresh.OutcomeDone)
	old := s.Days[0].Epoch
	ring, err := anonymize.OpenKeyDir(p.keys)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ring.Destroy(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		log.add(500+i, midnight(0).Add(20*time.Hour), midnight(1).Add(5*time.Hour))
	}
	log.days(1, 2, 60)
	s = p.good(1, refresh.OutcomeLate)
	if s.Days[0].Refused != 5 || s.Exit != 9 {
		t.Errorf("exit %d, days %+v", s.Exit, s.Days)
	}
	o := p.options(1)
	o.Day, o.Backfill = dayName(0), true
	var runs int
	for runs = 0; ; runs++ { // it dies here and there, and goes on
		n := 11 * runs
		died := func() (died bool) {
			defer func() { _, died = recover().(killed) }()
			o.Crash = func(point string) {
				if n--; n < 0 {
					panic(killed{point})
				}
			}
			if s, err = refresh.Run(t.Context(), o); err != nil {
				t.Fatal(err)
			}
			return false
		}()
		if !died {
			break
		}
	}
	if runs < 3 {
		t.Errorf("it died %d times only", runs)
	}
	if s.Days[0].Rows != 65 || s.Days[0].Refused != 0 || s.Days[0].Epoch == old || s.Outcome != refresh.OutcomeDone && s.Outcome != refresh.OutcomeNoNewData {
		t.Errorf("after the backfill: %s, %+v", s.Outcome, s.Days) // the last run had little or nothing left to do
	}
	o.Crash = nil
	if s, err = refresh.Run(t.Context(), o); err != nil || s.Outcome != refresh.OutcomeNoNewData {
		t.Errorf("a second backfill: %v, %s", err, s.Outcome)
	}
	// The next day is whole, and complete: the second reading says nothing of how far the log was read.
	// Its drift is told anew: the day before it is another one.
	if s := p.good(1, refresh.OutcomeDone); s.LastGoodDay != dayName(1) {
		t.Errorf("last good day %s", s.LastGoodDay)
	}
}

// A night that was missed is made up for by the next one.
func TestMissedNight(t *testing.T) {
	log := &timedLog{}
	log.days(0, 3, 60)
	p := newPlace(t, log)
	p.good(0, refresh.OutcomeDone)
	s := p.good(2, refresh.OutcomeDone)
	if len(s.Days) != 2 || s.Days[0].Day != dayName(1) || s.Days[0].Rows != 60 {
		t.Errorf("days %+v", s.Days)
	}
}

// What is wrong is named, and the last good day stays as it is.
func TestBadNights(t *testing.T) {
	log := &timedLog{}
	log.days(0, 1, 60)
	p := newPlace(t, log)
	p.good(0, refresh.OutcomeDone)
	want := p.tables()
	log.days(1, 2, 60)
	profile := filepath.Join(p.root, "profiles", "day="+dayName(0), "manifest.json")
	lake := filepath.Join(p.root, "lake", "day="+dayName(0), "manifest.json")
	for _, tt := range []struct {
		name  string
		spoil func(o *refresh.Options)
		want  string
		kind  fault.Kind
	}{
		{"clock gone back", func(o *refresh.Options) {
			o.Day = dayName(-1)
			o.Now = func() time.Time { return midnight(0).Add(time.Hour) }
		},
			"the clock went back", fault.Failure},
		{"the day is not over", func(o *refresh.Options) { o.Now = func() time.Time { return midnight(1).Add(23 * time.Hour) } }, "the day ends at", fault.Usage},
		{"no such store", func(o *refresh.Options) { log.err = errors.New("no broker answers") }, "no broker answers", fault.Failure},
		{"a half-written manifest of a day", func(*refresh.Options) { cut(t, lake) }, "not a manifest", fault.Data},
		{"no such envelope", func(o *refresh.Options) { o.Config.Envelope = "nowhere.yaml" }, "reading the envelope", fault.Failure},
	} {
		t.Run(tt.name, func(t *testing.T) {
			saved, err := os.ReadFile(lake)
			if err != nil {
				t.Fatal(err)
			}
			o := p.options(1)
			tt.spoil(&o)
			_, err = refresh.Run(t.Context(), o)
			if err == nil || !strings.Contains(err.Error(), tt.want) || fault.Of(err) != tt.kind {
				t.Errorf("error %v (kind %d)", err, fault.Of(err))
			}
			log.err = nil
			if err := os.WriteFile(lake, saved, 0o644); err != nil {
				t.Fatal(err)
			}
			got := p.tables()
			for name, sum := range want {
				if got[name] != sum {
					t.Errorf("%s of the last good day has changed", name)
				}
			}
		})
	}
	cut(t, profile)
	if err := os.WriteFile(filepath.Join(p.root, refresh.StatusFile), []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	s, err := p.run(0)
	if err != nil || !strings.Contains(strings.Join(s.Notes, "\n"), "not a manifest") || !strings.Contains(strings.Join(s.Notes, "\n"), "reading the status") {
		t.Errorf("a half-written manifest of a profile: %v, %q", err, s.Notes)
	}
	if s := p.good(5, refresh.OutcomeNoNewData); s.Exit != 8 || !strings.Contains(strings.Join(s.Notes, "\n"), "no request arrived on "+dayName(5)) {
		t.Errorf("a day without data: exit %d, %q", s.Exit, s.Notes)
	}
}

// cut keeps the first half of a file.
func cut(t *testing.T, path string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data[:len(data)/2], 0o644); err != nil {
		t.Fatal(err)
	}
}
