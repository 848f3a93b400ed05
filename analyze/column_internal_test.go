package analyze

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"tailgate/internal/rng"
	"tailgate/internal/stats"
	"tailgate/schemas"
)

// A column gives back what was appended, however it is packed.
func TestColumnsKeepTheirValues(t *testing.T) {
	r := rng.New(1, "columns")
	times := []struct {
		name string
		draw func(i int) int64
	}{
		{"all null", func(int) int64 { return noTime }},
		{"null, then one value", func(i int) int64 {
			if i < 5000 {
				return noTime
			}
			return 7
		}},
		{"a byte", func(int) int64 { return 1000 + r.Int64N(255) }},
		{"a byte and one more", func(int) int64 { return 1000 + r.Int64N(256) }},
		{"two bytes with nulls", func(int) int64 {
			if r.IntN(3) == 0 {
				return noTime
			}
			return -30_000 + r.Int64N(65_000)
		}},
		{"three bytes", func(int) int64 { return -5 + r.Int64N(1<<24-1) }},
		{"three bytes and one more", func(i int) int64 { return int64(i%2) * (1<<24 - 1) }},
		{"four bytes, rising", func(i int) int64 { return int64(i)*1_000_000 + r.Int64N(100) }},
		{"all there is", func(int) int64 { return int64(r.Uint64()) }},
		{"the extremes", func(int) int64 { return []int64{noTime, math.MaxInt64, math.MinInt64 + 1, 0}[r.IntN(4)] }},
	}
	for _, c := range times {
		t.Run(c.name, func(t *testing.T) {
			keepsValues(t, noTime, c.draw)
			keepsValues(t, noCount, func(i int) int32 {
				if x := c.draw(i); x != noTime {
					return int32(x)
				}
				return noCount
			})
			keepsValues(t, false, func(i int) bool { return c.draw(i)&1 == 1 })
		})
	}
}

func keepsValues[T comparable](t *testing.T, null T, draw func(i int) T) {
	t.Helper()
	for _, n := range []int{0, 1, blockRows - 1, blockRows, 3*blockRows + 17} {
		want := make([]T, n)
		for i := range want {
			want[i] = draw(i)
		}
		one, many := column[T]{null: null}, column[T]{null: null}
		for i, x := range want {
			one.append(x, n)
			if i%1000 == 0 {
				many.appendAll(want[i:min(i+1000, n)], n)
			}
		}
		one.pad(n + blockRows)
		for i, x := range want {
			if got, got2 := one.at(int32(i)), many.at(int32(i)); got != x || got2 != x {
				t.Fatalf("%T %d of %d: %v and %v, not %v", x, i, n, got, got2, x)
			}
		}
		if one.at(int32(n+blockRows-1)) != null {
			t.Error("a pad is not null")
		}
		rows := someRows(n)
		switch c := any(&one).(type) {
		case *column[int64]:
			gathers(t, rows, any(want).([]int64), func(out []int64) { gather(c, rows, out) })
		case *column[int32]:
			gathers(t, rows, any(want).([]int32), func(out []int32) { gather(c, rows, out) })
		case *column[bool]:
			gathers(t, rows, any(want).([]bool), func(out []bool) { gatherBools(c, rows, out) })
		}
	}
}

// someRows are rows in order and then at random.
func someRows(n int) (rows []int32) {
	for i := 0; i < n; i += 3 {
		rows = append(rows, int32(i))
	}
	for i := range min(n, 500) {
		rows = append(rows, int32(rng.Hash(uint64(i))%uint64(n)))
	}
	return rows
}

func gathers[T comparable](t *testing.T, rows []int32, want []T, gather func(out []T)) {
	t.Helper()
	out := make([]T, len(rows))
	gather(out)
	for k, i := range rows {
		if out[k] != want[i] {
			t.Fatalf("%T, row %d: gathered %v, not %v", want, i, out[k], want[i])
		}
	}
}

