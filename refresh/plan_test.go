package refresh_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"tailgate/ingest"
	"tailgate/refresh"
)

// keptLog is a log whose records go after a time.
type keptLog struct {
	*timedLog
	keeps time.Duration
}

func (l keptLog) Retention(context.Context) (time.Duration, bool) { return l.keeps, true }

// The plan tells what waits and what retention leaves, and refuses a night that comes too late; it changes nothing.
func TestPlan(t *testing.T) {
	log := &timedLog{}
	log.days(0, 2, 200)
	p := newPlace(t, log)
	p.extra = noDrift
	if _, err := p.run(0); err != nil {
		t.Fatal(err)
	}
	before := p.tables()
	for _, tt := range []struct {
		keeps   time.Duration
		refused string
	}{{72 * time.Hour, ""}, {25 * time.Hour, "retention"}} { // the oldest unread record is 25 h 20 min old
		o := p.options(1)
		o.Open = func(context.Context) (ingest.Source, error) { return keptLog{log, tt.keeps}, nil }
		plan, err := refresh.MakePlan(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if plan.Waiting == 0 || plan.From != dayName(0) || plan.CPUHours == nil || plan.DiskNeed == nil || plan.Partitions[0].RetentionLeft == nil {
			t.Errorf("%+v", plan)
		}
		err = plan.Refusal()
		if (err == nil) != (tt.refused == "") || err != nil && !strings.Contains(err.Error(), tt.refused) {
			t.Errorf("kept for %v: %v, left %v h", tt.keeps, err, *plan.Partitions[0].RetentionLeft)
		}
		var text strings.Builder
		if err := plan.WriteText(&text); err != nil || !strings.Contains(text.String(), "at the rates of "+dayName(0)) {
			t.Errorf("%v\n%s", err, text.String())
		}
	}
	o := p.options(1)
	o.Config.Retention.BlockKeys = time.Minute
	plan, err := refresh.MakePlan(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := plan.WriteText(&text); err != nil || len(plan.Retention.DestroyedKeys) == 0 || !strings.Contains(text.String(), "key to be destroyed: "+plan.Retention.DestroyedKeys[0]) {
		t.Errorf("%v\n%s", err, text.String())
	}
	if _, err := o.Keys.Load(t.Context(), plan.Retention.DestroyedKeys[0]); err != nil {
		t.Errorf("the plan has destroyed a key: %v", err)
	}
	after := p.tables()
	if len(after) != len(before) {
		t.Error("the plan has changed something")
	}
}
