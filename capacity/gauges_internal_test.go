package capacity

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tailgate/schemas"
)

// Two replicas, one with two ranks; the second of them looked at half as often.
func TestGaugesOfReplicas(t *testing.T) {
	var samples []sample
	add := func(at time.Duration, target, metric string, values ...float64) {
		for _, v := range values {
			samples = append(samples, sample{at.Microseconds(), target, metric, v})
		}
	}
	for s := range 10 {
		at := time.Duration(s) * time.Second
		add(at, "a", schemas.MetricRequestsRunning, 3, 1)
		add(at, "a", schemas.MetricPreemptions, float64(s))
		add(at, schemas.TargetClient, schemas.MetricClientConnections, 8+2*float64(s))
		add(at, "a", schemas.MetricPrefixQueryTokens, 100*float64(s))
		add(at, "a", schemas.MetricPrefixHitTokens, 25*float64(s))
		if s%2 == 0 {
			add(at, "b", schemas.MetricRequestsRunning, 6)
			add(at, "b", schemas.MetricKVUsedRatio, .5)
		}
	}
	add(time.Hour, "a", schemas.MetricRequestsRunning, 1000) // outside
	want := Gauges{Running: 10, Waiting: -1, KVUsage: .5, GPUUtil: -1, Preemptions: 9, PrefixHits: .25, RSSBytes: -1, HBMBytes: -1, Connections: 18}
	if diff := cmp.Diff(want, gaugesOf(samples, 0, time.Minute)); diff != "" {
		t.Error(diff)
	}
	none := Gauges{-1, -1, -1, -1, -1, -1, -1, -1, -1}
	if diff := cmp.Diff(none, gaugesOf(nil, 0, time.Minute)); diff != "" {
		t.Error(diff)
	}
	if got, err := telemetryOf(t.TempDir()); err != nil || got != nil {
		t.Errorf("a run without telemetry: %v, %v", got, err)
	}
}

func TestMonotone(t *testing.T) {
	for _, tt := range []struct{ y, w, want []float64 }{
		{[]float64{1, 2, 3}, []float64{1, 1, 1}, []float64{1, 2, 3}},
		{[]float64{3, 1}, []float64{1, 3}, []float64{1.5, 1.5}},
		{[]float64{1, 4, 2, 3}, []float64{1, 1, 1, 1}, []float64{1, 3, 3, 3}},
	} {
		if diff := cmp.Diff(tt.want, monotone(tt.y, tt.w)); diff != "" {
			t.Errorf("%v: %s", tt.y, diff)
		}
	}
}

func TestInverse(t *testing.T) {
	m := matrix{{4, 1, .5}, {1, 3, .2}, {.5, .2, 2}}
	unit := m.times(m.inverse())
	for i := range unit {
		for j, x := range unit[i] {
			want := 0.0
			if i == j {
				want = 1
			}
			if x-want > 1e-12 || want-x > 1e-12 {
				t.Errorf("m·m⁻¹ at %d,%d is %v", i, j, x)
			}
		}
	}
}

func TestKnee(t *testing.T) {
	l := &Ladder{}
	for slots := 1; slots <= 256; slots *= 2 {
		l.Rungs = append(l.Rungs, Rung{Concurrency: slots, RequestsPerS: min(float64(slots)/10, 3.2)})
	}
	if k := l.knee(); k < 28 || k > 36 {
		t.Errorf("knee at %v, want 32", k)
	}
	if k := (&Ladder{Rungs: l.Rungs[:3]}).knee(); k != 0 {
		t.Errorf("a knee of three rungs: %v", k)
	}
}
