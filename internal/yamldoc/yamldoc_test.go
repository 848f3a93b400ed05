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
