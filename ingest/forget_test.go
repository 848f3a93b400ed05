package ingest_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"tailgate/anonymize/audit"
	"tailgate/ingest"
	"tailgate/schemas"
)

const forgottenTeam = "team-forget-me"

// crowd are requests of four teams, a fourth of them of one that is to be forgotten, with messages that hold several
// requests, and some that cannot be read.
func crowd(n int) []ingest.Record {
	var recs []ingest.Record
	teams := []string{"team-harbour", "team-quay", forgottenTeam, "team-buoy"}
	at := func(i int) []byte {
		return litellm(i, fields{"metadata": fields{"user_api_key_team_id": teams[i/4%4]}, "messages": fmt.Sprint("Which pier is number ", i%5, "?")})
	}
	for i := 0; i < n; i++ {
		value := at(i)
		switch i % 13 {
		case 3: // all of it may go
			value = []byte("[" + string(at(i)) + "," + string(at(i+1000)) + "]")
		case 5: // of two teams
			value = []byte("[" + string(at(i)) + "," + string(at(i+1004)) + "]")
		case 8: // and one that is dead
			value = []byte("[" + string(at(i)) + `,{"startTime":"never"}]`)
		case 11:
			value = []byte("{broken")
		}
		recs = append(recs, message(int64(i), value))
	}
	return recs
}

func forgetOptions(lake string) ingest.ForgetOptions {
	anon := fakeAnon{key: "k1"}
	o := ingest.ForgetOptions{Lake: lake, Who: schemas.Tombstone{
		Kind: schemas.ForgetTenant, Token: anon.Token(schemas.KindForget, schemas.ForgetValue(schemas.ForgetTenant, []byte(forgottenTeam))),
		Pseudonyms: []string{anon.Token("tenant", []byte(forgottenTeam))},
	}}
	if run := options(lake); run.Bucket != nil {
		o.Bucket, o.Lake = run.Bucket, ""
	}
	return o
}

// crowdLake ingests a crowd in small segments.
func crowdLake(t *testing.T, n int) ingest.Options {
	t.Helper()
	o := options(newLake(t))
	o.MaxBad, o.RotateRows = 1, 20
	run(t, newMemory(crowd(n)), o)
	return o
}

// withoutThem are the rows of segments that Forget must leave, in their order.
func withoutThem(rows []schemas.Request) []schemas.Request {
	token := fakeAnon{key: "k1"}.Token("tenant", []byte(forgottenTeam))
	return slices.DeleteFunc(slices.Clone(rows), func(r schemas.Request) bool { return r.Tenant != nil && *r.Tenant == token })
}

// noTrace wants the team's token nowhere but in its tombstone, and its name nowhere.
func noTrace(t *testing.T, lake string) {
	t.Helper()
	o := forgetOptions(lake)
	report, err := audit.Path(t.Context(), local(t, lake), audit.Options{Canaries: [][]byte{[]byte(o.Who.Pseudonyms[0]), []byte(forgottenTeam)}})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range report.Findings {
		if f.What == audit.WhatCanary && f.File != "_forgotten/"+o.Who.Token+".json" {
			t.Errorf("left: %+v", f)
		}
	}
	if len(report.Unreadable) > 0 || report.Files < 3 {
		t.Errorf("%d files, unreadable %v", report.Files, report.Unreadable)
	}
}

func TestForgetTakesRowsOutOfSegments(t *testing.T) { eachStore(t, testForgetTakesRowsOutOfSegments) }

