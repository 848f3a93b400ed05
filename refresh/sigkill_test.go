//go:build unix

package refresh

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"tailgate/anonymize"
	"tailgate/schemas"
)

// envKill names the work of a child process that kills itself: forget or retain, the root, the keys, the folder of
// results, and the point at which it dies, counted from 1.
const envKill = "TAILGATE_TEST_KILL"

// TestChildThatDies is the child: it does nothing in a run of the suite.
func TestChildThatDies(t *testing.T) {
	var what, root, keys, runs string
	var at int
	if n, err := fmt.Sscan(os.Getenv(envKill), &what, &root, &keys, &runs, &at); n != 5 || err != nil {
		t.Skip("not a child")
	}
	ring, err := anonymize.OpenKeyDir(keys)
	if err != nil {
		t.Fatal(err)
	}
	s := &site{t: t, root: root, keys: ring}
	die := func(string) {
		if at--; at == 0 {
			_ = syscall.Kill(syscall.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
	if what == "forget" {
		o := s.forgetOptions(runs)
		o.Crash, o.Lease = die, time.Second
		_, err = Forget(t.Context(), o)
	} else {
		n := s.night(expiring(), nightAt(2))
		n.Status.LastGoodDay, n.crash = dayName(1), die
		err = Retain(t.Context(), n)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// expiring is what the retention of these tests keeps: one day.
func expiring() Config {
	return Config{Retention: RetentionConfig{Days: 24 * time.Hour, BlockKeys: 24 * time.Hour, Pseudonym: forEver, Results: []string{"runs"}}}
}

// kill runs the work in a child that dies at a point, and tells whether it came to it.
func (s *site) kill(what, runs string, at int) (died bool) {
	s.t.Helper()
	cmd := exec.CommandContext(s.t.Context(), os.Args[0], "-test.run=^TestChildThatDies$")
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %s %s %s %d", envKill, what, s.root, s.keys, runs, at))
	out, err := cmd.CombinedOutput()
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() && status.Signal() == syscall.SIGKILL {
		return true
	}
	if err != nil {
		s.t.Fatalf("killed at %d: %v: %s", at, err, out)
	}
	return false
}

// copied is a site with the bytes of another.
func (s *site) copied(runs string) (c *site, itsRuns string) {
	s.t.Helper()
	dir := s.t.TempDir()
	c = &site{t: s.t, root: filepath.Join(dir, "root")}
	itsRuns = filepath.Join(dir, "runs")
	for from, to := range map[string]string{s.root: c.root, s.keys.String(): filepath.Join(dir, "keys"), runs: itsRuns} {
		if err := os.CopyFS(to, os.DirFS(from)); err != nil {
			s.t.Fatal(err)
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "keys", "*"))
	for _, p := range files {
		err = errors.Join(err, os.Chmod(p, 0o600))
	}
	if err = errors.Join(err, os.Chmod(filepath.Join(dir, "keys"), 0o700)); err != nil {
		s.t.Fatal(err)
	}
	if c.keys, err = anonymize.OpenKeyDir(filepath.Join(dir, "keys")); err != nil {
		s.t.Fatal(err)
	}
	return c, itsRuns
}

// whole holds every table of a root and of results to its manifest: nothing may be half-written, whenever somebody looks.
func (s *site) whole(at int, dirs ...string) {
	s.t.Helper()
	for _, dir := range append(dirs, s.path(LakeFolder), s.path(TracesFolder), s.path(ProfilesFolder)) {
		found, err := filepath.Glob(filepath.Join(dir, "*", schemas.ManifestName))
		if err != nil {
			s.t.Fatal(err)
		}
		for _, path := range found {
			folder := filepath.Dir(path)
			m, err := schemas.ReadManifest(folder)
			if err != nil {
				s.t.Errorf("killed at %d: %v", at, err)
				continue
			}
			for _, f := range m.Files {
				now, err := schemas.DigestFile(folder, filepath.Join(folder, f.Name))
				if err != nil || now.SHA256 != f.SHA256 {
					s.t.Errorf("killed at %d: %s/%s is not what its manifest says: %v", at, folder, f.Name, err)
				}
			}
		}
	}
}

// kill -9 in the middle of a forget, at each place where it writes: nothing is half-written, and the next run ends it with
// nothing of others lost and nothing of his left.
func TestForgetSIGKILL(t *testing.T) {
	s, runs, want := twoDays(t, 1, true)
	run := filepath.Join(runs, "night", "one")
	token := s.token("tenant", gone)
	makeOfRows(s, run, token, s.token("tenant", "team-quay"))
	tried := 0
	for at := 1; ; at += killPoints() {
		c, itsRuns := s.copied(runs)
		if !c.kill("forget", itsRuns, at) {
			break
		}
		tried++
		c.whole(at, filepath.Join(itsRuns, "night"))
		o := c.forgetOptions(itsRuns)
		o.Lease = time.Second
		if r, err := Forget(t.Context(), o); err != nil || len(r.Left)+len(r.Unreadable) > 0 {
			t.Fatalf("killed at %d, the second run: %+v, %v", at, r, err)
		}
		c.whole(at, filepath.Join(itsRuns, "night"))
		for day := range 2 {
			if diff := sameBut(want[day], c.requests(day)); diff != "" {
				t.Errorf("killed at %d: day %d: %s", at, day, diff)
			}
			checkTrace(t, c.path(TraceFolder(dayName(day)), "all.jsonl.zst"), 64)
		}
		checkRun(t, filepath.Join(itsRuns, "night", "one"))
		if files := append(holding(t, c.root, token), holding(t, itsRuns, token)...); len(files) != 1 {
			t.Errorf("killed at %d: left in %v", at, files)
		}
		c.clean(at, itsRuns)
	}
	t.Logf("killed at %d points", tried)
	if least := 36 / killPoints(); tried < least {
		t.Errorf("killed at %d points, want %d", tried, least)
	}
}

// clean finds what no run may leave behind: drafts, folders in the making, trash.
func (s *site) clean(at int, runs string) {
	s.t.Helper()
	for _, pattern := range []string{s.path(workFolder, "*"), s.path(trashFolder, "*"), filepath.Join(runs, forgetPrefix+"*"), filepath.Join(runs, "*", forgetPrefix+"*"),
		filepath.Join(filepath.Dir(runs), forgetPrefix+"*"), s.path("runs", trashPrefix+"*")} {
		if left, err := filepath.Glob(pattern); err != nil || len(left) > 0 {
			s.t.Errorf("killed at %d: left behind: %v, %v", at, left, err)
		}
	}
}

// kill -9 in the middle of retention: what stays is whole, and the next run removes the rest.
func TestRetainSIGKILL(t *testing.T) {
	s, runs, _ := twoDays(t, 1, true)
	s.run(s.path("runs", "old"), s.path(TraceFolder(dayName(0)), "all.jsonl.zst"))
	kept, tried := s.requests(1), 0
	for at := 1; ; at += killPoints() {
		c, itsRuns := s.copied(runs)
		if !c.kill("retain", itsRuns, at) {
			break
		}
		tried++
		c.whole(at, c.path("runs"))
		n := c.night(expiring(), nightAt(2))
		n.Status.LastGoodDay = dayName(1)
		if err := Retain(t.Context(), n); err != nil {
			t.Fatalf("killed at %d, the second run: %v", at, err)
		}
		c.whole(at, c.path("runs"))
		if diff := sameBut(kept, c.requests(1)); diff != "" {
			t.Errorf("killed at %d: %s", at, diff)
		}
		for _, folder := range []string{LakeFolder, ProfilesFolder, TracesFolder, ReportsFolder, StateFolder} {
			if there := c.there(folder); len(there) != 1 || there[0] != dayName(1) {
				t.Errorf("killed at %d: %s has %v", at, folder, there)
			}
		}
		if days := segmentDays(t, c); len(days) != 1 {
			t.Errorf("killed at %d: segments of %v", at, days)
		}
		c.clean(at, itsRuns)
	}
	t.Logf("killed at %d points", tried)
	if least := 12 / killPoints(); tried < least {
		t.Errorf("killed at %d points, want %d", tried, least)
	}
}
