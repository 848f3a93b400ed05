package ingest_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tailgate/ingest"
	"tailgate/internal/fault"
)

func TestExcludedRequestsAreDroppedBeforeHashing(t *testing.T) {
	team := func(name string) fields { return fields{"metadata": fields{"user_api_key_team_id": name}} }
	tagged := team("team-b")
	tagged["request_tags"] = []string{"x-no-trace: 1"}
	session := team("team-d")
	session["trace_id"] = "session-17"
	values := [][]byte{
		litellm(0, team("team-a")), litellm(1, team("team-b")), litellm(2, tagged), litellm(3, session),
		litellm(4, team("team-ab")), litellm(5, team("TEAM-A")),
	}
	rules, err := ingest.ParseExclude("opt-out.yaml", []byte(`
exclude:
  - {tenant: [team-a, team-z]}
  - {tenant: team-b, header: "x-no-trace: 1"}
  - {session: session-17}
`))
	if err != nil {
		t.Fatal(err)
	}
	o := options(t.TempDir())
	o.Exclude = rules
	var recs []ingest.Record
	for i, v := range values {
		recs = append(recs, message(int64(i), v))
	}
	r := run(t, newMemory(recs), o)
	if diff := cmp.Diff(map[string]int64{ingest.SkipExcluded: 3}, r.Total.Skips); diff != "" || r.Total.Rows != 3 {
		t.Errorf("%d rows, %s", r.Total.Rows, diff)
	}
	token := fakeAnon{key: "k1"}.Token("tenant", []byte("team-a"))
	err = filepath.WalkDir(o.Lake, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if bytes.Contains(data, []byte(token)) {
			t.Errorf("%s holds the token of a tenant that opted out", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestExcludeFilesAreCheckedWhole(t *testing.T) {
	for name, c := range map[string]struct {
		data   string
		faults int
		want   string
	}{
		"not yaml":   {"exclude: [", 1, "f.yaml:1"},
		"empty":      {"", 1, "f.yaml:1"},
		"no rules":   {"exclude: []", 1, "at least one"},
		"other keys": {"rules:\n  - {tenant: x}\nmore: 1\n", 2, "f.yaml:3"},
		"faults":     {"exclude:\n  - {team: secret-name}\n  - {}\n  - {tenant: [1.5]}\n", 3, "f.yaml:4"},
	} {
		_, err := ingest.ParseExclude("f.yaml", []byte(c.data))
		if fault.Of(err) != fault.Usage || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret-name") {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if n := strings.Count(err.Error(), "f.yaml:"); n != c.faults {
			t.Errorf("%s: %d faults, want %d: %v", name, n, c.faults, err)
		}
	}
}

func FuzzParseExclude(f *testing.F) {
	f.Add([]byte("exclude:\n  - {tenant: [a, b], header: \"x: 1\"}\n"))
	f.Add([]byte("exclude: {a: &x [*x]}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		rules, err := ingest.ParseExclude("f", data)
		if (rules == nil) == (err == nil) {
			t.Fatalf("rules %v, error %v", rules, err)
		}
	})
}
