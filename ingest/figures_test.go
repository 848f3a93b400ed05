package ingest_test

import (
	"fmt"
	"testing"

	"tailgate/schemas"
)

// figures logs what a test has shown of one of the claims T1 to T17 of docs/ingest.md, in the form that tools/prove
// collects. b is the broker on which it was shown, nil where none took part.
func figures(t testing.TB, claim string, b *broker, format string, args ...any) {
	t.Helper()
	if t.Failed() {
		return
	}
	where := ""
	switch {
	case b != nil && b.Cluster != nil:
		where = " [in-process broker]"
	case b != nil:
		where = " [real broker]"
	}
	t.Logf("figures %s%s: %s", claim, where, fmt.Sprintf(format, args...))
}

// checkOffsets wants n rows, each from a record of its own.
func checkOffsets(t testing.TB, rows []schemas.Request, n int) {
	t.Helper()
	type place struct {
		partition int32
		offset    int64
	}
	seen := map[place]bool{}
	for _, r := range rows {
		seen[place{r.Partition, r.Offset}] = true
	}
	if len(rows) != n || len(seen) != n {
		t.Errorf("%d rows of %d records, want %d", len(rows), len(seen), n)
	}
}