func testForgetTakesRowsOutOfSegments(t *testing.T) {
	o := crowdLake(t, 200)
	before := segmentRows(t, o.Lake)
	want := withoutThem(before)
	letters := deadLetters(t, o.Lake)
	f := forgetOptions(o.Lake)
	f.DryRun = true
	dry, err := ingest.Forget(t.Context(), f)
	if err != nil || dry.Rows != int64(len(before)-len(want)) || dry.Rows == 0 || len(segmentRows(t, o.Lake)) != len(before) {
		t.Fatalf("a dry run: %+v, %v", dry, err)
	}
	f.DryRun = false
	got, err := ingest.Forget(t.Context(), f)
	if err != nil || got.Rows != dry.Rows || got.Files != dry.Files || !slices.Equal(got.Days, []string{baseDay}) || len(got.Sessions) == 0 {
		t.Fatalf("%+v, %v", got, err)
	}
	if err := ingest.Forgotten(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, segmentRows(t, o.Lake)); diff != "" {
		t.Errorf("the rows that stay: %s", diff)
	}
	if diff := cmp.Diff(letters, deadLetters(t, o.Lake)); diff != "" {
		t.Errorf("dead letters: %s", diff)
	}
	noTrace(t, o.Lake)
	stones, err := ingest.Tombstones(t.Context(), f.Lake, f.Bucket)
	if err != nil || len(stones) != 1 || stones[0].Open != nil {
		t.Errorf("%+v, %v", stones, err)
	}
	if again, err := ingest.Forget(t.Context(), f); err != nil || again.Rows != 0 || again.Files != 0 {
		t.Errorf("a second time: %+v, %v", again, err)
	}
	// The log goes on where it ended, and is whole.
	src := newMemory(crowd(230))
	o.Deep = true
	r := run(t, src, o)
	if r.Partitions[0].First != 200 || r.Total.Skips[ingest.SkipForgotten] == 0 {
		t.Errorf("%+v", r.Total)
	}
	if r := run(t, newMemory(crowd(230)), o); r.Total.Rows != 0 || r.Total.Messages != 0 {
		t.Errorf("a run without anything new: %+v", r.Total)
	}
	noTrace(t, o.Lake)
}

// A lake from which a team was forgotten, one that reads the same log after it was, and one that never took the team
// publish the same rows.
func TestForgottenRowsStayAway(t *testing.T) {
	rules, err := ingest.ParseExclude("x", []byte("exclude:\n  - {tenant: "+forgottenTeam+"}\n"))
	if err != nil {
		t.Fatal(err)
	}
	excluded := options(t.TempDir())
	excluded.MaxBad, excluded.RotateRows, excluded.Exclude = 1, 20, rules
	run(t, newMemory(crowd(200)), excluded)
	_, want := publish(t, excluded.Lake, 2, 2)

	afterwards := crowdLake(t, 200)
	publish(t, afterwards.Lake, 2, 2)
	if _, err := ingest.Forget(t.Context(), forgetOptions(afterwards.Lake)); err != nil {
		t.Fatal(err)
	}
	if r, got := publish(t, afterwards.Lake, 2, 2); !cmp.Equal(want, got) || r.Forgotten != 0 {
		t.Errorf("forgotten afterwards: %s", cmp.Diff(want, got))
	}

	before := options(t.TempDir())
	before.MaxBad, before.RotateRows = 1, 20
	if _, err := ingest.Forget(t.Context(), forgetOptions(before.Lake)); err != nil {
		t.Fatal(err)
	}
	r := run(t, newMemory(crowd(200)), before)
	if _, got := publish(t, before.Lake, 2, 2); !cmp.Equal(want, got) || r.Total.Skips[ingest.SkipForgotten] == 0 {
		t.Errorf("forgotten before: %s", cmp.Diff(want, got))
	}
	noTrace(t, before.Lake)
}

