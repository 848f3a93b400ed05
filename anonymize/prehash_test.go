package anonymize_test

import (
	"testing"
	"time"

	"tailgate/anonymize"
)

// TestPrehashedIdsDieWithTheBlockKey: ids that came hashed are keyed like our own block ids, by epoch, while
// tenants keep their names.
func TestPrehashedIdsDieWithTheBlockKey(t *testing.T) {
	d, _ := initKeys(t)
	hasher := func() *anonymize.Hasher {
		h, err := anonymize.NewHasher(load(t, d, "auto"), anonymize.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	first := hasher()
	newEpoch(t, d, day0.Add(24*time.Hour))
	second := hasher()
	id := []byte("a1b2c3d4e5f60701")
	if first.Key(anonymize.KindPrehash, id) == second.Key(anonymize.KindPrehash, id) {
		t.Error("prehashed ids survive their epoch")
	}
	if first.Token("tenant", id) != second.Token("tenant", id) {
		t.Error("tenants lost their names")
	}
}
