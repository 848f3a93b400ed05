package yamldoc_test

import (
	"strings"
	"testing"
	"time"

	"tailgate/internal/fault"
	"tailgate/internal/yamldoc"
)

func TestFaultsAreListedByLine(t *testing.T) {
	const text = "b: [1, {}]\na: x\na: y\nc: 0\nd: later\ne: ${NONE}\nf: []\ng: ''\nh: red\ni: 3\n"
	r, root := yamldoc.New("f.yaml", []byte(text), func(name string) (string, bool) { return "", false })
	for _, f := range r.Fields(root, "the file", "a", "b", "c", "d", "e", "f", "g", "h") {
		switch f.Key {
		case "b":
			r.Names(f.Value)
		case "c":
			r.Int(f.Value, 1)
		case "d":
			r.Duration(f.Value)
		case "e", "g":
			r.Name(f.Value)
		case "f":
			r.Names(f.Value)
		case "h":
			r.Word(f.Value, "green", "blue")
		}
	}
	want := []string{
		"f.yaml:1: must be one value", "f.yaml:3: a stands twice", `f.yaml:4: "0" is not a whole number from 1`, `f.yaml:5: "later" is not a time`,
		"f.yaml:6: variable NONE is not set", "f.yaml:7: the list is empty", "f.yaml:8: must not be empty", `f.yaml:9: "red" is not green or blue`,
		`f.yaml:10: unknown key "i" in the file, use a, b`,
	}
	err := r.Err()
	if fault.Of(err) != fault.Usage {
		t.Fatalf("kind of %v", err)
	}
	got := strings.Split(err.Error(), "\n")
	if len(got) != len(want) {
		t.Fatalf("%d faults, want %d:\n%v", len(got), len(want), err)
	}
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]) {
			t.Errorf("fault %q, want %q", got[i], want[i])
		}
	}
}

func TestValues(t *testing.T) {
	r, root := yamldoc.New("f", []byte("a: 90s\nb: [x, y]\nc: null\nd: ${SET}s\n"), func(name string) (string, bool) { return "7", name == "SET" })
	fields := r.Fields(root, "the file")
	if got := r.Duration(fields[0].Value); got != 90*time.Second {
		t.Errorf("a is %v", got)
	}
	if list, ok := yamldoc.Sequence(fields[1].Value); !ok || len(list) != 2 || strings.Join(r.Names(fields[1].Value), " ") != "x y" {
		t.Errorf("b is no list of x and y")
	}
	if _, ok := yamldoc.Sequence(fields[0].Value); ok || !yamldoc.IsNull(fields[2].Value) || yamldoc.IsNull(fields[0].Value) {
		t.Error("a value is taken for a list, or null for a value")
	}
	if got := r.Duration(fields[3].Value); got != 7*time.Second || yamldoc.Line(fields[3].At) != 4 {
		t.Errorf("d is %v in line %d", got, yamldoc.Line(fields[3].At))
	}
	if err := r.Err(); err != nil {
		t.Error(err)
	}
}

func TestUnreadableFiles(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"empty": {"", "f:1: the file is empty"}, "broken": {"a: [", "f:1: not readable as YAML"}, "two documents": {"a: 1\n---\nb: 2\n", "f:3: the file must be one document"},
		"large": {strings.Repeat("#", 70<<10), "f:1: larger than"},
	} {
		r, _ := yamldoc.New("f", []byte(c.text), nil)
		if err := r.Err(); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}

