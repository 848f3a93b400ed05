package ingest_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tailgate/ingest"
	"tailgate/internal/fault"
	"tailgate/internal/parquetio"
	"tailgate/schemas"
)

// traffic makes requests of several tenants with shared prefixes, duplicates, missing ids and unknown prompts.
func traffic(seed uint64, n int) [][]byte {
	r := rand.New(rand.NewPCG(seed, 9))
	var out [][]byte
	for i := range n {
		tenant := r.IntN(6)
		change := fields{
			"session_id": fmt.Sprint("s", r.IntN(n/3+1)), "metadata": fields{"user_api_key_team_id": fmt.Sprint("team", tenant)},
			"messages": strings.Repeat("shared words of all ", r.IntN(20)) +
				strings.Repeat(fmt.Sprint("pair ", tenant/2), r.IntN(20)) + strings.Repeat(fmt.Sprint("tenant ", tenant), r.IntN(30)) + fmt.Sprint(i*r.IntN(2)),
			"startTime": base + float64(r.IntN(50)),
		}
		if r.IntN(9) == 0 {
			change["litellm_call_id"] = nil
		}
		if r.IntN(9) == 0 {
			change["messages"] = nil
		}
		rec := litellm(i, change)
		for range 1 + r.IntN(3)/2 {
			out = append(out, rec)
		}
	}
	return out
}

// lakeIn ingests the records over two partitions, with segments of the given number of rows.
func lakeIn(t testing.TB, values [][]byte, rotate int64) string {
	t.Helper()
	var parts [2][]ingest.Record
	for i, v := range values {
		p := i % 2
		parts[p] = append(parts[p], message(int64(len(parts[p])), v))
	}
	o := options(newLake(t))
	o.RotateRows = rotate
	run(t, newMemory(parts[0], parts[1]), o)
	return o.Lake
}

func fakeKeys(string) (ingest.Keyer, error) { return fakeAnon{key: "k1"}, nil }

func dayPath(lake string) string { return filepath.Join(lake, "day="+baseDay, "requests.parquet") }

func publishWith(t testing.TB, o ingest.PublishOptions) (*ingest.PublishReport, []byte) {
	t.Helper()
	o.Day = baseDay
	if o.Tool == "" {
		o.Tool = "test"
	}
	r, err := publishAt(t, o)
	if err != nil {
		t.Fatal(err)
	}
	return r, readObject(t, o.Lake, dayKey)
}

func publishWithThreads(t testing.TB, o ingest.PublishOptions, threads int) (*ingest.PublishReport, []byte) {
	t.Helper()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(threads))
	return publishWith(t, o)
}

// The bytes of a day depend neither on the parts, nor on the memory and threads, nor on how the segments were cut.
func TestPublishGivesTheSameBytes(t *testing.T) { eachStore(t, testPublishGivesTheSameBytes) }

func testPublishGivesTheSameBytes(t *testing.T) {
	values := traffic(1, 1200)
	lake := lakeIn(t, values, 300)
	o := ingest.PublishOptions{Lake: lake, K: 3, MinRequests: 10, Keys: fakeKeys}
	first, want := publishWith(t, o)
	if first.Duplicates == 0 || first.Shared.Rows == 0 || first.SharedBlocks == 0 || first.Spilled != 0 {
		t.Fatalf("the case is too tame: %+v", first)
	}
	for _, parts := range []int{1, 2, 8} {
		for _, memory := range []int{1, 1 << 20, 1 << 30} {
			if os.Getenv(envStore) != "" && (parts == 2 || memory == 1<<20) {
				continue // in a bucket the ends will do
			}
			o.Parts, o.Memory = parts, memory
			r, got := publishWith(t, o)
			if !bytes.Equal(got, want) {
				t.Errorf("%d parts, %d bytes of memory: other bytes", parts, memory)
			}
			if memory == 1 && r.Spilled == 0 || memory == 1<<30 && r.Spilled > 0 {
				t.Errorf("%d parts, %d bytes of memory: %d files", parts, memory, r.Spilled)
			}
		}
	}
	for _, threads := range []int{1, 3} {
		o.Parts, o.Memory = 0, 1<<20
		if _, got := publishWithThreads(t, o, threads); !bytes.Equal(got, want) {
			t.Errorf("%d threads: other bytes", threads)
		}
	}
	// Segments cut otherwise are other inputs: the rows are the same, the digest of the inputs is not.
	o.Lake = lakeIn(t, values, 97)
	publishWith(t, o)
	a, _, err := parquetio.ReadFile[schemas.Request](dayPath(local(t, lake)))
	if err != nil {
		t.Fatal(err)
	}
	b, _, err := parquetio.ReadFile[schemas.Request](dayPath(local(t, o.Lake)))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(a, b); diff != "" {
		t.Error(diff[:min(len(diff), 500)])
	}
	figures(t, "T14", nil, "1, 2 and 8 parts × three memory limits, 1 and 3 threads: 12 builds of %d rows, the same %d bytes", len(a), len(want))
}

