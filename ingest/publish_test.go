package ingest_test

import (
	"bytes"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tailgate/ingest"
	"tailgate/internal/fault"
	"tailgate/internal/parquetio"
	"tailgate/schemas"
)

// dayKey names the live file.
const dayKey = "day=" + baseDay + "/requests.parquet"

// isLock tells the lock of a day's builds from what they leave.
func isLock(key string) bool { return path.Base(key) == "lock" }

// lakeOf ingests records, one partition for each list, and returns the lake's folder.
func lakeOf(t testing.TB, partitions ...[][]byte) string {
	t.Helper()
	var parts [][]ingest.Record
	for _, values := range partitions {
		var recs []ingest.Record
		for i, v := range values {
			recs = append(recs, message(int64(i), v))
		}
		parts = append(parts, recs)
	}
	o := options(newLake(t))
	o.RotateRows = 60
	run(t, newMemory(parts...), o)
	return o.Lake
}

func publish(t testing.TB, lake string, k, minRequests int) (*ingest.PublishReport, []schemas.Request) {
	t.Helper()
	r, err := publishAt(t, ingest.PublishOptions{Lake: lake, Day: baseDay, K: k, MinRequests: minRequests, Tool: "test"})
	if err != nil {
		t.Fatal(err)
	}
	paths, err := filepath.Glob(filepath.Join(local(t, lake), "day=*", "*.parquet"))
	if err != nil || len(paths) != 1 {
		t.Fatalf("the glob finds %v", paths)
	}
	rows, _, err := parquetio.ReadFile[schemas.Request](paths[0])
	if err != nil {
		t.Fatal(err)
	}
	return r, rows
}

func TestPublishSortsNumbersAndStaysTheSame(t *testing.T) {
	eachStore(t, testPublishSortsNumbersAndStaysTheSame)
}

func testPublishSortsNumbersAndStaysTheSame(t *testing.T) {
	var odd, even [][]byte
	for i := 39; i >= 0; i-- {
		if i%2 == 0 {
			even = append(even, litellm(i, nil))
		} else {
			odd = append(odd, litellm(i, nil))
		}
	}
	lake := lakeOf(t, odd, even)
	report, rows := publish(t, lake, 1, 1)
	checkComplete(t, rows, 40)
	for i, r := range rows {
		if int(*r.InputTokens) != 100+i || *r.Turn != int32(i%4) {
			t.Fatalf("row %d: %d tokens, turn %d", i, *r.InputTokens, *r.Turn)
		}
	}
	if days := days(t, lake); !cmp.Equal(days, []string{baseDay}) {
		t.Errorf("days %v", days)
	}
	first := readObject(t, lake, dayKey)
	publish(t, lake, 1, 1)
	if second := readObject(t, lake, dayKey); !bytes.Equal(first, second) {
		t.Error("a second build has other bytes")
	}
	copied := local(t, lake)
	m, err := schemas.ReadManifest(filepath.Dir(dayPath(copied)))
	if err != nil || m.Kind != "lake_day" || m.Files[0] != report.File || m.Epoch != "e1" || len(m.Inputs) != report.Segments {
		t.Errorf("manifest %+v, %v", m, err)
	}
	footer, n, err := parquetio.Footer(dayPath(copied))
	if err != nil || n != 40 || footer[schemas.KeySchema] != schemas.TableRequests || footer[schemas.KeyInputs] != schemas.InputsDigest(m.Inputs) {
		t.Errorf("footer %v, %v", footer, err)
	}
	if left := slices.DeleteFunc(objectsIn(t, lake, "_builds", ""), isLock); len(left) > 0 {
		t.Errorf("builds left: %v", left)
	}
}

func TestPublishTakesOnlyItsDay(t *testing.T) { eachStore(t, testPublishTakesOnlyItsDay) }

func testPublishTakesOnlyItsDay(t *testing.T) {
	lake := lakeOf(t, [][]byte{litellm(0, nil), litellm(1, fields{"startTime": base + 86400}), litellm(2, fields{"startTime": base - 86400})})
	if _, rows := publish(t, lake, 1, 1); len(rows) != 1 {
		t.Errorf("%d rows", len(rows))
	}
	if days := days(t, lake); len(days) != 3 {
		t.Errorf("days %v", days)
	}
	_, err := publishAt(t, ingest.PublishOptions{Lake: lake, Day: "2020-02-02"})
	if err == nil || !strings.Contains(err.Error(), "no request") || fault.Of(err) != fault.Failure {
		t.Errorf("%v", err)
	}
	err = (&ingest.PublishOptions{Day: "yesterday", K: -1}).Validate()
	if fault.Of(err) != fault.Usage || strings.Count(err.Error(), "\n") != 2 {
		t.Errorf("%v", err)
	}
}

