package refresh_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

// plainKinds are the writes that are tried without TAILGATE_PROVE.
var plainKinds = []string{"PUT profiles/day=N/manifest.json", "PUT traces/day=N/N.zst", "PUT state/day=Njson", "PUT reports/status.json",
	"DELETE traces/day=N/manifest.json"}

// A run whose lease is lost while one of its writes is under way: whether that arrives when the next run has ended, or just
// before it writes the same object, every table is that of an undisturbed run, and what the next run wrote stays.
func TestZombieInABucket(t *testing.T) {
	z, cases := newZombieNight(t)
	kinds, lost, again, size := map[string]bool{}, 0, 0, os.Getenv("TAILGATE_PROVE")
	for i, c := range cases {
		if size != "full" && kinds[c.kind] || size == "" && !slices.Contains(plainKinds, c.kind) {
			continue
		}
		kinds[c.kind] = true
		for _, c.race = range []bool{false, true} {
			if size != "full" && c.race != (i%2 > 0) {
				continue
			}
			zombieErr, heirErr := z.run(t, fmt.Sprint("case-", lost), c)
			if zombieErr == nil && c.race && c.kind == "PUT reports/status.json" {
				zombieErr = errors.New("another refresh has taken over") // behind its last write nothing is left for it to learn that by
			}
			if zombieErr == nil || !strings.Contains(zombieErr.Error(), "another refresh has taken over") && !strings.Contains(zombieErr.Error(), faster) {
				t.Errorf("%+v: the zombie says %v", c, zombieErr)
			}
			if heirErr != nil {
				if again++; !c.race || !strings.Contains(heirErr.Error(), faster) {
					t.Errorf("%+v: the next run says %v", c, heirErr)
				}
			}
			lost++
		}
	}
	if len(kinds) < len(plainKinds) {
		t.Errorf("kinds of writes: %q", slices.Sorted(maps.Keys(kinds)))
	}
	t.Logf("kinds of writes:\n%s", strings.Join(slices.Sorted(maps.Keys(kinds)), "\n"))
	figuresOfNights(t, z.log, "F8", "%d leases lost in the middle of a write of %d kinds in a bucket (%s): every table equal to the undisturbed run's; %d times the next run had to be run again",
		lost, len(kinds), z.server, again)
}

// faster is what a publish says that gives way.
const faster = "another publish of this day was faster"
