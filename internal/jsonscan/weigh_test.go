package jsonscan

import (
	"strings"
	"testing"
)

func TestHeavier(t *testing.T) {
	for data, weight := range map[string]int{
		``: 0, `1`: 0, `"a"`: 1, `{"a":[1,2,3]}`: 3, `["\"","\\","x"]`: 4, `{"a":"{[{[\"{"}`: 3, `[[[`: 3, `"open`: 1, "\"a\nb\"[": 2,
		`["` + strings.Repeat("x,{", 1000) + `"]`: 2, `["\`: 2,
	} {
		if Heavier([]byte(data), weight) || weight > 0 && !Heavier([]byte(data), weight-1) {
			t.Errorf("%.40q does not weigh %d", data, weight)
		}
	}
}