// Rows come back one for one; ids are as in the segments, keyed per tenant or cut.
func TestPublishAgainstANaiveModel(t *testing.T) {
	for _, keys := range []func(string) (ingest.Keyer, error){fakeKeys, nil} {
		for seed := range uint64(2) {
			lake := lakeIn(t, traffic(seed, 400), 60)
			const k = 3
			r, _ := publishWith(t, ingest.PublishOptions{Lake: lake, K: k, MinRequests: 1, Keys: keys, Memory: 1})
			rows, _, err := parquetio.ReadFile[schemas.Request](dayPath(local(t, lake)))
			if err != nil {
				t.Fatal(err)
			}
			whole := map[int64]map[int64]schemas.Request{} // partition and offset → row of a segment
			for _, row := range segmentRows(t, lake) {
				p := int64(row.Partition)
				if whole[p] == nil {
					whole[p] = map[int64]schemas.Request{}
				}
				whole[p][row.Offset] = row
			}
			holders := map[int64]map[string]int{} // id → tenant → rows
			for _, row := range rows {
				src := whole[int64(row.Partition)][row.Offset]
				for _, id := range src.HashIDs {
					if holders[id] == nil {
						holders[id] = map[string]int{}
					}
					holders[id][*src.Tenant]++
				}
			}
			few := func(id int64) bool { return len(holders[id]) > 1 && len(holders[id]) < k }
			published := map[int64]map[string]bool{}
			for i, row := range rows {
				src := whole[int64(row.Partition)][row.Offset]
				for pos, id := range row.HashIDs {
					if published[id] == nil {
						published[id] = map[string]bool{}
					}
					published[id][*src.Tenant] = true
					if keys == nil && (few(id) || id != src.HashIDs[pos]) {
						t.Fatalf("row %d: id %d is published without a key", i, pos)
					}
				}
				if i > 0 && row.ArrivedAt.Before(rows[i-1].ArrivedAt) {
					t.Fatalf("row %d is out of order", i)
				}
				if src.HashIDs == nil {
					if row.HashIDs != nil {
						t.Fatalf("row %d: an unknown prompt has ids", i)
					}
					continue
				}
				last := 0
				for pos, id := range src.HashIDs {
					if keys == nil && few(id) {
						break
					}
					n := 0
					for tenant, rows := range holders[id] {
						if !few(id) || tenant == *src.Tenant {
							n += rows
						}
					}
					if n > 1 {
						last = pos + 1
					}
				}
				if keys != nil && len(row.HashIDs) != last {
					t.Fatalf("row %d keeps %d ids, want %d", i, len(row.HashIDs), last)
				}
				if keys == nil && len(row.HashIDs) > last {
					t.Fatalf("row %d keeps %d ids, at most %d are shared", i, len(row.HashIDs), last)
				}
			}
			for id, tenants := range published {
				if len(tenants) > 1 && len(tenants) < k {
					t.Fatalf("id %d is published for %d tenants", id, len(tenants))
				}
			}
			if r.Shared.Rows == 0 || r.Shared.Keyed != (keys != nil) || r.Shared.LostHits <= 0 {
				t.Errorf("%+v", r.Shared)
			}
		}
	}
}

