package refresh

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tailgate/ingest"
	"tailgate/schemas"
)

const forEver = 100_000 * time.Hour

// nights is a root with n published days of 40 requests.
func nights(t *testing.T, n int) *site {
	t.Helper()
	s := newSite(t)
	var log logOf
	for day := range n {
		log = append(log, requestsOf(day, 40, true)...)
		s.ingest(log, day)
		s.publish(day, 1)
	}
	return s
}

// there lists the days that a folder of the root has.
func (s *site) there(folder string) []string {
	s.t.Helper()
	paths, err := filepath.Glob(s.path(folder, "day=*"))
	if err != nil {
		s.t.Fatal(err)
	}
	for i := range paths {
		paths[i] = strings.TrimSuffix(strings.TrimPrefix(filepath.Base(paths[i]), "day="), ".json")
	}
	return paths
}

func days(from, to int) (out []string) {
	for d := from; d < to; d++ {
		out = append(out, dayName(d))
	}
	return out
}

func TestRetainRemovesWhatHasExpired(t *testing.T) {
	s := nights(t, 4)
	c := Config{Retention: RetentionConfig{Days: 48 * time.Hour, Traces: 24 * time.Hour, BlockKeys: forEver, Pseudonym: forEver}}
	n := s.night(c, nightAt(4).Add(time.Hour))
	n.Status.LastGoodDay = dayName(3)
	plan, err := PlanRetention(t.Context(), n)
	if err != nil || len(s.there(LakeFolder)) != 4 || n.Status.Keys != nil {
		t.Fatalf("%+v, %v", plan, err)
	}
	if err := Retain(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{LakeFolder, ProfilesFolder, ReportsFolder, StateFolder} {
		if diff := cmp.Diff(days(2, 4), s.there(folder)); diff != "" {
			t.Errorf("%s: %s", folder, diff)
		}
	}
	if diff := cmp.Diff(days(3, 4), s.there(TracesFolder)); diff != "" {
		t.Errorf("traces: %s", diff)
	}
	if diff := cmp.Diff(plan, n.Status.Retained); diff != "" {
		t.Errorf("the plan said something else: %s", diff)
	}
	if n.Status.Retained.RemovedBytes == 0 || len(n.Status.Retained.Removed) < 10 {
		t.Errorf("%+v", n.Status.Retained)
	}
	for _, r := range segmentDays(t, s) {
		if r < dayName(2) {
			t.Errorf("rows of %s are left in segments", r)
		}
	}
	if _, err := os.Stat(s.path(trashFolder)); err == nil {
		t.Error("the trash is left")
	}
	// What stays can be built again, and a second run does nothing.
	if _, err := ingest.Publish(t.Context(), ingest.PublishOptions{Lake: s.path(LakeFolder), Day: dayName(2), K: 1, MinRequests: 1}); err != nil {
		t.Error(err)
	}
	if err := Retain(t.Context(), n); err != nil || len(n.Status.Retained.Removed) != 0 {
		t.Errorf("a second time: %+v, %v", n.Status.Retained, err)
	}
}

func segmentDays(t *testing.T, s *site) []string {
	t.Helper()
	days, err := ingest.Days(s.path(LakeFolder))
	if err != nil {
		t.Fatal(err)
	}
	return days
}

// The last good day stays, whatever its age; without one, the newest.
func TestRetainKeepsTheLastGoodDay(t *testing.T) {
	s := nights(t, 3)
	c := Config{Retention: RetentionConfig{Days: 24 * time.Hour, BlockKeys: forEver, Pseudonym: forEver}}
	n := s.night(c, nightAt(100))
	n.Status.LastGoodDay = dayName(1)
	if err := Retain(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(days(1, 2), s.there(LakeFolder)); diff != "" || len(n.Status.Retained.Kept) == 0 {
		t.Errorf("%s %+v", diff, n.Status.Retained)
	}
	if !slices.Contains(segmentDays(t, s), dayName(1)) {
		t.Error("the segments of the last good day are gone")
	}
	n.Status.LastGoodDay = ""
	if err := Retain(t.Context(), n); err != nil || len(s.there(LakeFolder)) != 1 {
		t.Errorf("%v: %v", s.there(LakeFolder), err)
	}
}

// The earlier of the manifest's expiry and the file's time counts.
func TestRetainHonoursTheManifest(t *testing.T) {
	s := nights(t, 2)
	dir := s.path(LakeFolder, "day="+dayName(0))
	m, err := schemas.ReadManifest(dir)
	if err != nil {
		t.Fatal(err)
	}
	m.ExpiresAt = new(nightAt(2))
	if err := m.Write(dir); err != nil {
		t.Fatal(err)
	}
	n := s.night(Config{Retention: RetentionConfig{BlockKeys: forEver, Pseudonym: forEver}}, nightAt(2).Add(-time.Second))
	n.Status.LastGoodDay = dayName(1)
	for _, want := range [][]string{days(0, 2), days(1, 2)} {
		if err := Retain(t.Context(), n); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, s.there(LakeFolder)); diff != "" {
			t.Error(diff)
		}
		n.Now = func() time.Time { return nightAt(2) }
	}
}

// What goes and was an input of what stays is told.
func TestRetainTellsWhatIsStillNamed(t *testing.T) {
	s := nights(t, 2)
	trace, err := schemas.ReadManifest(s.path(TraceFolder(dayName(0))))
	if err != nil {
		t.Fatal(err)
	}
	weekly, err := schemas.ReadManifest(s.path(ProfileFolder(dayName(1))))
	if err != nil {
		t.Fatal(err)
	}
	weekly.Inputs = trace.Files
	if err := weekly.Write(s.path(ProfileFolder(dayName(1)))); err != nil {
		t.Fatal(err)
	}
	n := s.night(Config{Retention: RetentionConfig{Days: 24 * time.Hour, BlockKeys: forEver, Pseudonym: forEver}}, nightAt(2))
	n.Status.LastGoodDay = dayName(1)
	if err := Retain(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	want := []string{TraceFolder(dayName(0)) + " is an input of " + ProfileFolder(dayName(1))}
	if diff := cmp.Diff(want, n.Status.Retained.StillNamed); diff != "" {
		t.Error(diff)
	}
}

// Killed at any point, the next run ends it.
func TestRetainKilledAtEachStep(t *testing.T) {
	s := nights(t, 3)
	s.run(s.path("runs", "old"), s.path(TraceFolder(dayName(0)), "all.jsonl.zst"))
	c := Config{Retention: RetentionConfig{Days: 24 * time.Hour, BlockKeys: 24 * time.Hour, Pseudonym: forEver, Results: []string{"runs"}}}
	n := s.night(c, nightAt(3))
	n.Status.LastGoodDay = dayName(2)
	seen := map[string]bool{}
	n.crash = func(point string) {
		if !seen[point] {
			seen[point] = true
			panic(point)
		}
	}
	for done := false; !done; {
		func() {
			defer func() { _ = recover() }()
			if err := Retain(t.Context(), n); err != nil {
				t.Fatal(err)
			}
			done = true
		}()
		if len(seen) > 100 {
			t.Fatal("it never ends")
		}
		if _, err := os.Stat(s.path(LakeFolder, "day="+dayName(2), lakeTable)); err != nil {
			t.Fatal(err)
		}
	}
	for _, folder := range []string{LakeFolder, ProfilesFolder, TracesFolder, ReportsFolder, StateFolder} {
		if diff := cmp.Diff(days(2, 3), s.there(folder)); diff != "" {
			t.Errorf("%s: %s", folder, diff)
		}
	}
	if entries, _ := os.ReadDir(s.path("runs")); len(entries) > 0 {
		t.Errorf("runs: %v", entries)
	}
	if len(seen) < 15 {
		t.Errorf("%d points", len(seen))
	}
}

func TestRetainDestroysKeysThatAreDue(t *testing.T) {
	s := nights(t, 3)
	c := Config{Lateness: 32 * time.Minute, Retention: RetentionConfig{BlockKeys: 48 * time.Hour, Pseudonym: 90 * 24 * time.Hour}}
	n := s.night(c, nightAt(3).Add(33*time.Minute))
	epochs := func() (out []string) {
		list, err := s.keys.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range list {
			out = append(out, e.ID)
		}
		return out
	}
	all := epochs() // the first two made by init: a block and a pseudonym key
	if err := Retain(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	st := n.Status
	if len(st.Retained.DestroyedKeys) != 2 || len(epochs()) != len(all)-2 { // of the day before, and of the first
		t.Errorf("%v of %v", st.Retained.DestroyedKeys, all)
	}
	data, err := os.ReadFile(s.path(destroyedFile))
	if err != nil || strings.Count(string(data), "\n") != 2 || !strings.Contains(string(data), st.Retained.DestroyedKeys[0]) {
		t.Errorf("%s, %v", data, err)
	}
	for _, k := range st.Keys {
		if k.Overdue || k.Kind == "block" && !k.DueAt.Equal(nightAt(0).Add(24*time.Hour*time.Duration(k.CreatedAt.Sub(nightAt(0)).Hours()/24+3)+32*time.Minute)) {
			t.Errorf("%+v", k)
		}
	}
	// Late rows keep a key, where the file says so; it is overdue then.
	n.Now = func() time.Time { return nightAt(4).Add(33 * time.Minute) }
	n.Status.Days = []DayStatus{{Day: dayName(1), Epoch: all[len(all)-2], Waiting: 3}}
	n.Config.Retention.KeepLateKeys = true
	if err := Retain(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	if len(n.Status.Retained.DestroyedKeys) != 0 || !slices.ContainsFunc(n.Status.Keys, func(k KeyStatus) bool { return k.Overdue && strings.Contains(k.Reason, "3 late rows") }) {
		t.Errorf("%+v", n.Status.Keys)
	}
	n.Config.Retention.KeepLateKeys = false
	if err := Retain(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	if len(n.Status.Retained.DestroyedKeys) != 1 || len(n.Status.Notes) != 1 {
		t.Errorf("%+v %v", n.Status.Retained, n.Status.Notes)
	}
	// A pseudonym key ends with its epoch, when there is a newer one and no block key is left of it.
	n.Now = func() time.Time { return nightAt(95) }
	if err := Retain(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	if last := n.Status.Keys; len(last) != 1 || !last[0].Overdue || !strings.Contains(last[0].Reason, "no newer") {
		t.Errorf("%+v", last)
	}
	if _, err := s.keys.EpochAt(t.Context(), nightAt(94)); err != nil {
		t.Fatal(err)
	}
	if err := Retain(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	if len(n.Status.Keys) != 2 || n.Status.Keys[0].Overdue || n.Status.Keys[1].Overdue || len(n.Status.Retained.DestroyedKeys) != 1 {
		t.Errorf("%+v, destroyed %v", n.Status.Keys, n.Status.Retained.DestroyedKeys)
	}
}

// A key that cannot be destroyed is overdue, and ends the run as a key fault; the next one tries again.
func TestRetainTellsAKeyThatStays(t *testing.T) {
	s := nights(t, 1)
	dir := s.keys.String()
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Chmod(dir, 0o700) })
	if os.Getuid() == 0 {
		t.Skip("root writes everywhere")
	}
	n := s.night(Config{Retention: RetentionConfig{BlockKeys: time.Hour, Pseudonym: forEver}}, nightAt(9))
	if err := Retain(t.Context(), n); err == nil || !slices.ContainsFunc(n.Status.Keys, func(k KeyStatus) bool { return k.Overdue }) {
		t.Errorf("%v: %+v", err, n.Status.Keys)
	}
}

func TestRetainRemovesExpiredResults(t *testing.T) {
	s := nights(t, 1)
	trace := s.path(TraceFolder(dayName(0)), "all.jsonl.zst")
	outer := filepath.Join(t.TempDir(), "runs")
	for _, dir := range []string{"old", "new", "nest", "nest/in"} {
		s.run(filepath.Join(outer, dir), trace)
	}
	for dir, at := range map[string]time.Time{"old": nightAt(5), "new": nightAt(20), "nest": nightAt(5), "nest/in": nightAt(20)} {
		m, err := schemas.ReadManifest(filepath.Join(outer, dir))
		if err != nil {
			t.Fatal(err)
		}
		m.ExpiresAt = &at
		if err := m.Write(filepath.Join(outer, dir)); err != nil {
			t.Fatal(err)
		}
	}
	s.mkdir(filepath.Join(outer, trashPrefix+"left-by-a-kill"))
	n := s.night(Config{Retention: RetentionConfig{Results: []string{outer, "not-there"}, BlockKeys: forEver, Pseudonym: forEver}}, nightAt(6))
	for _, want := range [][]string{{"nest", "new"}, {}} {
		if err := Retain(t.Context(), n); err != nil {
			t.Fatal(err)
		}
		got := []string{}
		entries, _ := os.ReadDir(outer)
		for _, e := range entries {
			got = append(got, e.Name())
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		n.Now = func() time.Time { return nightAt(21) }
	}
}
