package ingest_test

import (
	"testing"

	"tailgate/ingest"
)

// TestShippedMappingsAreSound parses every mapping that comes with the program.
func TestShippedMappingsAreSound(t *testing.T) {
	for _, name := range ingest.ShippedMappings() {
		text, ok := ingest.ShippedMapping(name)
		if !ok {
			t.Errorf("%s is not there", name)
			continue
		}
		m, err := ingest.ParseMapping(name+".yaml", text)
		if err != nil {
			t.Error(err)
		} else if m.Name() != name {
			t.Errorf("%s calls itself %s", name, m.Name())
		}
	}
}