func TestPublishCrashesLeaveTheDayWhole(t *testing.T) {
	eachStore(t, testPublishCrashesLeaveTheDayWhole)
}

func testPublishCrashesLeaveTheDayWhole(t *testing.T) {
	lake := lakeIn(t, traffic(2, 200), 50)
	o := ingest.PublishOptions{Lake: lake, K: 1, MinRequests: 1, Memory: 1}
	_, old := publishWith(t, o)
	boom := errors.New("boom")
	for _, point := range []string{"after-scan", "after-survey", "after-turns", "after-share", "after-suppress",
		"before-archive", "before-rename", "before-manifest"} {
		crashed := o
		crashed.Day, crashed.Tool, crashed.K = baseDay, "test", 30
		ingest.SetPublishHook(&crashed, func(at string) error {
			if at == point {
				return boom
			}
			return nil
		})
		if _, err := publishAt(t, crashed); !errors.Is(err, boom) {
			t.Fatalf("%s: %v", point, err)
		}
		if now := readObject(t, lake, dayKey); bytes.Equal(now, old) != (point != "before-manifest") {
			t.Errorf("%s: the live file is another one", point)
		}
		if left := workFiles(t, lake); len(left) > 0 {
			t.Errorf("%s left %v", point, left)
		}
	}
	if _, again := publishWith(t, o); !bytes.Equal(again, old) || len(workFiles(t, lake)) > 0 {
		t.Errorf("after the crashes: %v", workFiles(t, lake))
	}
}

// What a kill leaves in a folder is removed by the next build, which ends as if nothing had been.
func TestPublishRemovesWhatAKillLeft(t *testing.T) {
	lake := lakeIn(t, traffic(2, 20), 50)
	o := ingest.PublishOptions{Lake: lake, K: 1, MinRequests: 1}
	_, old := publishWith(t, o)
	for _, name := range []string{".swap-requests.parquet", ".segment.tmp-1"} {
		write(t, filepath.Join(lake, "_builds", baseDay, name), []byte("x"))
	}
	if left := workFiles(t, lake); len(left) != 2 {
		t.Fatalf("%v", left)
	}
	if _, again := publishWith(t, o); !bytes.Equal(again, old) || len(workFiles(t, lake)) > 0 {
		t.Errorf("after the kill: %v", workFiles(t, lake))
	}
}

// workFiles are the files that a build in a folder leaves beside the lock and earlier builds; a bucket has none.
func workFiles(t testing.TB, lake string) []string {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(lake, "_builds", "*", ".*"))
	if err != nil {
		t.Fatal(err)
	}
	return left
}

// A reader that opens what the glob finds sees one whole file at every moment.
func TestReadersSeeOneWholeFileWhileBuildsAreReplaced(t *testing.T) {
	lake := lakeIn(t, traffic(3, 300), 500)
	publishWith(t, ingest.PublishOptions{Lake: lake, K: 1, MinRequests: 1})
	done := make(chan struct{})
	var reads, faults int
	var reader sync.WaitGroup
	reader.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			paths, err := filepath.Glob(filepath.Join(lake, "day=*", "*.parquet"))
			if err == nil && len(paths) == 1 {
				_, _, err = parquetio.ReadFile[schemas.Request](paths[0])
			}
			if reads++; err != nil || len(paths) != 1 {
				faults++
			}
		}
	})
	for i := range 12 {
		publishWith(t, ingest.PublishOptions{Lake: lake, K: 1, MinRequests: 1, Tool: fmt.Sprint(i)})
	}
	close(done)
	reader.Wait()
	if faults > 0 || reads == 0 {
		t.Errorf("%d of %d reads saw none, two or a torn file", faults, reads)
	}
	t.Logf("%d reads", reads)
}

