package schemas_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"tailgate/schemas"
)

func TestRowsAsJSONHaveTheirColumns(t *testing.T) {
	mean := 1.5
	row := schemas.ProfileIAT{ProfileKey: schemas.ProfileKey{ProfileID: "p", WindowStart: time.Unix(0, 0).UTC(), Tenant: "*", Class: "*"}, N: 3, MeanS: &mean, ACF: []float64{.5}}
	got, err := schemas.AppendJSON(nil, row)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"profile_id":"p","window_start":"1970-01-01T00:00:00Z","window_end":"0001-01-01T00:00:00Z","tenant":"*","class":"*",` +
		`"n":3,"mean_s":1.5,"cv_raw":null,"cv_op60":null,"cv_op300":null,"cv_raw_lo":null,"cv_raw_hi":null,"min_s":null,"p50_s":null,"p90_s":null,"p99_s":null,"max_s":null,"acf":[0.5],"zero_frac":null}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for _, table := range schemas.Tables() {
		if got, err := schemas.AppendJSON(nil, table.Row); err != nil || !json.Valid(got) || strings.Contains(string(got), `"-"`) {
			t.Errorf("%s: %s, %v", table.Name, got, err)
		}
	}
	if _, err := schemas.AppendJSON(nil, 7); err == nil {
		t.Error("a number was taken for a row")
	}
}
