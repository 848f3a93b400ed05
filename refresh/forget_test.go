package refresh

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tailgate/internal/fault"
	"tailgate/internal/parquetio"
	"tailgate/schemas"
	"tailgate/trace"
)

func (s *site) forgetOptions(also ...string) ForgetOptions {
	root, err := OpenRoot(s.root, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return ForgetOptions{Root: root, Lake: s.path(LakeFolder), Keys: s.keys, Kind: schemas.ForgetTenant, Name: []byte(gone), Also: also, Tool: "test"}
}

// token is what rows have of a name.
func (s *site) token(kind, name string) string {
	s.t.Helper()
	p, err := s.keys.Pseudonyms(s.t.Context(), kind, []byte(name))
	if err != nil {
		s.t.Fatal(err)
	}
	return p[0].Token
}

// twoDays is a root with two days, all that is made of them, and a run of the first; and the same without the tenant.
func twoDays(t *testing.T, k int, sessions bool) (s *site, runs string, want [2][]schemas.Request) {
	s = newSite(t)
	runs = filepath.Join(t.TempDir(), "runs")
	log := append(requestsOf(0, 80, sessions), requestsOf(1, 80, sessions)...)
	s.ingest(log[:80], 0)
	s.ingest(log, 1)
	for day := range 2 {
		s.publish(day, k)
	}
	s.run(filepath.Join(runs, "night", "one"), s.path(TraceFolder(dayName(0)), "all.jsonl.zst"))
	other := &site{t: t, root: filepath.Join(t.TempDir(), "other"), keys: s.keys}
	without := slices.DeleteFunc(slices.Clone(log), func(b []byte) bool { return strings.Contains(string(b), gone) })
	n := len(without) / 2
	other.ingest(without[:n], 0)
	other.ingest(without, 1)
	for day := range 2 {
		other.publish(day, k)
		want[day] = other.requests(day)
	}
	return s, runs, want
}

// sameBut compares rows without what tells of their place in the log.
func sameBut(a, b []schemas.Request) string {
	strip := func(rows []schemas.Request) []schemas.Request {
		rows = slices.Clone(rows)
		for i := range rows {
			rows[i].Offset, rows[i].Topic = 0, ""
		}
		return rows
	}
	return cmp.Diff(strip(a), strip(b))
}

// Forgotten in the lake and in all that was made of it: the tokens of a tenant are nowhere but in the tombstone, and what
// stays is what there would be without him.
func TestForgetATenant(t *testing.T) {
	s, runs, want := twoDays(t, 1, true)
	token := s.token("tenant", gone)
	if n := len(holding(t, s.root, token)); n < 8 {
		t.Fatalf("only %d places hold the token to begin with", n)
	}
	o := s.forgetOptions(runs)
	o.DryRun = true
	dry, err := Forget(t.Context(), o)
	if err != nil || dry.Segments.Rows != 32 || len(dry.Days) != 2 || len(dry.Folders) != 3 || len(s.requests(0)) != 80 {
		t.Fatalf("a dry run: %+v, %v", dry, err)
	}
	o.DryRun = false
	r, err := Forget(t.Context(), o)
	if err != nil || r.Segments.Rows != 32 || len(r.Left) > 0 || len(r.Unsearched) > 0 || len(r.Folders) != 3 {
		t.Fatalf("%+v, %v", r, err)
	}
	for day := range 2 {
		if diff := sameBut(want[day], s.requests(day)); diff != "" {
			t.Errorf("day %d: %s", day, diff)
		}
		checkTrace(t, s.path(TraceFolder(dayName(day)), "all.jsonl.zst"), 64)
		if _, err := os.Stat(s.path(ProfileFolder(dayName(day)))); err == nil {
			t.Error("a profile of the day is left")
		}
	}
	checkRun(t, filepath.Join(runs, "night", "one"))
	for _, dir := range []string{s.root, runs} {
		for _, file := range holding(t, dir, token, gone) {
			if !strings.HasPrefix(file, "lake/_forgotten/") {
				t.Errorf("%s holds the token or the name", file)
			}
		}
	}
	if data, err := json.Marshal(r); err != nil || strings.Contains(string(data), gone) || strings.Contains(string(data), token) {
		t.Errorf("the report names who was forgotten: %s, %v", data, err)
	}
	again, err := Forget(t.Context(), o)
	if err != nil || again.Segments.Rows != 0 || len(again.Folders) != 0 || len(again.Days) != 0 {
		t.Errorf("a second time: %+v, %v", again, err)
	}
	// Read again under a new pseudonym key, the log does not bring him back.
	if _, err := s.keys.EpochAt(t.Context(), nightAt(100)); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(s.path(LakeFolder, "_segments")); err != nil {
		t.Fatal(err)
	}
	back := s.ingest(requestsOf(0, 80, true), 100)
	if back.Total.Rows != 64 || back.Total.Skips["forgotten"] != 16 {
		t.Errorf("read again: %+v", back.Total)
	}
}

func checkTrace(t *testing.T, path string, rows int) {
	t.Helper()
	tr, err := trace.Load(t.Context(), path, trace.Options{})
	if err != nil || len(tr.Rows) != rows {
		t.Fatalf("%d rows, %v", len(tr.Rows), err)
	}
	if faults := tr.Check(); len(faults) > 0 {
		t.Errorf("%v", faults)
	}
	turns := map[string]int32{}
	for _, r := range tr.Rows {
		if r.Session == nil || r.Turn != turns[*r.Session] || (r.Parent == nil) != (r.Turn == 0) {
			t.Fatalf("row %+v", r)
		}
		turns[*r.Session]++
	}
	m, err := schemas.ReadManifest(filepath.Dir(path))
	if err != nil || m.Files[0].Rows != int64(rows) {
		t.Fatalf("%+v, %v", m, err)
	}
	for _, f := range m.Files {
		if now, err := schemas.DigestFile(filepath.Dir(path), filepath.Join(filepath.Dir(path), f.Name)); err != nil || now.SHA256 != f.SHA256 {
			t.Errorf("the manifest does not fit %s: %v", f.Name, err)
		}
	}
}

func checkRun(t *testing.T, dir string) {
	t.Helper()
	rows, _, err := parquetio.ReadFile[schemas.Result](filepath.Join(dir, "results.parquet"))
	if err != nil || len(rows) != 64 {
		t.Fatalf("%d results, %v", len(rows), err)
	}
	m, err := schemas.ReadManifest(dir)
	if err != nil || m.Run.Scheduled != 64 || m.Run.Sent != 64 || m.Files[0].Rows != 64 {
		t.Errorf("%+v, %v", m, err)
	}
}

// Where the name of the tenant was suppressed, its sessions tell.
func TestForgetASuppressedTenant(t *testing.T) {
	s, runs, want := twoDays(t, 30, true) // four sessions of a team are too few
	token := s.token("tenant", gone)
	if files := holding(t, runs, token); len(files) > 0 {
		t.Fatalf("the name was not suppressed: %v", files)
	}
	r, err := Forget(t.Context(), s.forgetOptions(runs))
	if err != nil || len(r.Folders) != 3 {
		t.Fatalf("%+v, %v", r, err)
	}
	for day := range 2 {
		if diff := sameBut(want[day], s.requests(day)); diff != "" {
			t.Errorf("day %d: %s", day, diff)
		}
		checkTrace(t, s.path(TraceFolder(dayName(day)), "all.jsonl.zst"), 64)
	}
	checkRun(t, filepath.Join(runs, "night", "one"))
}

// Rows without a session are known in no trace when the name was suppressed: traces go, to be made again.
func TestForgetRowsWithoutASession(t *testing.T) {
	s, _, want := twoDays(t, 30, false)
	r, err := Forget(t.Context(), s.forgetOptions())
	if err != nil || r.Segments.Loners != 32 || !slices.Contains(r.Again, TraceFolder(dayName(0))) {
		t.Fatalf("%+v, %v", r, err)
	}
	if diff := sameBut(want[0], s.requests(0)); diff != "" {
		t.Error(diff)
	}
}

func TestForgetASession(t *testing.T) {
	s, runs, _ := twoDays(t, 1, true)
	o := s.forgetOptions(runs)
	o.Kind, o.Name = schemas.ForgetSession, []byte("trace-0-3")
	r, err := Forget(t.Context(), o)
	if err != nil || r.Segments.Rows != 4 || len(s.requests(0)) != 76 || len(s.requests(1)) != 80 || len(r.Folders) != 2 {
		t.Fatalf("%+v, %v", r, err)
	}
	checkTrace(t, s.path(TraceFolder(dayName(0)), "all.jsonl.zst"), 76)
	if files := holding(t, s.root, s.token("session", "trace-0-3")); len(files) != 1 {
		t.Errorf("%v", files)
	}
}

// Killed at any step, the next run ends it, and every file is whole at each.
func TestForgetJobKilledAtEachStep(t *testing.T) {
	s, runs, want := twoDays(t, 1, true)
	token := s.token("tenant", gone)
	type killed struct{ at string }
	seen := map[string]bool{}
	for done := false; !done; {
		if len(seen) > 100 {
			t.Fatal("it never ends")
		}
		o := s.forgetOptions(runs)
		o.Crash = func(point string) {
			if !seen[point] {
				seen[point] = true
				panic(killed{point})
			}
		}
		func() {
			defer func() {
				if k, ok := recover().(killed); !ok {
					return
				} else if rows := s.requests(0); len(rows) != 80 && len(rows) != 64 {
					t.Fatalf("killed at %s: %d rows", k.at, len(rows))
				}
				for _, glob := range []string{s.path(TracesFolder, "*", "*.zst"), filepath.Join(runs, "*", "*", "results.parquet")} {
					if files, _ := filepath.Glob(glob); len(files) == 0 {
						t.Fatalf("%s is gone", glob)
					}
				}
			}()
			if _, err := Forget(t.Context(), o); err != nil {
				t.Fatal(err)
			}
			done = true
		}()
	}
	// What SIGKILL leaves of work and trash is removed, too: it would hold the token.
	for _, dir := range []string{s.path(workFolder, "x"), s.path(trashFolder, "x"), filepath.Join(runs, forgetPrefix+"x"), filepath.Join(filepath.Dir(runs), forgetPrefix+"x")} {
		s.mkdir(dir)
		s.write(filepath.Join(dir, "rows"), token)
	}
	if r, err := Forget(t.Context(), s.forgetOptions(runs)); err != nil || len(r.Left) > 0 {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(runs), forgetPrefix+"x")); err == nil {
		t.Error("what a killed run left beside a folder is there")
	}
	if len(seen) < 12 {
		t.Errorf("killed at %d points only: %v", len(seen), seen)
	}
	for day := range 2 {
		if diff := sameBut(want[day], s.requests(day)); diff != "" {
			t.Errorf("day %d: %s", day, diff)
		}
		checkTrace(t, s.path(TraceFolder(dayName(day)), "all.jsonl.zst"), 64)
	}
	checkRun(t, filepath.Join(runs, "night", "one"))
	files := append(holding(t, s.root, token), holding(t, runs, token)...)
	if len(files) != 1 {
		t.Errorf("%v", files)
	}
	if dirs, _ := filepath.Glob(filepath.Join(runs, "*", forgetPrefix+"*")); len(dirs) > 0 {
		t.Errorf("left behind: %v", dirs)
	}
}