// What is read column by column is what Data tells of each row.
func TestValuesOfManyRowsAreThoseOfEach(t *testing.T) {
	r := rng.New(2, "values")
	d := newData()
	n := 2*blockRows + 100
	orNull := func(x, null int64) int64 {
		if r.IntN(10) == 0 {
			return null
		}
		return x
	}
	for i := range n {
		at := int64(i) * 100
		d.status.append([]int32{statusOK, statusOK, statusOK, statusNotSent}[r.IntN(4)], n)
		d.scheduled.append(at, n)
		for _, c := range []*column[int64]{&d.sent, &d.first, &d.firstOutput, &d.last, &d.queue} {
			at += r.Int64N(100_000)
			c.append(orNull(at, noTime), n)
		}
		for _, c := range []*column[int32]{&d.outputTokens, &d.outputLength, &d.firstTokens, &d.events} {
			c.append(int32(orNull(r.Int64N(6), noCount)), n)
		}
		d.streamed.append(r.IntN(8) > 0, n)
		d.tokenGaps.append(r.IntN(2) == 0, n)
		gaps := r.IntN(5)
		for range gaps {
			d.gaps = append(d.gaps, int32(r.IntN(400_000)))
		}
		d.gapCount.append(int32(gaps), n)
	}
	d.endInput(Input{Path: "x"}, "")
	d.finish()
	rows := someRows(n)
	for m := ttft; m <= ttfoSent; m++ {
		t.Run(fmt.Sprint(m), func(t *testing.T) {
			if m.pooled() {
				sameGaps(t, d, m, rows)
			} else {
				sameRowValues(t, d, m, rows)
			}
		})
	}
}

func sameRowValues(t *testing.T, d *Data, m metric, rows []int32) {
	t.Helper()
	var got []float64
	d.each(m, rows, func(values []float64) { got = append(got, values...) })
	for k, i := range rows {
		want := d.value(m, i)
		if !d.ok(i) {
			want = math.Inf(1)
		}
		if got[k] != want && !(math.IsNaN(got[k]) && math.IsNaN(want)) {
			t.Fatalf("row %d: %v, not %v", i, got[k], want)
		}
	}
}

func sameGaps(t *testing.T, d *Data, m metric, rows []int32) {
	t.Helper()
	k := 0
	d.eachGaps(m, rows, func(i int32, state gapState, gaps []int32) {
		if i != rows[k] {
			t.Fatalf("row %d in place of %d", i, rows[k])
		}
		k++
		want := gapsKnown
		switch {
		case !d.ok(i):
			want = gapsFailed
		case len(d.rowGaps(i)) == 0:
			want = gapsNone
		case d.gapsOf(m, i) == nil:
			want = gapsOther
		}
		if state != want || !slices.Equal(gaps, d.rowGaps(i)) {
			t.Fatalf("row %d: state %d, not %d", i, state, want)
		}
	})
	if k != len(rows) {
		t.Fatalf("%d of %d rows", k, len(rows))
	}
}

// The distance from counts is that of the samples.
func TestWorkloadOfLongAndShortAnswers(t *testing.T) {
	r := rng.New(3, "workload")
	for range 20 {
		d := newData()
		var asked, got []float64
		rows := make([]int32, 1+r.IntN(3000))
		most := []int{3, 500, 100_000}[r.IntN(3)]
		for i := range rows {
			a, g := int32(r.IntN(most)-1), int32(r.IntN(most+most/10+1)-1)
			rows[i], asked, got = int32(i), append(asked, float64(a)), append(got, float64(g))
			d.status.append(d.status.dict.Code([]byte(schemas.ResultOK)), 0)
			d.outputLength.append(a, 0)
			d.outputTokens.append(g, 0)
		}
		if w := d.workload(rows); w.N != len(rows) || w.OutputTokensKS.Known() && float64(w.OutputTokensKS) != stats.KS(asked, got) {
			t.Fatalf("%+v of %d rows, the distance is %v", w, len(rows), stats.KS(asked, got))
		}
	}
}
