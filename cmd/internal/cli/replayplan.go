package cli

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tailgate/replay"
	"tailgate/schemas"
	"tailgate/synth"
	"tailgate/trace"
)

// planFlags say what is sent and when.
type planFlags struct {
	tf          traceFlags
	shape       reshapeFlags
	leadIn      time.Duration
	warmup      time.Duration
	requestRate rateFlag
	burstiness  float64
}

func (f *planFlags) addPlan(cmd *cobra.Command) {
	f.tf.add(cmd)
	f.shape.add(cmd)
	fl := cmd.Flags()
	fl.DurationVar(&f.leadIn, "lead-in", 0, "the trace just before the window, replayed as warm-up")
	fl.DurationVar(&f.warmup, "warmup", 0, "rows scheduled before this are warm-up and are not judged")
	fl.Var(&f.requestRate, "request-rate", "send the trace's rows at this rate instead of at their timestamps, such as 30/s")
	fl.Float64Var(&f.burstiness, "burstiness", 1, "with --request-rate: Gamma shape of the gaps; 1 = Poisson, below 1 burstier")
}

// validatePlan reports every fault that needs no trace.
func (f *planFlags) validatePlan(cmd *cobra.Command) error {
	var errs []error
	errs = append(errs, f.shape.validate(f.tf.seed))
	if f.leadIn != 0 && f.shape.window == "" {
		errs = append(errs, errors.New("--lead-in needs --window"))
	}
	if f.leadIn < 0 || f.warmup < 0 {
		errs = append(errs, errors.New("--lead-in and --warmup must not be negative"))
	}
	for _, flag := range []string{"scale", "target-rate", "mode", "jitter"} {
		if f.requestRate > 0 && cmd.Flags().Changed(flag) {
			errs = append(errs, fmt.Errorf("--%s and --request-rate contradict each other", flag))
		}
	}
	if f.requestRate == 0 && cmd.Flags().Changed("burstiness") {
		errs = append(errs, errors.New("--burstiness needs --request-rate"))
	}
	return allFaults(errs...)
}

// planned is a trace made ready to send.
type planned struct {
	source     *trace.Trace // as read
	scale      float64      // times the rate of the trace
	plan       *replay.Plan
	invariants []schemas.Invariant
	notes      []string
}

// make reads, cuts and scales the trace.
func (f *planFlags) make(ctx context.Context, a *app, path string) (*planned, error) {
	source, err := a.loadChecked(ctx, path, &f.tf)
	if err != nil {
		return nil, err
	}
	p := &planned{source: source, scale: 1}
	t, length, err := a.cut(source, &f.shape.cutFlags, f.leadIn, f.tf.seed)
	if err != nil {
		return nil, err
	}
	p.notes = t.Notes
	if t, err = f.rescale(ctx, t, p); err != nil {
		return nil, err
	}
	lead := f.leadIn
	if f.shape.mode == synth.ModeWarp { // the window is as much shorter as its rows come sooner
		lead, length = time.Duration(float64(lead)/p.scale), time.Duration(float64(length)/p.scale)
	}
	p.plan = &replay.Plan{Rows: t.Rows, BlockSize: t.Meta.BlockSize, Warmup: max(lead, f.warmup), Length: length}
	return p, nil
}

func (f *planFlags) rescale(ctx context.Context, t *trace.Trace, p *planned) (*trace.Trace, error) {
	if f.requestRate > 0 {
		return f.atRate(t)
	}
	if f.shape.targetRate == 0 && f.shape.mode != synth.ModeModel && f.shape.scaleIsOne() {
		return t, nil
	}
	res, err := f.shape.rescaleTrace(ctx, t, f.tf.seed)
	if err != nil {
		return nil, err
	}
	p.invariants, p.scale = res.Invariants, res.Scale
	p.notes = append(p.notes, res.Notes...)
	return res.Trace, nil
}

// atRate gives the rows of t new stamps, in their order.
func (f *planFlags) atRate(t *trace.Trace) (*trace.Trace, error) {
	o := synth.ArrivalOptions{Kind: synth.Poisson, Rate: float64(f.requestRate), N: int64(len(t.Rows)), Seed: f.tf.seed}
	if f.burstiness != 1 {
		o.Kind, o.Burstiness = synth.Gamma, f.burstiness
	}
	at, err := synth.Arrivals(o)
	if err != nil {
		return nil, err
	}
	out := *t
	out.Rows = append([]schemas.TraceRow(nil), t.Rows...)
	for i := range out.Rows {
		out.Rows[i].ScheduledUs = at[i].Microseconds()
	}
	return &out, nil
}

