package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"tailgate/internal/chart"
	"tailgate/replay"
	"tailgate/schemas"
)

// planSummary is what --dry-run prints.
type planSummary struct {
	Trace         string              `json:"trace"`
	Format        string              `json:"format"`
	Unit          string              `json:"timestamp_unit"`
	Requests      int                 `json:"requests"`
	DurationMs    float64             `json:"duration_ms"` // from the first to the last send
	RequestRate   float64             `json:"request_rate"`
	PeakRate10s   float64             `json:"peak_rate_10s"`
	RateCurve     []float64           `json:"rate_curve"` // mean rates of equal parts of the schedule
	InputTokens   int64               `json:"input_tokens"`
	OutputTokens  int64               `json:"output_tokens"`
	UnknownOutput int                 `json:"unknown_output"`
	LongestPrompt int32               `json:"longest_prompt"`
	LongestTotal  int64               `json:"longest_total"` // prompt and output
	BlockSize     int                 `json:"block_size"`
	Output        string              `json:"output"`
	Phases        map[string]int      `json:"phases"` // rows
	Shard         string              `json:"shard,omitempty"`
	InFlight      inFlight            `json:"in_flight"`
	Refused       refusals            `json:"refused"`
	Invariants    []schemas.Invariant `json:"invariants,omitempty"`
	Notes         []string            `json:"notes,omitempty"`
	OffsetsMs     []float64           `json:"first_offsets_ms"`
}

// inFlight is how many requests would be in flight at once, were the target as fast as assumed (Little's law for the
// mean; the peak is counted).
type inFlight struct {
	AssumedTTFTMs float64 `json:"assumed_ttft_ms"`
	AssumedTPOTMs float64 `json:"assumed_tpot_ms"`
	Mean          float64 `json:"mean"`
	Peak          int     `json:"peak"`
}

// refusals are rows that the target would refuse.
type refusals struct {
	Context int64 `json:"context"` // tokens of the model's context; 0 = not told
	TooLong int   `json:"too_long"`
	NoInput int   `json:"no_input"`
}

const (
	offsetsShown = 5
	curveParts   = 60
	assumedTTFT  = 500 * time.Millisecond
	assumedTPOT  = 30 * time.Millisecond
)

// dry prints the plan and sends nothing. A target that is down is no fault here: its context is then not known.
func (f *replayFlags) dry(ctx context.Context, a *app, p *planned) error {
	s := p.summary(f.output)
	if f.part.Count > 1 {
		s.Shard = f.part.String()
	}
	if len(f.URLs) > 0 && !f.virtual {
		client, err := f.client(a, p)
		if err != nil {
			return err
		}
		defer client.Close()
		told, err := client.Describe(ctx)
		if err != nil {
			s.Notes = append(s.Notes, "the target's context is not known: "+strings.Split(err.Error(), "\n")[0])
		}
		s.refused(p.plan, contextOf(told, f.model))
		s.Notes = append(s.Notes, contradictions(f.labels, told)...)
	}
	if f.asJSON {
		return a.printJSON(s)
	}
	s.writeText(a)
	return nil
}

// contextOf is the context of the model that is asked for, in tokens; 0 = not told.
func contextOf(told map[string]any, model string) int64 {
	targets, _ := told["targets"].([]any)
	for _, t := range targets {
		about, _ := t.(map[string]any)
		models, _ := about["models"].([]any)
		for _, m := range models {
			entry, _ := m.(map[string]any)
			if id, _ := entry["id"].(string); model != "" && id != model {
				continue
			}
			if n, ok := entry["max_model_len"].(float64); ok {
				return int64(n)
			}
		}
	}
	return 0
}

func (s *planSummary) refused(p *replay.Plan, context int64) {
	s.Refused.Context = context
	for r := range p.All() {
		total := int64(r.InputTokens)
		if r.OutputTokens != nil {
			total += int64(*r.OutputTokens)
		}
		if context > 0 && total > context {
			s.Refused.TooLong++
		}
	}
}

func (p *planned) summary(output string) planSummary {
	at := p.stamps()
	s := planSummary{Trace: p.meta.Name, Format: p.meta.Format, Unit: p.meta.Unit, Requests: len(at),
		BlockSize: p.plan.BlockSize, Output: output, Phases: map[string]int{}, Invariants: p.invariants, Notes: p.notes}
	took := make([]time.Duration, 0, len(at)) // of each request, assumed
	for r := range p.plan.All() {
		s.InputTokens += int64(r.InputTokens)
		s.LongestPrompt = max(s.LongestPrompt, r.InputTokens)
		total := int64(r.InputTokens)
		if r.OutputTokens == nil {
			s.UnknownOutput++
		} else {
			s.OutputTokens += int64(*r.OutputTokens)
			total += int64(*r.OutputTokens)
		}
		s.LongestTotal = max(s.LongestTotal, total)
		if r.InputTokens == 0 {
			s.Refused.NoInput++
		}
		s.Phases[p.plan.Phase(time.Duration(r.ScheduledUs)*time.Microsecond)]++
		took = append(took, assumedTTFT+time.Duration(total-int64(r.InputTokens))*assumedTPOT)
	}
	for _, t := range at[:min(offsetsShown, len(at))] {
		s.OffsetsMs = append(s.OffsetsMs, float64(t.Microseconds())/1e3)
	}
	if len(at) > 1 {
		span := at[len(at)-1] - at[0]
		s.DurationMs = float64(span.Microseconds()) / 1e3
		if span > 0 {
			s.RequestRate = float64(len(at)-1) / span.Seconds()
			s.RateCurve = rateCurve(at, span)
		}
		s.PeakRate10s = peakRate(at, 10*time.Second)
	}
	s.InFlight = assumedInFlight(at, took)
	return s
}