func TestEarlierBuildsAreKeptAndPruned(t *testing.T) { eachStore(t, testEarlierBuildsAreKeptAndPruned) }

func testEarlierBuildsAreKeptAndPruned(t *testing.T) {
	lake := lakeIn(t, traffic(4, 100), 500)
	kept := func() int {
		return len(objectsIn(t, lake, "_builds/"+baseDay, ".parquet"))
	}
	for i, c := range []struct {
		tool       string
		keep, want int
	}{{"1", 0, 0}, {"2", 0, 1}, {"2", 0, 1}, {"3", 0, 1}, {"4", 3, 2}, {"5", 3, 3}, {"6", 1, 1}, {"7", -1, 0}} {
		publishWith(t, ingest.PublishOptions{Lake: lake, K: 1, MinRequests: 1, Tool: c.tool, KeepBuilds: c.keep})
		if got := kept(); got != c.want {
			t.Errorf("build %d: %d earlier builds, want %d", i, got, c.want)
		}
	}
}

func TestOneBuildOfADayAtATime(t *testing.T) {
	lake := lakeIn(t, traffic(5, 20), 500)
	o := ingest.PublishOptions{Lake: lake, Day: baseDay, K: 1, MinRequests: 1}
	inner := o
	ingest.SetPublishHook(&o, func(at string) error {
		if at != "after-scan" {
			return nil
		}
		if _, err := publishAt(t, inner); err == nil || !strings.Contains(err.Error(), "another publish") {
			t.Errorf("a second build ran: %v", err)
		}
		return nil
	})
	if _, err := publishAt(t, o); err != nil {
		t.Fatal(err)
	}
}

func TestDaysAreOpenUntilTheLogsHaveComeFarEnough(t *testing.T) {
	eachStore(t, testDaysAreOpenUntilTheLogsHaveComeFarEnough)
}

func testDaysAreOpenUntilTheLogsHaveComeFarEnough(t *testing.T) {
	end := time.Date(2026, 9, 22, 0, 0, 0, 0, time.UTC)
	logged := func(offset int64, at time.Time) ingest.Record {
		rec := message(offset, litellm(int(offset), fields{"startTime": base, "endTime": base + 1}))
		rec.Time = at
		return rec
	}
	for _, c := range []struct {
		name     string
		a, b     time.Time
		complete bool
	}{
		{"both far enough", end.Add(33 * time.Minute), end.Add(32 * time.Minute), true},
		{"one behind", end.Add(33 * time.Minute), end.Add(31 * time.Minute), false},
		{"both behind", end, end, false},
	} {
		o := options(newLake(t))
		run(t, newMemory([]ingest.Record{logged(0, c.a)}, []ingest.Record{logged(0, c.b)}), o)
		p := ingest.PublishOptions{Lake: o.Lake, K: 1, MinRequests: 1}
		r, _ := publishWith(t, p)
		if r.IsComplete != c.complete || r.OpenUntil != "2026-09-22T00:32:00Z" {
			t.Errorf("%s: complete %v, open until %s", c.name, r.IsComplete, r.OpenUntil)
		}
		m, err := schemas.ReadManifest(filepath.Dir(dayPath(local(t, o.Lake))))
		if err != nil || m.Settings["complete"] != c.complete || strings.Contains(fmt.Sprint(m.Notes), "open until") == c.complete {
			t.Errorf("%s: manifest %+v, %v", c.name, m, err)
		}
		p.Complete, p.Day = true, baseDay
		if _, err := publishAt(t, p); (err == nil) != c.complete || err != nil && fault.Of(err) != fault.Data {
			t.Errorf("%s: --complete says %v", c.name, err)
		}
	}
}

