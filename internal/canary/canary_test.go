package canary_test

import (
	"encoding/json"
	"strings"
	"testing"

	"tailgate/internal/canary"
)

func TestEveryStringAndKeyIsPlanted(t *testing.T) {
	var p canary.Planter
	values, err := p.JSON([]byte(`{"a":"text","b":["x",{"c":"{\"d\":\"inner\"}"}],"status":"ok","at":"2026-01-02T03:04:05Z"} {"e":1}`))
	if err != nil || len(values) != 2 {
		t.Fatalf("%q, %v", values, err)
	}
	all := string(values[0]) + string(values[1])
	for _, c := range p.Texts {
		if strings.Count(all, c) != 1 || len(c) != 26 {
			t.Errorf("canary %s is %d times in %s", c, strings.Count(all, c), all)
		}
	}
	// text, x, inner; the outer object, the one in b, the one in the string, the second value
	if len(p.Texts) != 7 || !strings.Contains(all, `"status":"ok"`) || !strings.Contains(all, `"at":"2026-01-02T03:04:05Z"`) {
		t.Errorf("%d canaries in %s", len(p.Texts), all)
	}
	if !json.Valid(values[0]) {
		t.Error("no JSON")
	}
	if _, err := p.JSON([]byte(`{"a`)); err == nil {
		t.Error("broken JSON was planted")
	}
	seen := map[string]bool{}
	for range 5000 {
		if c := p.New(); seen[c[:12]] {
			t.Fatalf("two canaries begin with %s", c[:12])
		} else {
			seen[c[:12]] = true
		}
	}
}
