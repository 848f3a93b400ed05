package synth_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tailgate/internal/testshared"
	"tailgate/schemas"
	"tailgate/synth"
	"tailgate/trace"
)

// A stream is rescaled to the rows, invariants and notes of the same trace in memory, whatever the number of threads.
func checkStream(t *testing.T, tr *trace.Trace, o synth.Options) {
	t.Helper()
	want := rescale(t, tr, o)
	o.Threads = 3
	got, err := synth.RescaleStream(context.Background(), oneAtATime(tr), o)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Close()
	// A walk that breaks off measures nothing and spoils nothing.
	enough := errors.New("enough")
	err = got.Out.Each(context.Background(), func(r *schemas.TraceRow) error {
		if r.Row == 3 {
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) || got.Invariants() != nil {
		t.Errorf("a walk that broke off: %v, %d invariants", err, len(got.Invariants()))
	}
	for walk := range 2 {
		loaded, err := got.Out.Load(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(want.Trace.Rows, loaded.Rows) {
			t.Fatalf("walk %d gives other rows:\n%.2000s", walk, cmp.Diff(want.Trace.Rows, loaded.Rows))
		}
		if diff := cmp.Diff(want.Trace.Notes, loaded.Notes); diff != "" {
			t.Errorf("walk %d:\n%s", walk, diff)
		}
		loaded.Meta.Lines = want.Trace.Meta.Lines
		if diff := cmp.Diff(want.Trace.Meta, loaded.Meta); diff != "" {
			t.Errorf("walk %d:\n%s", walk, diff)
		}
		if diff := cmp.Diff(want.Invariants, got.Invariants()); diff != "" {
			t.Errorf("walk %d:\n%s", walk, diff)
		}
	}
	if diff := cmp.Diff(want.Notes, got.Notes); diff != "" {
		t.Error(diff)
	}
}

// oneAtATime reads a trace as a file is read: each row lies where the row before lay.
func oneAtATime(tr *trace.Trace) *trace.Stream {
	last := len(tr.Rows) - 1
	s := trace.NewStream(tr.Meta, int64(len(tr.Rows)), tr.Rows[0].ScheduledUs, tr.Rows[last].ScheduledUs,
		func(_ context.Context, visit func(*schemas.TraceRow) error) error {
			var ids []int64
			var output int32
			var parent int64
			for i := range tr.Rows {
				row := tr.Rows[i]
				if row.HashIDs != nil {
					ids = append(ids[:0], row.HashIDs...)
					row.HashIDs = ids[:len(ids):len(ids)]
				}
				if row.OutputTokens != nil {
					output = *row.OutputTokens
					row.OutputTokens = &output
				}
				if row.Parent != nil {
					parent = *row.Parent
					row.Parent = &parent
				}
				if err := visit(&row); err != nil {
					return err
				}
			}
			return nil
		})
	s.Notes = tr.Notes
	return s
}

func TestStreamsGiveTheSameRows(t *testing.T) {
	tr := fixture(800)
	for _, mode := range []string{synth.ModeSession, synth.ModeWarp, synth.ModeIndependent, synth.ModeBalancer} {
		for _, f := range []float64{.3, 1, 1.5, 3.7} {
			if mode == synth.ModeBalancer && f > 1 {
				continue
			}
			t.Run(fmt.Sprint(mode, f), func(t *testing.T) {
				checkStream(t, tr, synth.Options{Scale: f, Mode: mode, Seed: 4})
			})
		}
	}
	checkStream(t, tr, synth.Options{TargetRate: .5, Seed: 4})
}

func TestStreamsOfPublicTraces(t *testing.T) {
	for name, f := range map[string]float64{
		"data/mooncake-fast25/conversation_trace.jsonl": 1.5, "data/mooncake-fast25/synthetic_trace.jsonl": .5, "data/azure-llm-2023/AzureLLMInferenceTrace_code.csv": 1.5,
	} {
		t.Run(name, func(t *testing.T) {
			tr, err := trace.Load(context.Background(), testshared.Path(t, name), trace.Options{Seed: 1})
			if err != nil {
				t.Fatal(err)
			}
			checkStream(t, tr, synth.Options{Scale: f, Seed: 1})
		})
	}
}