// A day whose segments retention took is filtered in place.
func TestForgetADayWithoutSegments(t *testing.T) {
	s, _, want := twoDays(t, 1, true)
	c := Config{Retention: RetentionConfig{Segments: 12 * time.Hour, BlockKeys: 1000 * time.Hour, Pseudonym: 1000 * time.Hour}}
	n := s.night(c, nightAt(2))
	n.Status.LastGoodDay = dayName(1)
	if err := Retain(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	n.lease.release(t.Context())
	n.lease.stop = make(chan struct{}) // for the clean-up
	o := s.forgetOptions()
	r, err := Forget(t.Context(), o)
	if err != nil || len(r.Days) != 2 {
		t.Fatalf("%+v, %v", r, err)
	}
	for day, done := range []string{DayFiltered, DayRebuilt} {
		if r.Days[day].Done != done || r.Days[day].Rows != 64 {
			t.Errorf("%+v", r.Days[day])
		}
	}
	got := s.requests(0)
	if len(got) != len(want[0]) {
		t.Fatalf("%d rows", len(got))
	}
	for i := range got {
		if got[i].RequestKey != want[0][i].RequestKey || !cmp.Equal(got[i].Turn, want[0][i].Turn) || !cmp.Equal(got[i].Tenant, want[0][i].Tenant) {
			t.Errorf("row %d: %s", i, cmp.Diff(want[0][i], got[i]))
		}
	}
	m, err := schemas.ReadManifest(s.path(LakeFolder, "day="+dayName(0)))
	if now, derr := schemas.DigestFile(s.path(LakeFolder, "day="+dayName(0)), s.path(LakeFolder, "day="+dayName(0), lakeTable)); err != nil || derr != nil ||
		now.SHA256 != m.Files[0].SHA256 || m.Files[0].Rows != 64 {
		t.Errorf("%+v %+v, %v %v", m.Files, now, err, derr)
	}
}

// Days whose pseudonym key is gone are named; nothing is claimed of them.
func TestForgetNamesWhatCannotBeSearched(t *testing.T) {
	s := newSite(t)
	s.ingest(requestsOf(0, 40, true), 0)
	s.publish(0, 1)
	if _, err := s.keys.EpochAt(t.Context(), nightAt(95)); err != nil {
		t.Fatal(err)
	}
	epochs, err := s.keys.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range epochs {
		if e.Kind == "pseudonym" && e.CreatedAt.Before(nightAt(50)) {
			if _, err := s.keys.Destroy(t.Context(), e.ID); err != nil {
				t.Fatal(err)
			}
		}
	}
	r, err := Forget(t.Context(), s.forgetOptions())
	if err != nil || len(r.Unsearched) != 1 || r.Unsearched[0].Day != dayName(0) || r.Segments.Rows != 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

// What is not rewritten and holds a token is named, and is no success.
func TestForgetTellsWhatIsLeft(t *testing.T) {
	s, runs, _ := twoDays(t, 1, true)
	s.write(filepath.Join(runs, "night", "report.html"), fmt.Sprintf("<td>%s</td>", s.token("tenant", gone)))
	r, err := Forget(t.Context(), s.forgetOptions(runs))
	if fault.Of(err) != fault.Key || len(r.Left) != 1 || !strings.HasSuffix(r.Left[0], "report.html") {
		t.Errorf("%+v, %v", r, err)
	}
	if err := os.Remove(filepath.Join(runs, "night", "report.html")); err != nil {
		t.Fatal(err)
	}
	o := s.forgetOptions(runs)
	o.Kind, o.Name, o.Again = "", nil, true
	if r, err := Forget(t.Context(), o); err != nil || len(r.Tombstones) != 1 {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestForgetRefusesAnEmptyName(t *testing.T) {
	s := newSite(t)
	o := s.forgetOptions()
	o.Name = nil
	if _, err := Forget(t.Context(), o); fault.Of(err) != fault.Usage {
		t.Errorf("%v", err)
	}
}

// What tailgate made of rows and holds a token is removed, rows as text are rewritten, and what others wrote is left and
// named: without such a file a run ends well.
func TestForgetWhatWasMadeOfRows(t *testing.T) {
	s, runs, _ := twoDays(t, 1, true)
	token, run := s.token("tenant", gone), filepath.Join(runs, "night", "one")
	other := s.token("tenant", "team-quay")
	makeOfRows(s, run, token, other)
	o := s.forgetOptions(runs)
	o.DryRun = true
	dry, err := Forget(t.Context(), o)
	if err != nil || len(dry.Removed) != len(madeNames) || len(dry.Left) != 0 || len(holding(t, run, token)) < len(madeNames) {
		t.Fatalf("a dry run: %+v, %v", dry, err)
	}
	o.DryRun = false
	r, err := Forget(t.Context(), o)
	if err != nil || len(r.Left) != 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	var names []string
	for _, made := range r.Removed {
		names = append(names, filepath.Base(made.File))
		if made.What == "" {
			t.Errorf("%+v", made)
		}
	}
	slices.Sort(names)
	if diff := cmp.Diff(madeNames, names); diff != "" {
		t.Error(diff)
	}
	for name, want := range map[string]string{
		"rows.csv":   "row,tenant,status\n1," + other + ",\"o\nk\"\n3,,ok\n",
		"rows.jsonl": `{"row":1,"tenant":"` + other + `"}` + "\n\n" + `{"row":3,"tenant":null}`,
		"plain.html": "<p>nobody</p>",
	} {
		if got, err := os.ReadFile(filepath.Join(run, name)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	checkRun(t, run)
	m, err := schemas.ReadManifest(run)
	if err != nil || len(m.Files) != 1 {
		t.Errorf("the manifest names what was removed: %+v, %v", m.Files, err)
	}
	if left, _ := filepath.Glob(filepath.Join(runs, "profile", "*")); len(left) != 0 {
		t.Errorf("half a profile is left: %v", left)
	}
}

// madeNames are the files of makeOfRows that go.
var madeNames = []string{"buckets.parquet", "gate.xml", "page.html", "profile", "report.json", "trace.csv"}

// makeOfRows writes what commands make of results: each file holds the token, but one.
func makeOfRows(s *site, run, token, other string) {
	s.t.Helper()
	for name, text := range map[string]string{
		"page.html":   "<!doctype html>\n<meta name=\"generator\" content=\"tailgate\">\n<td>" + token + "</td>",
		"plain.html":  "<p>nobody</p>",
		"report.json": `{"definition": "tailgate/1", "buckets": [{"by": {"tenant": "` + token + `"}}]}`,
		"gate.xml":    `<testsuites><testsuite name="tailgate gate"><testcase name="` + token + `"/></testsuite></testsuites>`,
		"rows.csv":    "row,tenant,status\n0," + token + ",ok\n1," + other + ",\"o\nk\"\n2," + token + ",ok\n3,,ok\n",
		"rows.jsonl":  `{"row":0,"tenant":"` + token + `"}` + "\n" + `{"row":1,"tenant":"` + other + `"}` + "\n\n" + `{"row":2,"tenant":"` + token + `"}` + "\n" + `{"row":3,"tenant":null}`,
	} {
		s.write(filepath.Join(run, name), text)
	}
	s.parquet(filepath.Join(run, "buckets.parquet"), schemas.TableBuckets, []schemas.Bucket{{By: `{"tenant":"` + token + `"}`}})
	tr, err := trace.Load(s.t.Context(), s.path(TraceFolder(dayName(0)), "all.jsonl.zst"), trace.Options{})
	if err == nil {
		err = tr.WriteFile(filepath.Join(run, "trace.csv"), trace.FormatBurstGPT, "test")
	}
	if err != nil {
		s.t.Fatal(err)
	}
	m, err := schemas.ReadManifest(run)
	if err != nil {
		s.t.Fatal(err)
	}
	d, err := schemas.DigestFile(run, filepath.Join(run, "buckets.parquet"))
	if err != nil {
		s.t.Fatal(err)
	}
	m.Files = append(m.Files, d)
	if err := m.Write(run); err != nil {
		s.t.Fatal(err)
	}
	profile := filepath.Join(filepath.Dir(filepath.Dir(run)), "profile")
	s.mkdir(profile)
	s.parquet(filepath.Join(profile, "profile_rate.parquet"), schemas.TableProfileRate, []schemas.ProfileRate{{ProfileKey: schemas.ProfileKey{Tenant: token}}})
	s.parquet(filepath.Join(profile, "profile_meta.parquet"), schemas.TableProfileMeta, []schemas.ProfileMeta{{}})
	s.manifest(profile, "profile", []string{"profile_rate.parquet", "profile_meta.parquet"}, 1)
}
