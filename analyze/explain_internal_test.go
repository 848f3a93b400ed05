package analyze

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The share is that of the rates by hand, and lies at 0 for a condition that changes nothing.
func TestAttributableShare(t *testing.T) {
	for _, c := range []struct {
		name string
		t    tally
		want float64
	}{
		{"only with it", tally{with: 10, othersWith: 90, others: 900}, 1},
		{"as often without", tally{with: 10, without: 90, othersWith: 90, others: 810}, 0},
		{"ten times as often", tally{with: 10, without: 9, othersWith: 90, others: 891}, 1 - .01/(19./1000)},
		{"all meet it", tally{with: 10, othersWith: 990}, 0},
		{"less often", tally{with: 1, without: 99, othersWith: 99, others: 801}, 1 - .11/.1},
		{"no others", tally{with: 5, without: 5}, 0},
	} {
		all := tallies{firstFamily: c.t}
		if got := all.explained(&all, &all); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	var none tallies
	if got := none.explained(&none, &none); !math.IsNaN(got) {
		t.Errorf("without violations: %v", got)
	}
}

// The interval holds the true share nearly as often as it says when violations come in clusters of their own; with very few
// of them a bootstrap tells less than it should.
func TestAttributableInterval(t *testing.T) {
	for _, c := range []struct {
		clusters int // of three cells; a quarter of them with the condition
		least    float64
	}{{24, .75}, {120, .85}} {
		const runs = 200
		covered := 0
		for seed := range uint64(runs) {
			lower, upper, truth := clusteredInterval(seed, 3*c.clusters)
			if lower <= truth && truth <= upper {
				covered++
			}
		}
		t.Logf("%d clusters: the 95 %% interval holds the true share in %d of %d runs", c.clusters, covered, runs)
		if float64(covered) < c.least*runs {
			t.Errorf("%d clusters: only in %d of %d", c.clusters, covered, runs)
		}
	}
}

// clusteredInterval draws cells of 40 requests that violate with 2 %, with the condition with 30 %, both times an exponential
// mood that three neighbouring cells share.
func clusteredInterval(seed uint64, cells int) (lower, upper, truth float64) {
	const low, high = .02, .3
	r := rand.New(rand.NewPCG(seed, 1))
	b := &bucketActs{cells: cells, perBlock: cellsPerBlock, o: ExplainOptions{Confidence: .95, Resamples: 300, Seed: seed}}
	byCell := make([]tallies, cells)
	var whole tallies
	mood := 1.0
	for c := range byCell {
		if c%3 == 0 {
			mood = r.ExpFloat64()
		}
		exposed, p := c < cells/4, low*mood
		if exposed {
			p = min(1, high*mood)
		}
		for range 40 {
			tl := &byCell[c][firstFamily]
			switch bad := r.Float64() < p; {
			case exposed && bad:
				tl.with++
			case exposed:
				tl.othersWith++
			case bad:
				tl.without++
			default:
				tl.others++
			}
		}
		whole.add(&byCell[c], 1)
	}
	// Rates are cut at 1, which lowers their mean a little.
	rate := 0.0
	for k := range 1000 {
		rate += min(1, high*-math.Log((float64(k)+.5)/1000)) / 1000
	}
	lower, upper = b.attributable("x", byCell, &whole)
	return lower, upper, 1 - low/(rate/4+low*3/4)
}

// Of causes with nearly the same share the one further out comes first; a clearly larger one stays.
func TestRanked(t *testing.T) {
	list := ranked([]Cause{
		{Cause: CauseServerQueue, Share: .95, Named: true}, {Cause: CauseOwnWork, Share: .99}, {Cause: CauseBurst, Share: .80, Named: true},
		{Cause: CauseKVFull, Share: .90, Named: true}, {Cause: CauseClientLag, Share: .30, Named: true},
	})
	var got []string
	for _, c := range list {
		got = append(got, c.Cause)
	}
	want := []string{CauseBurst, CauseKVFull, CauseServerQueue, CauseClientLag, CauseOwnWork}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Each of the four figures can acquit alone; one that is unknown acquits too.
func TestCausesAreNamedByAllFigures(t *testing.T) {
	for name, c := range map[string]struct {
		cause Cause
		want  bool
	}{
		"just enough":                   {Cause{Share: .2, Lower: .1, Lift: 2, With: .5, Others: .25}, true},
		"too small a share":             {Cause{Share: .19, Lower: .1, Lift: 2, With: .5, Others: .25}, false},
		"a share that may be chance":    {Cause{Share: .2, Lower: .09, Lift: 2, With: .5, Others: .25}, false},
		"hardly more often":             {Cause{Share: .2, Lower: .1, Lift: 1.9, With: .5, Others: .25}, false},
		"what nearly all requests meet": {Cause{Share: .9, Lower: .8, Lift: 9, With: 1, Others: .85}, false},
		"nothing beside it":             {Cause{Share: .9, Lower: .8, Lift: unknown, With: 1, Others: unknown}, false},
	} {
		if got := c.cause.convicts(); got != c.want {
			t.Errorf("%s: named %v, want %v", name, got, c.want)
		}
	}
}

// Joined spans cover what the single ones cover, and overlaps are counted as second by second.
func TestSpans(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 2))
		var list []span
		covered := make([]bool, 100)
		for range r.IntN(6) {
			from := r.IntN(90)
			to := from + 1 + r.IntN(9)
			list = append(list, span{int64(from), int64(to)})
			for k := from; k < to; k++ {
				covered[k] = true
			}
		}
		s := joined(list)
		for range 20 {
			from := r.IntN(90)
			to := from + 1 + r.IntN(9)
			want := int64(0)
			for k := from; k < to; k++ {
				if covered[k] {
					want++
				}
			}
			if got := s.overlap(int64(from), int64(to)); got != want {
				t.Fatalf("seed %d: [%d, %d) overlaps %d, want %d of %v", seed, from, to, got, want, s)
			}
		}
	}
}

// A steady series has no surge, a window of three times as much has one where it is, and its quiet ends are cut off.
func TestSurges(t *testing.T) {
	rule := surgeRule{windows: []int64{10e6, 30e6}, factor: 1.6, least: 10, spread: func(m, _ float64) float64 { return 4 * math.Sqrt(max(m, 1)) }}
	var at []int64
	var one []float64
	add := func(t int64) { at, one = append(at, t), append(one, 1) }
	for k := range int64(2400) {
		add(k * 250_000)
		if k*250_000 >= 200e6 && k*250_000 < 220e6 {
			add(k*250_000 + 1)
			add(k*250_000 + 2)
		}
	}
	found := spansOf(surges(at, one, 0, 600e6, rule))
	if len(found) != 1 || found[0].from < 190e6 || found[0].from > 202e6 || found[0].to < 218e6 || found[0].to > 230e6 {
		t.Errorf("%v", found)
	}
	at, one = at[:0], one[:0]
	for k := range int64(2400) {
		add(k * 250_000)
	}
	if found := surges(at, one, 0, 600e6, rule); len(found) != 0 {
		t.Errorf("a steady series surges: %v", found)
	}
}

// The usual pace does not depend on the order in which targets come out of a map, also where all have the same load.
func TestLoadLawIsDeterministic(t *testing.T) {
	bins := map[int32][]paceBin{}
	for k := range int32(9) {
		bins[k] = []paceBin{{tpot: float64(1000 * (k + 1)), decoding: 4}}
	}
	want := loadLaw(bins)(4)
	for range 50 {
		if got := loadLaw(bins)(4); got != want {
			t.Fatalf("%v µs, and %v", want, got)
		}
	}
}
