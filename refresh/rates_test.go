package refresh_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// What a night took is noted also where it was killed and went on: the plan of the next night is of this one.
func TestRatesOfANightThatWentOn(t *testing.T) {
	type rates struct {
		Day           string                        `json:"day"`
		RowsPerRecord float64                       `json:"rows_per_record"`
		Steps         map[string]map[string]float64 `json:"steps"`
	}
	log := &timedLog{}
	log.days(0, 2, 120)
	p := newPlace(t, log)
	p.good(0, "done")
	read := func() (r rates) {
		t.Helper()
		data, err := os.ReadFile(filepath.Join(p.root, "state", "rates.json"))
		if err == nil {
			err = json.Unmarshal(data, &r)
		}
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if r := read(); r.Day != dayName(0) {
		t.Fatalf("%+v", r)
	}
	for _, point := range []string{"step-publish", "before-write-state/took.json", "step-traces", "before-write-state/rates.json", "never"} {
		died := false
		p.crash = func(at string) {
			if at == point && !died {
				died = true
				panic(at)
			}
		}
		func() {
			defer func() { _ = recover() }()
			if _, err := p.run(1); err != nil {
				t.Fatal(err)
			}
		}()
		if !died && point != "never" && point != "before-write-state/took.json" {
			t.Fatalf("it did not come to %s", point)
		}
	}
	r := read()
	if r.Day != dayName(1) {
		t.Fatalf("the rates are those of %s", r.Day)
	}
	if r.RowsPerRecord < 0.9 || r.RowsPerRecord > 1 {
		t.Errorf("%v rows a record", r.RowsPerRecord)
	}
	for _, step := range []string{"ingest", "publish", "traces"} {
		if r.Steps[step]["bytes_per_row"] <= 0 {
			t.Errorf("%s: %v", step, r.Steps[step])
		}
	}
	before := read()
	p.crash = nil
	p.good(1, "no_new_data")
	if after := read(); after.RowsPerRecord != before.RowsPerRecord || len(after.Steps) != len(before.Steps) {
		t.Errorf("a run that did nothing changed %+v to %+v", before, after)
	}
}