// A tombstone that is set while segments are open makes the run read them again; a publish that finds rows all the
// same leaves them out.
func TestTombstoneDuringARun(t *testing.T) {
	o := options(t.TempDir())
	o.MaxBad = 1
	n := 0
	ingest.SetBeforeDecode(&o, func([]byte) {
		if n++; n == 100 {
			if _, err := ingest.Forget(t.Context(), forgetOptions(o.Lake)); err != nil {
				t.Error(err)
			}
		}
	})
	r := run(t, newMemory(crowd(200)), o)
	if r.Total.Skips[ingest.SkipForgotten] == 0 || n < 250 {
		t.Errorf("%d messages decoded: %+v", n, r.Total)
	}
	if rows := segmentRows(t, o.Lake); len(rows) != len(withoutThem(rows)) || len(rows) == 0 {
		t.Errorf("%d rows, %d without them", len(rows), len(withoutThem(rows)))
	}

	slow := crowdLake(t, 200)
	all := segmentRows(t, slow.Lake)
	f := forgetOptions(slow.Lake)
	ingest.SetForgetHook(&f, func(point string) error {
		if point == "after-tombstone" {
			return errors.New("killed")
		}
		return nil
	})
	if _, err := ingest.Forget(t.Context(), f); err == nil {
		t.Fatal("it was not killed")
	}
	report, got := publish(t, slow.Lake, 1, 1)
	if report.Forgotten != int64(len(all)-len(withoutThem(all))) || len(got) != len(withoutThem(all)) || report.Duplicates != 0 {
		t.Errorf("%+v: %d rows", report, len(got))
	}
}

// Killed at any step, the next run ends it; the log is whole at every moment, also for a run that goes on.
func TestForgetKilledAtEachStep(t *testing.T) { eachStore(t, testForgetKilledAtEachStep) }

