package ingest_test

import (
	"slices"
	"testing"

	"tailgate/ingest"
)

func TestEveryFormatHasASample(t *testing.T) {
	samples, err := ingest.Samples()
	if err != nil {
		t.Fatal(err)
	}
	for _, format := range ingest.Formats() {
		if !slices.ContainsFunc(samples, func(s ingest.Sample) bool { return s.Format == format && len(s.Data) > 0 }) {
			t.Errorf("%s has none", format)
		}
	}
}
