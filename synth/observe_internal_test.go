package synth

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/gonum/stat"

	"tailgate/internal/rng"
	"tailgate/profile"
	"tailgate/schemas"
	"tailgate/trace"
)

// The measurements that rows give one by one are those that the whole gives.
func TestObservedAsAWhole(t *testing.T) {
	r := rng.New(5, "observe")
	var x, y lengths
	var xs, ys []float64
	var at []int64
	w := windows{width: 700}
	now := int64(300)
	for range 5000 {
		a, b := int32(r.IntN(400)), int32(r.IntN(380)+r.IntN(40)*5000)
		x.add(a)
		y.add(b)
		xs, ys = append(xs, float64(a)), append(ys, float64(b))
		now += int64(r.ExpFloat64() * 90)
		at = append(at, now)
		w.add(now)
	}
	slices.Sort(xs)
	slices.Sort(ys)
	if got, want := x.distance(&y), stat.KolmogorovSmirnov(xs, nil, ys, nil); math.Abs(got-want) > 1e-12 {
		t.Errorf("distance %v, want %v", got, want)
	}
	want := profile.Counts(at, 700)
	if idc, n := w.idc(); n != want.Windows || math.Abs(idc-want.IDC()) > 1e-9 {
		t.Errorf("IDC %v of %d windows, want %v of %d", idc, n, want.IDC(), want.Windows)
	}
}

// However late it is known how many blocks there are, the same ids are sampled, each with all of its uses.
func TestBlockSampleDependsOnTheTotalAlone(t *testing.T) {
	const rows, per = 600_000, 6
	id := func(i, k int) int64 { return int64((i/3*per + k) * 7) }
	var s blockSample
	ids := make([]int64, per)
	for i := range rows {
		for k := range ids {
			ids[k] = id(i, k)
		}
		s.add(ids, int64(i), 0)
	}
	s.thin()
	if want := shiftFor(rows * per); s.shift != want || want == 0 {
		t.Fatalf("one of 2^%d is sampled, want 2^%d", s.shift, want)
	}
	seen := map[int64]int{}
	s.each(func(r sampledRow, ids []int64) {
		for _, id := range ids {
			seen[id]++
		}
	})
	for i := range rows / 3 {
		for k := range per {
			v := id(3*i, k)
			want := 0
			if sampled(v, s.shift) {
				want = 3
			}
			if seen[v] != want {
				t.Fatalf("id %d was sampled %d times, want %d", v, seen[v], want)
			}
		}
	}
}

// Sessions of a stream are those of the trace: named, chained, inferred along long common prompts, or alone.
func TestSessionsOfAStream(t *testing.T) {
	for seed := range uint64(30) {
		tr := tangled(seed)
		f := newFacts(&tr.Meta, len(tr.Rows))
		g := &grouper{facts: f}
		for i := range tr.Rows {
			f.add(&tr.Rows[i])
			g.add(&tr.Rows[i])
		}
		got, err := g.sessions(context.Background(), tr.Stream())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tr.Sessions().Of, got); diff != "" {
			t.Fatalf("seed %d:\n%s", seed, diff)
		}
	}
}

// tangled has rows with and without names, parents and prompts: three applications with prompts of 1 to 9 blocks that
// share their first ones, documents that many read, and conversations that grow and branch.
func tangled(seed uint64) *trace.Trace {
	r := rng.New(seed, "tangled")
	t := &trace.Trace{Meta: trace.Meta{Name: "tangled", BlockSize: 16}}
	prompts := [][]int64{{1, 2, 3, 4, 5, 6, 7, 8, 9}, {1, 2, 3}, {1, 2, 30, 31, 32}}
	next := int64(1000)
	var open [][]int64
	for i := range 1500 {
		row := schemas.TraceRow{Row: int64(i), ScheduledUs: int64(i)}
		switch k := r.IntN(10); {
		case k < 5 && len(open) > 0:
			c := r.IntN(len(open))
			for range 1 + r.IntN(2) {
				open[c] = append(open[c], next)
				next++
			}
			if r.IntN(5) == 0 {
				open[c] = open[c][:len(open[c])-2]
			}
			row.HashIDs = slices.Clone(open[c])
		case k < 8:
			p := prompts[r.IntN(len(prompts))]
			ids := slices.Clone(p[:len(p)-r.IntN(2)])
			if r.IntN(3) == 0 {
				ids = append(ids, int64(100+r.IntN(12))) // a document
			}
			ids = append(ids, next)
			next++
			open = append(open, ids)
			row.HashIDs = slices.Clone(ids)
		}
		if r.IntN(12) == 0 {
			name := string(rune('a' + r.IntN(20)))
			row.Session = &name
		}
		if i > 0 && r.IntN(8) == 0 {
			parent := int64(r.IntN(i))
			row.Parent = &parent
		}
		row.InputTokens = int32(16 * len(row.HashIDs))
		t.Rows = append(t.Rows, row)
	}
	return t
}

// What is kept in a file is what is kept in memory.
func TestUsesOfBlocksOnDisk(t *testing.T) {
	r := rng.New(2, "uses")
	memory, disk := uses{}, uses{dir: t.TempDir()}
	defer disk.close()
	for row := range int32(300_000) {
		ids := make([]int64, r.IntN(9))
		for k := range ids {
			ids[k] = int64(r.Uint64() >> (1 + r.IntN(62)))
		}
		full := r.IntN(1 + len(ids))
		for _, u := range []*uses{&memory, &disk} {
			if err := u.add(row, ids, full); err != nil {
				t.Fatal(err)
			}
		}
	}
	if disk.file == nil {
		t.Fatal("nothing was written")
	}
	for part := range usesParts {
		a, err := memory.load(nil, part, new([]byte))
		if err != nil {
			t.Fatal(err)
		}
		b, err := disk.load(nil, part, new([]byte))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(a, b) {
			t.Fatalf("part %d differs", part)
		}
	}
}

// The first draw that is good enough is taken, whatever the number of threads.
func TestFirstDrawThatIsEnough(t *testing.T) {
	tr := &trace.Trace{Meta: trace.Meta{Name: "many"}}
	r := rng.New(1, "many")
	for i := range 300_000 {
		out := int32(1 + r.IntN(500))
		tr.Rows = append(tr.Rows, schemas.TraceRow{Row: int64(i), ScheduledUs: int64(i) * 12_000, InputTokens: int32(1 + r.IntN(2000)), OutputTokens: &out})
	}
	f := factsOf(tr, tr.Sessions().Of)
	move := mover{f: f, us: 5_000_000}
	var want selection
	for threads := range 4 {
		s := newSelector(f, 1.5, 1, stratify(f), newScorer(f, 1.5, move, &blockSample{}))
		s.many = 0
		got, err := s.best(context.Background(), threads+1)
		if err != nil {
			t.Fatal(err)
		}
		if cost := s.score.cost(got); !s.enough(cost) {
			t.Fatalf("the cost is %v", cost)
		}
		if want == nil {
			want = got
		}
		if !slices.Equal(want, got) {
			t.Errorf("%d threads take another draw", threads+1)
		}
	}
}