func TestPublishMergesExactDuplicates(t *testing.T) { eachStore(t, testPublishMergesExactDuplicates) }

func testPublishMergesExactDuplicates(t *testing.T) {
	poor := litellm(1, fields{"prompt_tokens": 0, "messages": nil})
	lake := lakeOf(t, [][]byte{
		litellm(0, nil), litellm(0, nil), // byte for byte the same
		poor, litellm(1, nil), poor, // the richest wins
		litellm(2, nil), litellm(2, fields{"completion_tokens": 11}), // a conflict
		litellm(3, nil), litellm(3, fields{"startTime": base + 0.5}), // another start: another attempt
		litellm(4, fields{"litellm_call_id": nil}), litellm(4, fields{"litellm_call_id": nil}), // without an id: never
	})
	r, rows := publish(t, lake, 1, 1)
	if r.Read != 11 || r.Rows != 7 || r.Duplicates != 4 || r.Conflicts != 1 || len(rows) != 7 {
		t.Errorf("%+v", r)
	}
	for _, row := range rows {
		if row.InputTokens == nil || row.PromptState != schemas.PromptFull {
			t.Errorf("the poor record won: %+v", row)
		}
	}
}

func TestPublishMergesAcrossGenerationsAndTopics(t *testing.T) {
	eachStore(t, testPublishMergesAcrossGenerationsAndTopics)
}

func testPublishMergesAcrossGenerationsAndTopics(t *testing.T) {
	o := options(newLake(t))
	for range 2 {
		f, err := ingest.OpenFiles([]string{"-"}, bytes.NewReader(jsonl(0, 9)))
		if err != nil {
			t.Fatal(err)
		}
		run(t, f, o)
	}
	run(t, openFiles(t, write(t, filepath.Join(t.TempDir(), "a"), jsonl(0, 9))), o)
	r, rows := publish(t, o.Lake, 1, 1)
	checkComplete(t, rows, 9)
	if r.Duplicates != 18 {
		t.Errorf("%d duplicates", r.Duplicates)
	}
}

func TestPublishKeepsSharedBlocksOnly(t *testing.T) { eachStore(t, testPublishKeepsSharedBlocksOnly) }

func testPublishKeepsSharedBlocksOnly(t *testing.T) {
	shared := strings.Repeat("the tide comes in over the flats ", 8) // 264 bytes: 4 blocks of 64 and 8 bytes
	ask := func(i int, text string, tokens int) []byte {
		return litellm(i, fields{"messages": shared[:256] + text, "prompt_tokens": tokens})
	}
	lake := lakeOf(t, [][]byte{
		ask(0, strings.Repeat("a", 100), 89),                        // 4 shared, 1 private, tail of 9
		ask(1, strings.Repeat("b", 64), 80),                         // 4 shared, 1 private, no tail
		ask(2, "same tail", 67),                                     // 4 shared and a shared tail
		ask(3, "same tail", 67),                                     //
		ask(4, "other", 66),                                         // 4 shared, a private tail
		litellm(5, fields{"messages": "alone", "prompt_tokens": 2}), // nothing shared
		litellm(6, fields{"messages": nil}),                         // not known
	})
	_, rows := publish(t, lake, 1, 1)
	type shape struct{ shared, private, tail int32 }
	var got []shape
	for _, r := range rows {
		n := int32(len(r.HashIDs))
		if r.HashIDs == nil {
			n = -1
		}
		got = append(got, shape{n, r.PrivateBlocks, r.TailTokens})
	}
	want := []shape{{4, 1, 9}, {4, 1, 0}, {5, 0, 3}, {5, 0, 3}, {4, 0, 2}, {0, 0, 2}, {-1, 0, 10}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(shape{})); diff != "" {
		t.Error(diff)
	}
}