// Each kind of value is read by one function, whose faults tell what was written.
func TestKindsOfValues(t *testing.T) {
	const text = `good: {bool: true, number: 30/s, share: 80%, span: 1.5d, texts: {a: b, c: 7}, entries: [1, 2]}
bool: maybe
number: inf
share: 150%
days: 100000d
hour: 30m
texts: {a: [b]}
entries: []
none: {}
`
	r, root := yamldoc.New("f", []byte(text), nil)
	fields := r.Fields(root, "the file")
	good := r.Fields(fields[0].Value, "good")
	texts := r.Texts(good[4].Value, "texts")
	if !r.Bool(good[0].Value) || r.Number(good[1].Value, 30) != 30 || r.Share(good[2].Value) != .8 || r.Span(good[3].Value, time.Hour) != 36*time.Hour ||
		texts["a"] != "b" || texts["c"] != "7" || len(r.Entries(good[5].Value, "entries")) != 2 || r.Faults() != 0 || !yamldoc.Has(good, "span") || yamldoc.Has(good, "days") {
		t.Errorf("%v, %v", texts, r.Err())
	}
	if r.Bool(fields[1].Value) || r.Number(fields[2].Value, 2) != 2 || r.Share(fields[3].Value) != 0 || r.Span(fields[4].Value, time.Hour) != time.Hour ||
		r.Span(fields[5].Value, 24*time.Hour) != 24*time.Hour {
		t.Error("a value beside its fault")
	}
	r.Texts(fields[6].Value, "texts")
	r.Entries(fields[7].Value, "entries")
	r.Entries(fields[8].Value, "none")
	want := []string{`f:2: "maybe" is not true or false`, `f:3: "inf" is not a number of 2 or more`, `f:4: "150%" is not a share such as 80%`,
		`f:5: "100000d" is not a time of 1h or more, such as 32m, 48h or 90d`, `f:6: "30m" is not a time of 24h or more, such as 32m, 48h or 90d`,
		"f:7: must be one value", "f:8: entries must be a list with at least one entry", "f:9: none must be a list with at least one entry"}
	if got := r.Err(); got == nil || got.Error() != strings.Join(want, "\n") {
		t.Errorf("faults\n%v", got)
	}
}

// A file that may hold names is not quoted, and a $ in it means nothing.
func TestSecretFiles(t *testing.T) {
	const text = "secret: 1\na: secret\nb: secret\nc: ${secret}\na: 2\n"
	r, root := yamldoc.Open("f", []byte(text), yamldoc.Options{Secret: true})
	fields := r.Fields(root, "the file", "a", "b", "c")
	r.Int(fields[0].Value, 0)
	r.Word(fields[1].Value, "x")
	if got, ok := r.Text(fields[2].Value); !ok || got != "${secret}" {
		t.Errorf("text %q", got)
	}
	want := "f:1: unknown key in the file, use a, b, c\nf:2: the value is not a whole number from 0\nf:3: the value is not x\nf:5: a key stands twice in the file"
	if err := r.Err(); err == nil || err.Error() != want {
		t.Errorf("faults\n%v", err)
	}
	r, _ = yamldoc.Open("f", []byte("a:\n\tsecret: [\n"), yamldoc.Options{Secret: true})
	if err := r.Err(); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("fault %v", err)
	}
}

func TestToJSON(t *testing.T) {
	text, _, err := yamldoc.ToJSON([]byte("a: [1, x]\n"), 0)
	if err != nil || strings.TrimSpace(string(text)) != `{"a": [1, "x"]}` {
		t.Errorf("%s, %v", text, err)
	}
	for text, want := range map[string]int{"a: 1\na: 2\n": 2, "a: 1\nb: [\n": 2, strings.Repeat("#", 70<<10): 1} {
		if _, line, err := yamldoc.ToJSON([]byte(text), 0); err == nil || line != want || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.20q: line %d, %v", text, line, err)
		}
	}
}

func TestLineAt(t *testing.T) {
	_, root := yamldoc.New("f", []byte("a:\n  b:\n    - x\n    - {c: 1}\nd: 2\n"), nil)
	for path, want := range map[string]int{"": 1, "a": 1, "a b": 2, "a b 1": 4, "a b 1 c": 4, "a b 9": 2, "a b -1": 2, "d": 5, "e": 1} {
		if got := yamldoc.LineAt(root, strings.Fields(path)); got != want {
			t.Errorf("%q: line %d, want %d", path, got, want)
		}
	}
}
