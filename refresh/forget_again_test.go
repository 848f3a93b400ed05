package refresh_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tailgate/anonymize"
	"tailgate/anonymize/audit"
	"tailgate/refresh"
	"tailgate/schemas"
)

// After somebody was forgotten, the job makes again what was removed, without him, and goes on as ever.
func TestRefreshAfterForget(t *testing.T) {
	log := &timedLog{}
	log.days(0, 2, 120)
	p := newPlace(t, log)
	for day := range 2 {
		p.good(day, refresh.OutcomeDone)
	}
	o := p.options(0)
	r, err := refresh.Forget(t.Context(), refresh.ForgetOptions{Root: o.Root, Lake: filepath.Join(p.root, refresh.LakeFolder), Keys: o.Keys,
		Kind: schemas.ForgetTenant, Name: []byte("team-quay"), Tool: "test"})
	if err != nil || len(r.Days) != 2 || len(r.Again) == 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	p.now = midnight(2).Add(3 * time.Hour)
	for day := range 2 {
		if _, err := os.Stat(filepath.Join(p.root, refresh.ProfileFolder(dayName(day)))); err == nil {
			t.Errorf("the profile of day %d is left", day)
		}
		s, err := p.run(day)
		if err != nil {
			t.Fatalf("%s: %v", dayName(day), err)
		}
		if len(s.Days) == 0 || s.Days[0].Rows != 80 {
			t.Errorf("%s: %s, %+v", dayName(day), s.Outcome, s.Days)
		}
		if _, err := os.Stat(filepath.Join(p.root, refresh.ProfileFolder(dayName(day)), schemas.ManifestName)); err != nil {
			t.Error(err)
		}
	}
	if s := p.good(1, refresh.OutcomeNoNewData); s.LastGoodDay != dayName(1) {
		t.Errorf("last good day %s", s.LastGoodDay)
	}
	tokens, err := o.Keys.Pseudonyms(t.Context(), anonymize.KindTenant, []byte("team-quay"))
	if err != nil {
		t.Fatal(err)
	}
	report, err := audit.Path(t.Context(), p.root, audit.Options{Canaries: [][]byte{[]byte(tokens[0].Token), []byte("team-quay")}})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range report.Findings {
		if f.What == audit.WhatCanary && !strings.HasPrefix(f.File, "lake/_forgotten/") {
			t.Errorf("%+v", f)
		}
	}
}
