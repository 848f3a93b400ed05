package trace_test

import (
	"math"
	"path/filepath"
	"testing"
	"time"

	"tailgate/internal/testshared"
	"tailgate/schemas"
	"tailgate/trace"
)

func load(t *testing.T, name string, o trace.Options) *trace.Trace {
	t.Helper()
	tr, err := trace.Load(t.Context(), testshared.Path(t, name), o)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// idc is the ratio of sample variance to mean of the counts in whole windows of w.
func idc(rows []schemas.TraceRow, w time.Duration) float64 {
	counts := make([]float64, rows[len(rows)-1].ScheduledUs/w.Microseconds())
	for i := range rows {
		if k := rows[i].ScheduledUs / w.Microseconds(); k < int64(len(counts)) {
			counts[k]++
		}
	}
	var sum, sq float64
	for _, c := range counts {
		sum, sq = sum+c, sq+c*c
	}
	mean := sum / float64(len(counts))
	n := float64(len(counts))
	return (sq - n*mean*mean) / (n - 1) / mean
}

func near(t *testing.T, what string, got *float64, want, tol float64) {
	t.Helper()
	if got == nil {
		t.Errorf("%s is null", what)
	} else if math.Abs(*got-want) > tol {
		t.Errorf("%s = %v, want %v ± %v", what, *got, want, tol)
	}
}

func TestMooncakeConversation(t *testing.T) {
	const name = "data/mooncake-fast25/conversation_trace.jsonl"
	raw := load(t, name, trace.Options{KeepQuantum: true, Seed: 1})
	i := raw.Info()
	if i.Rows != 12031 || i.SpanUs != 3_536_999_000 || i.DistinctStamps != 1180 || i.MaxTied != 28 {
		t.Errorf("raw: rows %d span %d distinct %d tied %d", i.Rows, i.SpanUs, i.DistinctStamps, i.MaxTied)
	}
	near(t, "raw CV", i.IATCV, 3.03, 0.01)
	near(t, "block hit", i.BlockHit, 0.3664, 1e-4)
	near(t, "token hit", i.TokenHit, 0.3736, 1e-4)
	if i.QuantumUs != 3_000_000 || i.Spread {
		t.Errorf("quantum %d spread %v", i.QuantumUs, i.Spread)
	}
	if i.Sessions != 7373 || i.MaxTurns != 43 || i.SessionsFrom != "prefix" {
		t.Errorf("sessions %d, at most %d turns, from %s", i.Sessions, i.MaxTurns, i.SessionsFrom)
	}
	if i.Input.Mean == nil || *i.Input.P50 != 6909 || *i.Input.Max != 126195 || *i.Output.P99 != 1120 {
		t.Errorf("lengths %+v %+v", i.Input, i.Output)
	}
	if faults := raw.Check(); faults != nil {
		t.Errorf("%d faults, the first %v", len(faults), faults[0])
	}
	for seed := range uint64(4) {
		tr := load(t, name, trace.Options{Seed: seed})
		i := tr.Info()
		near(t, "CV", i.IATCV, 1.01, 0.02)
		got := idc(tr.Rows, time.Minute)
		near(t, "IDC(60 s)", &got, 2.95, 0.05)
		if !i.Spread || tr.LengthUs() != 3_540_000_000 || i.Sessions != 7373 {
			t.Errorf("spread %v length %d sessions %d", i.Spread, tr.LengthUs(), i.Sessions)
		}
	}
}

func TestMooncakeSyntheticHasNoQuantum(t *testing.T) {
	i := load(t, "data/mooncake-fast25/synthetic_trace.jsonl", trace.Options{}).Info()
	if i.Rows != 3993 || i.QuantumUs != 0 || i.Spread || i.Sessions != 2211 {
		t.Errorf("rows %d quantum %d sessions %d", i.Rows, i.QuantumUs, i.Sessions)
	}
	near(t, "block hit", i.BlockHit, 0.64, 0.005)
}

func TestAzure2023(t *testing.T) {
	for name, want := range map[string]struct {
		rows       int64
		span, cv   float64
		inMax, p50 int32
	}{
		"AzureLLMInferenceTrace_conv.csv": {19366, 3502, 1.094, 14050, 1020},
		"AzureLLMInferenceTrace_code.csv": {8819, 3436, 13.15, 7437, 1469},
	} {
		i := load(t, "data/azure-llm-2023/"+name, trace.Options{}).Info()
		span := float64(i.SpanUs) / 1e6
		near(t, name+" span", &span, want.span, 1)
		near(t, name+" CV", i.IATCV, want.cv, 0.01)
		if i.Rows != want.rows || *i.Input.Max != want.inMax || *i.Input.P50 != want.p50 || i.QuantumUs != 0 || i.UnknownOutput != 0 {
			t.Errorf("%s: %+v", name, i)
		}
		if i.StartedAt == nil || i.StartedAt.Format("2006-01-02 15") != "2023-11-16 18" {
			t.Errorf("%s: started at %v", name, i.StartedAt)
		}
	}
}

func TestBurstGPTFixture(t *testing.T) {
	tr := load(t, "data/synthetic-fixtures/burstgpt_schema.csv", trace.Options{Seed: 1})
	i := tr.Info()
	if i.Rows != 2000 || i.QuantumUs != 1_000_000 || !i.Spread || i.Failed == 0 || len(i.Models) != 2 || len(i.Classes) != 2 {
		t.Errorf("%+v", i)
	}
}

// TestPublicTracesForOtherTools: the exports of the public traces hold to the rules of the tools that read them,
// and read back with the same schedule, lengths and, where the format has ids, the same sharing.
func TestPublicTracesForOtherTools(t *testing.T) {
	for name, formats := range map[string][]string{
		"data/mooncake-fast25/conversation_trace.jsonl":       {trace.FormatMooncake, trace.FormatVLLM, trace.FormatBailian, trace.FormatAIPerf, trace.FormatParquet},
		"data/mooncake-fast25/synthetic_trace.jsonl":          {trace.FormatMooncake, trace.FormatVLLM, trace.FormatBailian, trace.FormatAIPerf, trace.FormatParquet},
		"data/azure-llm-2023/AzureLLMInferenceTrace_conv.csv": {trace.FormatMooncake, trace.FormatBurstGPT, trace.FormatAIPerf, trace.FormatParquet},
		"data/azure-llm-2023/AzureLLMInferenceTrace_code.csv": {trace.FormatMooncake, trace.FormatBurstGPT, trace.FormatAIPerf, trace.FormatParquet},
		"data/synthetic-fixtures/bailian_schema.jsonl":        {trace.FormatMooncake, trace.FormatVLLM, trace.FormatBailian, trace.FormatAIPerf, trace.FormatParquet},
		"data/synthetic-fixtures/burstgpt_schema.csv":         {trace.FormatMooncake, trace.FormatBurstGPT, trace.FormatParquet},
	} {
		t.Run(filepath.Base(name), func(t *testing.T) {
			tr := load(t, name, trace.Options{Seed: 1})
			for _, format := range formats {
				path := filepath.Join(t.TempDir(), "out")
				if err := tr.WriteFile(path, format, "v1"); err != nil {
					t.Fatal(err)
				}
				back, err := trace.Load(t.Context(), path, trace.Options{})
				if err != nil {
					t.Fatalf("%s: %v", format, err)
				}
				if len(back.Rows) != len(tr.Rows) {
					t.Fatalf("%s: %d rows, were %d", format, len(back.Rows), len(tr.Rows))
				}
				for i := range tr.Rows {
					a, b := &tr.Rows[i], &back.Rows[i]
					if a.ScheduledUs != b.ScheduledUs || a.InputTokens != b.InputTokens ||
						a.OutputTokens != nil && *a.OutputTokens != *b.OutputTokens || len(a.HashIDs) != len(b.HashIDs) && format != trace.FormatBurstGPT {
						t.Fatalf("%s: row %d is %+v, was %+v", format, i, *b, *a)
					}
				}
				// A partial last block that two rows share is the one thing that aiperf gives up.
				if was, is := tr.Info().BlockHit, back.Info().BlockHit; is != nil && *was != *is && (format != trace.FormatAIPerf || *was-*is > 0.005) {
					t.Errorf("%s: block hit %v, was %v", format, *is, *was)
				}
				if format == trace.FormatAIPerf {
					checkAIPerf(t, tr, tr.Meta.BlockSize)
				}
			}
		})
	}
}