func testForgetKilledAtEachStep(t *testing.T) {
	o := crowdLake(t, 120)
	want := withoutThem(segmentRows(t, o.Lake))
	for kill, done := 0, false; !done; kill++ {
		if kill > 100 {
			t.Fatal("it never ends")
		}
		f, n, points := forgetOptions(o.Lake), 0, []string{}
		ingest.SetForgetHook(&f, func(point string) error {
			points = append(points, point)
			if n++; n > 3+kill%3 || kill == n-1 && kill < 3 {
				return errors.New("killed at " + point)
			}
			return nil
		})
		_, err := ingest.Forget(t.Context(), f)
		done = err == nil
		again := o
		again.Deep = true
		if r := run(t, newMemory(crowd(120)), again); r.Total.Messages != 0 {
			t.Fatalf("after %v: %+v", points, r.Total)
		}
		stones, err := ingest.Tombstones(t.Context(), f.Lake, f.Bucket)
		if err != nil || len(stones) != 1 || stones[0].Open == nil || kill > 2 && !slices.Equal(stones[0].Open.Days, []string{baseDay}) {
			t.Fatalf("after %v: %+v, %v", points, stones, err)
		}
	}
	if diff := cmp.Diff(want, segmentRows(t, o.Lake)); diff != "" {
		t.Errorf("%s", diff)
	}
	f := forgetOptions(o.Lake)
	if err := ingest.Forgotten(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	noTrace(t, o.Lake)
}

func TestForgetReprocessedRows(t *testing.T) {
	o, src := deadLake(t)
	reprocess(t, src, o, ingest.DeadBadTime)
	team := "team-harbour"
	anon := fakeAnon{key: "k1"}
	f := ingest.ForgetOptions{Lake: o.Lake, Who: schemas.Tombstone{Kind: schemas.ForgetTenant,
		Token:      anon.Token(schemas.KindForget, schemas.ForgetValue(schemas.ForgetTenant, []byte(team))),
		Pseudonyms: []string{anon.Token("tenant", []byte(team))}}}
	r, err := ingest.Forget(t.Context(), f)
	if err != nil || r.Rows != 5 || r.Files != 2 {
		t.Fatalf("%+v, %v", r, err)
	}
	_, again := deadLake(t)
	if r := reprocess(t, again, o); r.Rows != 0 {
		t.Errorf("reprocessing gives them back: %+v", r)
	}
	if _, err := publishAt(t, ingest.PublishOptions{Lake: o.Lake, Day: baseDay}); err == nil || !strings.Contains(err.Error(), "no request") {
		t.Errorf("%v", err)
	}
}

func TestBrokenTombstoneStopsIngest(t *testing.T) {
	o := options(t.TempDir())
	writeObject(t, o.Lake, "_forgotten/f_aaaaaaaaaaaaa.json", []byte(`{"kind":"tenant"`))
	if _, err := ingest.Run(t.Context(), newMemory(crowd(3)), o); err == nil || !strings.Contains(err.Error(), "not a tombstone") {
		t.Errorf("%v", err)
	}
}

// days of a log: n records a day from the first one on.
func dailyRecords(days, n int) []ingest.Record {
	var recs []ingest.Record
	for i := range days * n {
		start := base + float64(i/n)*86400 + float64(i%n)
		r := message(int64(i), litellm(i, fields{"startTime": start, "endTime": start + 2, "completionStartTime": start + 1}))
		r.Time = time.Unix(int64(start)+2, 0)
		recs = append(recs, r)
	}
	return recs
}

func TestExpireDropsOldSegments(t *testing.T) { eachStore(t, testExpireDropsOldSegments) }

func testExpireDropsOldSegments(t *testing.T) {
	o := options(newLake(t))
	o.RotateRows = 15 // some segments have rows of two days
	run(t, newMemory(dailyRecords(4, 40)), o)
	if _, err := publishAt(t, ingest.PublishOptions{Lake: o.Lake, Day: baseDay, K: 1, MinRequests: 1}); err != nil {
		t.Fatal(err)
	}
	x := ingest.ExpireOptions{Lake: o.Lake, Bucket: o.Bucket, Before: "2026-09-23", DryRun: true}
	dry, err := ingest.Expire(t.Context(), x)
	if err != nil || dry.Segments != 5 || len(segmentRows(t, o.Lake)) != 160 {
		t.Fatalf("%+v, %v", dry, err)
	}
	x.DryRun = false
	for kill := 1; ; kill++ { // killed again and again
		n := 0
		ingest.SetExpireHook(&x, func(string) error {
			if n++; n == 1+kill%4 {
				return errors.New("killed")
			}
			return nil
		})
		_, err := ingest.Expire(t.Context(), x)
		again := o
		again.Deep = kill%2 == 0
		if r := run(t, newMemory(dailyRecords(4, 40)), again); r.Total.Messages != 0 || r.Partitions[0].First != 160 {
			t.Fatalf("killed %d times: %+v", kill, r)
		}
		if err == nil {
			break
		}
		if kill > 60 {
			t.Fatal("it never ends")
		}
	}
	for _, r := range segmentRows(t, o.Lake) {
		if day := r.ArrivedAt.UTC().Format(time.DateOnly); day < x.Before {
			t.Errorf("a row of %s is left", day)
		}
	}
	// What is left is built as before; the day whose segments are gone is not built from late rows alone.
	if r, err := publishAt(t, ingest.PublishOptions{Lake: o.Lake, Day: "2026-09-23", K: 1, MinRequests: 1}); err != nil || r.Rows != 40 {
		t.Errorf("%+v, %v", r, err)
	}
	late := dailyRecords(5, 40)
	late[160].Value = litellm(7777, nil)
	run(t, newMemory(late), o)
	if _, err := publishAt(t, ingest.PublishOptions{Lake: o.Lake, Day: baseDay, K: 1, MinRequests: 1}); err == nil || !strings.Contains(err.Error(), "removed by retention") {
		t.Errorf("%v", err)
	}
	// Days that live keep their rows, and the last segment keeps its place.
	x.Before, x.Live = "2027-01-01", func(day string) bool { return day == "2026-09-25" }
	ingest.SetExpireHook(&x, func(string) error { return nil })
	r, err := ingest.Expire(t.Context(), x)
	if err != nil || len(objectsIn(t, o.Lake, "_segments", ".parquet")) != 1 || len(r.Kept) == 0 {
		t.Errorf("%+v, %v", r, err)
	}
	if r := run(t, newMemory(dailyRecords(5, 40)), o); r.Partitions[0].First != 200 || r.Total.Messages != 0 {
		t.Errorf("the log begins again: %+v", r)
	}
	if diff := cmp.Diff([]string{}, r.Files, cmpopts.IgnoreSliceElements(func(s string) bool { return strings.Contains(s, "_segments/") || strings.Contains(s, "_dead/") })); diff != "" {
		t.Errorf("%s", diff)
	}
}