func TestRequestsInFlightAtTheDaysEndAreCounted(t *testing.T) {
	late := float64(time.Date(2026, 9, 21, 23, 59, 30, 0, time.UTC).Unix())
	lake := lakeOf(t, [][]byte{
		litellm(0, fields{"startTime": late, "endTime": late + 29}), litellm(1, fields{"startTime": late, "endTime": late + 31}),
	})
	if r, _ := publishWith(t, ingest.PublishOptions{Lake: lake, K: 1, MinRequests: 1}); r.InFlight != 1 {
		t.Errorf("%d in flight", r.InFlight)
	}
}

func TestSuspiciousRequestIDsAreReported(t *testing.T) {
	var values [][]byte
	for i := range 60 {
		id := fmt.Sprint("call-", i)
		if i%3 == 0 {
			id = "constant"
		}
		values = append(values, litellm(i, fields{"litellm_call_id": id}))
	}
	r, _ := publishWith(t, ingest.PublishOptions{Lake: lakeOf(t, values), K: 1, MinRequests: 1})
	token := fakeAnon{key: "k1"}.Token("request", []byte("constant"))
	want := ingest.Suspicious{IDs: 1, Rows: 20, Worst: []ingest.OddID{{RequestID: token, Rows: 20}}}
	if diff := cmp.Diff(want, r.Suspicious); diff != "" || r.Rows != 60 {
		t.Errorf("%d rows, %s", r.Rows, diff)
	}
}

// Late rows make a new build while the epoch lasts; rows of a later one wait for a backfill.
func TestLateRows(t *testing.T) { eachStore(t, testLateRows) }

func testLateRows(t *testing.T) {
	o := options(newLake(t))
	var recs []ingest.Record
	grow := func(n int) {
		for range n {
			i := len(recs)
			recs = append(recs, message(int64(i), litellm(i, nil)))
		}
		run(t, newMemory(recs), o)
	}
	p := ingest.PublishOptions{Lake: o.Lake, K: 1, MinRequests: 1}
	grow(10)
	if r, _ := publishWith(t, p); r.Rows != 10 || r.Late != 0 {
		t.Errorf("%+v", r)
	}
	grow(5)
	if r, _ := publishWith(t, p); r.Rows != 15 || r.Late != 5 || r.Refused != 0 {
		t.Errorf("%+v", r)
	}
	o.Footer.Epoch = "e2"
	grow(3)
	r, _ := publishWith(t, p)
	if r.Rows != 15 || r.Refused != 3 || r.Epoch != "e1" {
		t.Errorf("%+v", r)
	}
	p.Day, p.Backfill = baseDay, true
	if _, err := publishAt(t, p); fault.Of(err) != fault.Data {
		t.Errorf("a backfill of a part of the day: %v", err)
	}
	// The whole day again, under the new epoch.
	src := newMemory(recs)
	src.topic, src.parts[0].Topic = "again", "again"
	run(t, src, o)
	if r, _ := publishWith(t, p); r.Rows != 18 || r.Epoch != "e2" || r.Refused != 15 {
		t.Errorf("%+v", r)
	}
	p.Backfill = false
	if r, _ := publishWith(t, p); r.Rows != 18 || r.Epoch != "e2" {
		t.Errorf("after the backfill: %+v", r)
	}
}

func TestMissingKeysStopABuildThatNeedsThem(t *testing.T) {
	eachStore(t, testMissingKeysStopABuildThatNeedsThem)
}

func testMissingKeysStopABuildThatNeedsThem(t *testing.T) {
	lake := lakeIn(t, traffic(6, 200), 500)
	gone := fault.Mark(fs.ErrNotExist, fault.Key, "")
	o := ingest.PublishOptions{Lake: lake, Day: baseDay, K: 3, MinRequests: 1,
		Keys: func(string) (ingest.Keyer, error) { return nil, gone }}
	if _, err := publishAt(t, o); fault.Of(err) != fault.Key {
		t.Errorf("%v", err)
	}
	o.K = 1
	if _, err := publishAt(t, o); err != nil {
		t.Errorf("no key was needed: %v", err)
	}
}
