package chatlogs_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"tailgate/internal/chatlogs"
)

// Records are one line of JSON each, equal for equal options, and repeat their histories.
func TestRecords(t *testing.T) {
	var all [2][]byte
	for i := range all {
		l, err := chatlogs.New(chatlogs.Options{Seed: 7, Sessions: 5, Turns: 4})
		if err != nil {
			t.Fatal(err)
		}
		for range 100 {
			r := l.Append(nil)
			if !json.Valid(r) || bytes.ContainsAny(r, "\n") {
				t.Fatal("a record is not one line of JSON")
			}
			all[i] = append(all[i], r...)
		}
		if share := float64(l.New) / float64(l.Text); share < 0.2 || share > 0.7 {
			t.Errorf("%.2f of the text is new", share)
		}
	}
	if !bytes.Equal(all[0], all[1]) {
		t.Error("equal options gave other bytes")
	}
	if _, err := chatlogs.New(chatlogs.Options{Kind: "nosuch"}); err == nil {
		t.Error("a kind of texts that there is not was taken")
	}
}