// planSummary is what --dry-run prints.
type planSummary struct {
	Trace         string              `json:"trace"`
	Format        string              `json:"format"`
	Unit          string              `json:"timestamp_unit"`
	Requests      int                 `json:"requests"`
	DurationMs    float64             `json:"duration_ms"` // from the first to the last send
	RequestRate   float64             `json:"request_rate"`
	PeakRate10s   float64             `json:"peak_rate_10s"`
	InputTokens   int64               `json:"input_tokens"`
	OutputTokens  int64               `json:"output_tokens"`
	UnknownOutput int                 `json:"unknown_output"`
	LongestPrompt int32               `json:"longest_prompt"`
	BlockSize     int                 `json:"block_size"`
	Output        string              `json:"output"`
	Invariants    []schemas.Invariant `json:"invariants,omitempty"`
	Notes         []string            `json:"notes,omitempty"`
	OffsetsMs     []float64           `json:"first_offsets_ms"`
}

const offsetsShown = 5

func (p *planned) summary(output string) planSummary {
	rows := p.plan.Rows
	s := planSummary{Trace: p.source.Meta.Name, Format: p.source.Meta.Format, Unit: p.source.Meta.Unit, Requests: len(rows),
		BlockSize: p.plan.BlockSize, Output: output, Invariants: p.invariants, Notes: p.notes}
	for i := range rows {
		r := &rows[i]
		s.InputTokens += int64(r.InputTokens)
		s.LongestPrompt = max(s.LongestPrompt, r.InputTokens)
		if r.OutputTokens == nil {
			s.UnknownOutput++
		} else {
			s.OutputTokens += int64(*r.OutputTokens)
		}
		if i < offsetsShown {
			s.OffsetsMs = append(s.OffsetsMs, float64(r.ScheduledUs)/1e3)
		}
	}
	if len(rows) > 1 {
		span := rows[len(rows)-1].ScheduledUs - rows[0].ScheduledUs
		s.DurationMs = float64(span) / 1e3
		if span > 0 {
			s.RequestRate = float64(len(rows)-1) / (float64(span) / 1e6)
		}
		s.PeakRate10s = peakRate(rows, 10*time.Second)
	}
	return s
}

// peakRate is the highest mean rate over any window of the given length that starts at a send.
func peakRate(rows []schemas.TraceRow, window time.Duration) float64 {
	most := 0
	for i := range rows {
		end := rows[i].ScheduledUs + window.Microseconds()
		n := sort.Search(len(rows)-i, func(k int) bool { return rows[i+k].ScheduledUs >= end })
		most = max(most, n)
	}
	return float64(most) / window.Seconds()
}

func (s planSummary) writeText(a *app) {
	fmt.Fprintf(a.stdout, "plan: %s (%s, timestamps in %s)\n", s.Trace, s.Format, s.Unit)
	fmt.Fprintf(a.stdout, "  %d requests over %s: %.4g/s, peak %.4g/s over 10 s\n", s.Requests,
		time.Duration(s.DurationMs*float64(time.Millisecond)).Round(time.Millisecond), s.RequestRate, s.PeakRate10s)
	fmt.Fprintf(a.stdout, "  %d input tokens (longest prompt %d), %d output tokens, output %s\n", s.InputTokens, s.LongestPrompt, s.OutputTokens, s.Output)
	if s.UnknownOutput > 0 {
		fmt.Fprintf(a.stdout, "  %d rows without output length will ask for the median of their class\n", s.UnknownOutput)
	}
	var first []string
	for _, ms := range s.OffsetsMs {
		first = append(first, fmt.Sprintf("%gms", ms))
	}
	fmt.Fprintf(a.stdout, "  first sends at %s\n", strings.Join(first, ", "))
	for _, n := range s.Notes {
		fmt.Fprintf(a.stdout, "  %s\n", n)
	}
	writeInvariants(a.stdout, s.Invariants)
}
