package jsonleaf

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRead(t *testing.T) {
	got, err := Read(strings.NewReader(`{"b":1.50,"a":{"x":[1e-7,null,"inf","word",true],"y":{}},"c":"-inf","d":[]}`))
	want := []Leaf{{"b", "1.50"}, {"a.x.0", "1e-7"}, {"a.x.1", "null"}, {"a.x.2", "inf"}, {"c", "-inf"}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Error(err, diff)
	}
	for _, broken := range []string{"", "{", `{"a":`, `[1`, `{"a" 1}`} {
		if got, err := Read(strings.NewReader(broken)); err == nil {
			t.Errorf("%q gives %v", broken, got)
		}
	}
}