func TestPublishSuppressesSmallGroups(t *testing.T) {
	var values [][]byte
	add := func(team, session string, n int) {
		for range n {
			i := len(values)
			values = append(values, litellm(i, fields{"metadata": fields{"user_api_key_team_id": team}, "session_id": session}))
		}
	}
	for i := range 20 {
		add("big", fmt.Sprint("b", i), 6) // 20 sessions, 120 requests
	}
	add("few-sessions", "one", 200)
	for i := range 30 {
		add("few-requests", fmt.Sprint("r", i), 1)
	}
	lake := lakeOf(t, values)
	r, rows := publish(t, lake, 0, 0)
	counts := map[string]int{}
	for _, row := range rows {
		label := "null"
		if row.Tenant != nil {
			label = *row.Tenant
		}
		counts[label]++
	}
	big := fakeAnon{key: "k1"}.Token("tenant", []byte("big"))
	if diff := cmp.Diff(map[string]int{big: 120, "other": 230}, counts); diff != "" {
		t.Error(diff)
	}
	if r.Rows != 350 || r.Suppressed[0].Labels != 2 || r.Suppressed[0].Rows != 230 || r.Suppressed[0].Nulled {
		t.Errorf("%+v", r.Suppressed)
	}

	// The remainder is too small itself.
	r, rows = publish(t, lakeOf(t, values[:150]), 0, 0)
	nulls := 0
	for _, row := range rows {
		if row.Tenant == nil {
			nulls++
		}
	}
	if nulls != 30 || !r.Suppressed[0].Nulled || r.Suppressed[1].Nulled {
		t.Errorf("%d nulls, %+v", nulls, r.Suppressed)
	}
	// The whole day is too small.
	_, rows = publish(t, lakeOf(t, values[:10]), 0, 0)
	if len(rows) != 10 || rows[0].Tenant != nil || rows[0].Class != nil || rows[0].Model != "" {
		t.Errorf("%+v", rows[0])
	}
}

func TestPublishRefusesMixedEpochs(t *testing.T) { eachStore(t, testPublishRefusesMixedEpochs) }

func testPublishRefusesMixedEpochs(t *testing.T) {
	o := options(newLake(t))
	src := newMemory([]ingest.Record{message(0, litellm(0, nil))})
	run(t, src, o)
	src = newMemory([]ingest.Record{message(0, litellm(0, nil)), message(1, litellm(1, nil))})
	o.Footer.Epoch = "e2"
	run(t, src, o)
	_, err := publishAt(t, ingest.PublishOptions{Lake: o.Lake, Day: baseDay})
	if fault.Of(err) != fault.Data || !strings.Contains(err.Error(), "epoch") {
		t.Errorf("%v", err)
	}
}

// A backfill from an epoch of which the day has no row says so, whether or not the day was published before.
func TestPublishFromAnEpochWithoutRows(t *testing.T) {
	lake := lakeOf(t, [][]byte{litellm(0, nil), litellm(1, nil)})
	for _, published := range []bool{false, true} {
		if published {
			publish(t, lake, 1, 1)
		}
		_, err := publishAt(t, ingest.PublishOptions{Lake: lake, Day: baseDay, Backfill: true, Epoch: "e9"})
		if fault.Of(err) != fault.Data || !strings.Contains(err.Error(), "e9") {
			t.Errorf("published %v: %v", published, err)
		}
	}
}

func TestPublishKeepsTheOldBuildOnFailure(t *testing.T) {
	eachStore(t, testPublishKeepsTheOldBuildOnFailure)
}

func testPublishKeepsTheOldBuildOnFailure(t *testing.T) {
	lake := lakeOf(t, [][]byte{litellm(0, nil), litellm(1, nil)})
	publish(t, lake, 1, 1)
	removeObject(t, lake, objectsIn(t, lake, "_segments", ".parquet")[0])
	if _, err := publishAt(t, ingest.PublishOptions{Lake: lake, Day: baseDay}); fault.Of(err) != fault.Data {
		t.Errorf("%v", err)
	}
	if _, n, err := parquetio.Footer(dayPath(local(t, lake))); n != 2 || err != nil {
		t.Errorf("the old build has %d rows, %v", n, err)
	}
}

// Case 39: failed requests are arrivals without an output length.
func TestFailedRequestsStayAsArrivals(t *testing.T) {
	outputs := []int{18, 230, 0, 276, 215, 0, 61}
	var values [][]byte
	for i, n := range outputs {
		change := fields{"completion_tokens": n, "startTime": base + float64(i)*66}
		if n == 0 {
			change["status"], change["response"] = "failure", nil
		}
		values = append(values, litellm(i, change))
	}
	_, rows := publish(t, lakeOf(t, values), 1, 1)
	sum, known := 0, 0
	for _, r := range rows {
		if r.OutputTokens != nil {
			sum += int(*r.OutputTokens)
			known++
		}
	}
	span := rows[6].ArrivedAt.Sub(rows[0].ArrivedAt).Seconds()
	if len(rows) != 7 || known != 5 || sum != 800 || span != 396 {
		t.Errorf("%d rows, %d lengths, sum %d, span %v", len(rows), known, sum, span)
	}
}
