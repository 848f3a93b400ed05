package refresh_test

import (
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/zeebo/xxh3"
)

// A night that dies at each border of two steps and before and after each rename, one place after the other, ends with
// the tables of one that nothing happened to; between the deaths the other days stay readable.
func TestNightsThatDieAtEachPlace(t *testing.T) {
	size := os.Getenv("TAILGATE_PROVE")
	for i, format := range gatewayFormats {
		t.Run(format.name, func(t *testing.T) {
			g := simulated()
			g.format = format
			where := func(day int) deaths {
				if size == "full" || size != "" && day == 1 { // the night with a rebuild
					return atAllPlaces
				}
				return atEachKind
			}
			if i > 0 && size != "full" { // what dies is the same whatever is read
				g.perDay = min(g.perDay, 5000)
				where = func(int) deaths { return fewerDeaths() }
			}
			log := newGatewayLog(t, g)
			want, places := quiet(t, log)
			n, kinds := dying(t, log, newSite(t, log), want, places, where)
			figuresOfNights(t, log, "F1", "%d deaths at %d kinds of places in %d nights, %s: every table, profile and trace equal to the undisturbed run's",
				n, kinds, log.days, format.name)
		})
	}
}

// deaths is where the runs of a night die.
type deaths int

const (
	atAllPlaces deaths = iota
	atEachKind         // of place in which no run has died yet
	atSomeKinds
)

// fewerDeaths are those of what is proved beside the first format.
func fewerDeaths() deaths {
	if os.Getenv("TAILGATE_PROVE") == "" {
		return atSomeKinds
	}
	return atEachKind
}

// dying does the nights at a site, where each run dies at a place where none died before it in this night.
func dying(t *testing.T, log *gatewayLog, s *site, want []map[string]string, places [][]string, where func(day int) deaths) (n, kinds int) {
	t.Helper()
	died, all := map[string]bool{}, true // kinds of places
	for day := range log.days {
		seen := map[string]bool{}
		at := func(place string) bool {
			kind := kindOf(place)
			switch where(day) {
			case atAllPlaces:
				return !seen[place]
			case atSomeKinds:
				all = false
				return !died[kind] && xxh3.HashString(kind)%5 == 0
			}
			return !died[kind]
		}
		for last := "first"; last != ""; {
			var err error
			_, last, err = s.crashAt(t.Context(), log.nightOf(day), at)
			if err != nil {
				t.Fatalf("%s, after %d deaths: %v", log.date(day), len(seen), err)
			}
			if last != "" {
				seen[last], died[kindOf(last)] = true, true
				n++
			}
		}
		sameTables(t, log.date(day), want[day], s.tables(t))
	}
	for _, place := range slices.Concat(places...) {
		kind := kindOf(place)
		never := strings.Contains(kind, "rates.json") || strings.Contains(kind, "took.json") || s.Bucket != "" && strings.Contains(kind, "sweep") // what a step took is noted by a run that did all of it
		if all && !died[kind] && !never {
			t.Errorf("no run has died at %s", kind)
			died[kind] = true // told once
		}
	}
	if n == 0 {
		t.Error("no run has died")
	}
	t.Logf("digests after the last night:\n%s", digests(s.tables(t)))
	return n, len(died)
}

// numbers are what tells places of one kind apart: days, times and counts.
var numbers = regexp.MustCompile(`[0-9][-0-9T.]*Z?`)

func kindOf(place string) string { return numbers.ReplaceAllString(place, "N") }

// inBucket is a site whose root is in a bucket.
func inBucket(t *testing.T, log *gatewayLog, server *s3Server) *site {
	t.Helper()
	s := newSite(t, log)
	s.Bucket, s.Server = "s3://"+server.name+"/first", server.door(t, func(http.ResponseWriter, *http.Request) {})
	return s
}

// simulatedInBucket is the traffic of the proofs in a bucket: what they show does not depend on how much there is.
func simulatedInBucket() gateway {
	g := simulated()
	g.perDay = min(g.perDay, 600)
	return g
}

// A night in a bucket that dies at a place of each kind ends with the tables of an undisturbed one in a folder.
func TestNightsInABucket(t *testing.T) {
	g := simulatedInBucket()
	log := newGatewayLog(t, g)
	want, places := quiet(t, log)
	server := newS3Server(t)
	n, kinds := dying(t, log, inBucket(t, log, server), want, places, func(day int) deaths {
		if os.Getenv("TAILGATE_PROVE") == "full" && day == 1 {
			return atAllPlaces
		}
		return fewerDeaths()
	})
	figuresOfNights(t, log, "F7", "%d deaths at %d kinds of places in %d nights in a bucket (%s): every table, profile and trace equal to the undisturbed run's in a folder",
		n, kinds, log.days, server)
}
