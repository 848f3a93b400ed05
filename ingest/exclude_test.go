package ingest_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tailgate/ingest"
	"tailgate/internal/yamldoc/yamltest"
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
	yamltest.Faults(t, func(data []byte) error {
		_, err := ingest.ParseExclude("f.yaml", data)
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("a fault quotes the file: %v", err)
		}
		return err
	}, map[string]yamltest.File{
		"not yaml":    {Text: "exclude: [", Want: []string{"f.yaml:1: not readable as YAML"}},
		"a tab":       {Text: "exclude:\n  - {tenant: secret-a}\n\t- secret-b: x\n", Want: []string{"f.yaml:"}},
		"empty":       {Text: "", Want: []string{"f.yaml:1: the file is empty"}},
		"nothing":     {Text: "{}", Want: []string{"f.yaml:1: exclude is missing in an exclude file"}},
		"no rules":    {Text: "exclude: []", Want: []string{"f.yaml:1: exclude must be a list with at least one entry"}},
		"other keys":  {Text: "rules:\n  - {tenant: x}\nsecret-team: 1\n", Want: []string{"f.yaml:1: unknown key in an exclude file, use exclude", "f.yaml:3: unknown key in an exclude file"}},
		"a word":      {Text: "exclude: [secret-team]\n", Want: []string{"f.yaml:1: a rule must be key: value pairs"}},
		"twice":       {Text: "exclude:\n  - secret-team: 1\n    secret-team: 2\n", Want: []string{"f.yaml:2: unknown key in a rule, use tenant", "f.yaml:3: a key stands twice in a rule"}},
		"all at once": {Text: "exclude:\n  - {team: secret-name}\n  - {}\n  - {tenant: [1.5]}\n", Want: []string{"f.yaml:2: unknown key in a rule, use tenant, session, header, tag", "f.yaml:3: the rule has no condition", "f.yaml:4: want a text"}},
	})
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