// rateCurve is the mean rate of equal parts of the schedule.
func rateCurve(at []time.Duration, span time.Duration) []float64 {
	out := make([]float64, curveParts)
	for _, t := range at {
		out[min(int(float64(t-at[0])/float64(span)*curveParts), curveParts-1)]++
	}
	for k := range out {
		out[k] /= span.Seconds() / curveParts
	}
	return out
}

// peakRate is the highest mean rate over any window of the given length that starts at a send.
func peakRate(at []time.Duration, window time.Duration) float64 {
	most, end := 0, 0
	for i := range at {
		for end < len(at) && at[end] < at[i]+window {
			end++
		}
		most = max(most, end-i)
	}
	return float64(most) / window.Seconds()
}

// assumedInFlight counts the requests that overlap when each takes the assumed time.
func assumedInFlight(at, took []time.Duration) inFlight {
	f := inFlight{AssumedTTFTMs: float64(assumedTTFT.Milliseconds()), AssumedTPOTMs: float64(assumedTPOT.Milliseconds())}
	ends := make([]time.Duration, len(at))
	var busy time.Duration
	for i := range at {
		ends[i] = at[i] + took[i]
		busy += took[i]
	}
	slices.Sort(ends)
	over := 0
	for i := range at {
		for ends[over] <= at[i] {
			over++
		}
		f.Peak = max(f.Peak, i+1-over)
	}
	if n := len(at); n > 1 && at[n-1] > at[0] {
		f.Mean = float64(busy) / float64(at[n-1]-at[0])
	}
	return f
}

var outputModes = map[string]string{
	replay.OutputNatural: "natural (the trace's length is a cap)",
	replay.OutputPinned:  "pinned (exactly the trace's length, the end-of-sequence token masked)",
}

func (s planSummary) writeText(a *app) {
	say := func(format string, args ...any) { fmt.Fprintf(a.stdout, "  "+format+"\n", args...) }
	fmt.Fprintf(a.stdout, "plan: %s (%s, timestamps in %s)\n", s.Trace, s.Format, s.Unit)
	if s.Shard != "" {
		say("shard %s of the plan", s.Shard)
	}
	say("%d requests over %s: %.4g/s, peak %.4g/s over 10 s", s.Requests,
		time.Duration(s.DurationMs*float64(time.Millisecond)).Round(time.Millisecond), s.RequestRate, s.PeakRate10s)
	if len(s.RateCurve) > 0 {
		say("rate %s up to %.4g/s", chart.Sparkline(s.RateCurve), slices.Max(s.RateCurve))
	}
	if len(s.Phases) > 1 {
		var parts []string
		for _, phase := range []string{schemas.PhaseWarmup, schemas.PhaseMeasure, schemas.PhaseBurst, schemas.PhaseDrain} {
			if n := s.Phases[phase]; n > 0 {
				parts = append(parts, fmt.Sprintf("%s %d", phase, n))
			}
		}
		say("phases: %s", strings.Join(parts, ", "))
	}
	mode := s.Output
	if text, ok := outputModes[mode]; ok {
		mode = text
	}
	say("%d input tokens (longest prompt %d, with its output up to %d), %d output tokens, output %s", s.InputTokens, s.LongestPrompt, s.LongestTotal, s.OutputTokens, mode)
	say("in flight, were the first token to take %g ms and each further one %g ms: mean %.4g, peak %d",
		s.InFlight.AssumedTTFTMs, s.InFlight.AssumedTPOTMs, s.InFlight.Mean, s.InFlight.Peak)
	if s.UnknownOutput > 0 {
		say("%d rows without output length will ask for the median of their class", s.UnknownOutput)
	}
	if s.Refused.Context > 0 {
		say("the model's context is %d tokens: %d rows are longer and will be refused", s.Refused.Context, s.Refused.TooLong)
	}
	if s.Refused.NoInput > 0 {
		say("%d rows have no input tokens: most targets refuse an empty prompt", s.Refused.NoInput)
	}
	var first []string
	for _, ms := range s.OffsetsMs {
		first = append(first, fmt.Sprintf("%gms", ms))
	}
	say("first sends at %s", strings.Join(first, ", "))
	for _, n := range s.Notes {
		say("%s", n)
	}
	writeInvariants(a.stdout, s.Invariants)
}
