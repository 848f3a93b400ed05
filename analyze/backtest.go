package analyze

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"tailgate/internal/fault"
	"tailgate/schemas"
)

// BacktestName is the file that a backtest writes into the run's folder.
const BacktestName = "backtest.json"

// BacktestOptions say what a replay is held against.
type BacktestOptions struct {
	Day   string  // UTC day of the lake, 2006-01-02
	Edges []int64 // of input lengths, ascending; empty = 0, 1024, 8192
	// Start is the wall time of the schedule's zero in production, for runs that do not tell it. Zero = the run tells.
	Start      time.Time
	Tolerance  float64 // by how much a p99 may differ; 0 = 0.15
	Confidence float64 // of each interval, two-sided; 0 = 0.95
	Resamples  int     // of the bootstrap; 0 = 2000, fewer on very large runs
	Seed       uint64
}

// Verdicts of a backtest and of its cells.
const (
	Calibrated    = "calibrated"
	NotCalibrated = "not_calibrated"
	CannotTell    = "cannot_tell"
)

// Backtested is a replay at 1.0x held against the latencies that production had. Its fields are its JSON.
type Backtested struct {
	Definition string   `json:"definition"`
	RunID      string   `json:"run_id"`
	Day        string   `json:"day"`
	From       string   `json:"from"` // wall time of the first request that is compared, UTC
	To         string   `json:"to"`   // of the last
	View       string   `json:"view"` // which requests of the lake were replayed: engine or client
	Verdict    string   `json:"verdict"`
	Valid      bool     `json:"valid"`
	Invalid    []string `json:"invalid"`
	Unchecked  []string `json:"unchecked"`
	Reasons    []string `json:"reasons"`
	Tolerance  float64  `json:"tolerance"`
	Confidence float64  `json:"confidence"`
	// Factors are replay ÷ production at p99 over all requests, for what a capacity found by such replays must carry.
	Factors []Factor       `json:"factors"`
	Worst   *Factor        `json:"worst"` // the p99 that is furthest off among those not calibrated; null = none
	Cells   []BacktestCell `json:"cells"` // all requests first
}

// Factor is a ratio of p99s.
type Factor struct {
	By     Tuple  `json:"by"`
	Metric string `json:"metric"`
	Ratio  Figure `json:"ratio"`
	Lower  Figure `json:"lower"`
	Upper  Figure `json:"upper"`
}

// BacktestCell is one bucket.
type BacktestCell struct {
	By         Tuple   `json:"by"`
	Replay     int     `json:"replay"`     // requests scheduled
	Production int     `json:"production"` // requests of the log
	ReplayOK   Figure  `json:"replay_success_rate"`
	ProdOK     Figure  `json:"production_success_rate"` // without those that their client cancelled
	Ratios     []Ratio `json:"ratios"`
}

// Ratio compares one percentile of one metric, over the requests that were answered.
type Ratio struct {
	Metric     string  `json:"metric"` // ttft_ms, e2e_ms
	Percentile float64 `json:"percentile"`
	ReplayN    int     `json:"replay_n"`
	ProdN      int     `json:"production_n"`
	Production Figure  `json:"production"` // ms
	Replay     Figure  `json:"replay"`     // ms, from the time of sending
	Ratio      Figure  `json:"ratio"`      // replay ÷ production
	Lower      Figure  `json:"lower"`
	Upper      Figure  `json:"upper"`
	P          Figure  `json:"p"`       // of a ratio of 1, two-sided; at p99 after Holm over all of them
	Verdict    string  `json:"verdict"` // at p99; "" elsewhere
	Reason     string  `json:"reason"`
}

// Validate reports every fault of the options.
func (o BacktestOptions) Validate() error {
	var errs []error
	if _, err := time.Parse(time.DateOnly, o.Day); err != nil {
		errs = append(errs, fmt.Errorf("day %q must look like 2006-01-02", o.Day))
	}
	if !(o.Tolerance >= 0 && o.Tolerance < 1) {
		errs = append(errs, fmt.Errorf("tolerance must lie between 0 and 1, not %v", o.Tolerance))
	}
	errs = append(errs, checkResampling(o.Confidence, o.Resamples))
	for i, e := range o.Edges {
		if e < 0 || i > 0 && e <= o.Edges[i-1] {
			errs = append(errs, fmt.Errorf("edges of input lengths must ascend from 0: %v", o.Edges))
			break
		}
	}
	return fault.Mark(errors.Join(errs...), fault.Usage, "")
}

func (o BacktestOptions) withDefaults() BacktestOptions {
	if len(o.Edges) == 0 {
		o.Edges = []int64{0, 1024, 8192}
	}
	if o.Tolerance == 0 {
		o.Tolerance = .15
	}
	if o.Confidence == 0 {
		o.Confidence = .95
	}
	return o
}

// Backtest holds a replay against the day of the lake in the file at path, over the window that was replayed. Runs that are not
// a replay of that day at 1.0x are faults of kind Usage; an invalid run is compared all the same, and says so.
func Backtest(ctx context.Context, d *Data, path string, o BacktestOptions) (*Backtested, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	run, err := runToTest(d, o)
	if err != nil {
		return nil, err
	}
	prod, err := readWindow(ctx, path, run)
	if err != nil {
		return nil, err
	}
	out := &Backtested{Definition: schemas.Definition, RunID: run.id, Day: o.Day, From: stamp(run.from), To: stamp(run.to), Tolerance: o.Tolerance,
		Confidence: o.Confidence, Invalid: []string{}, Unchecked: append([]string{}, d.Unchecked...), Reasons: []string{}, Factors: []Factor{}}
	if out.View, err = prod.match(run); err != nil {
		return nil, err
	}
	reasons, _ := run.v.validity(0)
	out.Invalid = append(out.Invalid, reasons...)
	out.Valid = len(out.Invalid) == 0
	for _, c := range pairCells(run, prod, o.Edges) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		out.Cells = append(out.Cells, c.compare(run, prod, o))
	}
	out.settle()
	return out, nil
}

func stamp(us int64) string { return time.UnixMicro(us).UTC().Format("2006-01-02T15:04:05.000Z") }

// backtested are what is compared, with the columns of the lake.
var backtested = []metricName{{ttftSent, "ttft_ms", "ttft"}, {e2eSent, "e2e_ms", "e2e"}}

// compare fills one cell.
func (c backtestCell) compare(run *testedRun, prod *window, o BacktestOptions) BacktestCell {
	out := BacktestCell{By: c.by, Replay: len(c.rows), Production: len(c.prod), ReplayOK: unknown, ProdOK: prod.success(c.prod)}
	ok := 0
	for _, i := range c.rows {
		if run.v.d.ok(i) {
			ok++
		}
	}
	if len(c.rows) > 0 {
		out.ReplayOK = Figure(float64(ok) / float64(len(c.rows)))
	}
	for k, m := range backtested {
		a, atA := prod.values(c.prod, k)
		b, atB := run.values(c.rows, m.metric)
		var boot *blocks
		if len(a) > 0 && len(b) > 0 {
			boot = newBlocks(a, atA, b, atB, o.Resamples, o.Seed)
		}
		for _, q := range comparedPercentiles {
			out.Ratios = append(out.Ratios, ratioOf(boot, m.json, q, len(a), len(b), o.Confidence))
		}
	}
	return out
}

// ratioOf compares one percentile.
func ratioOf(boot *blocks, metric string, q float64, prodN, replayN int, confidence float64) Ratio {
	r := Ratio{Metric: metric, Percentile: q, ProdN: prodN, ReplayN: replayN, Production: unknown, Replay: unknown, Ratio: unknown,
		Lower: unknown, Upper: unknown, P: unknown}
	switch {
	case prodN == 0:
		r.Reason = "production tells none"
		return r
	case replayN == 0:
		r.Reason = "the replay has none"
		return r
	}
	base, value := boot.quantiles(q)
	r.Production, r.Replay = Figure(base/1000), Figure(value/1000)
	if need := leastValues(q); min(prodN, replayN) < need {
		r.Reason = fmt.Sprintf("insufficient: %d and %d values, %d are needed", prodN, replayN, need)
		return r
	}
	if base <= 0 {
		r.Reason = "production's is 0"
		return r
	}
	r.Ratio = Figure(value / base)
	lower, upper, _, ok := boot.interval(q, confidence)
	if !ok {
		r.Reason = "too short for an interval"
		return r
	}
	r.Lower, r.Upper = Figure(1+lower), Figure(1+upper)
	r.P = Figure(pOfOne(float64(r.Ratio), 1+lower, 1+upper, confidence))
	return r
}

// pOfOne is the two-sided p value of a ratio of 1, by a normal law of the logarithm as wide as the interval. Counted resamples
// would not resolve the small values that a correction for many of them needs.
func pOfOne(ratio, lower, upper, confidence float64) float64 {
	z := math.Sqrt2 * math.Erfinv(confidence)
	sd := (math.Log(upper) - math.Log(lower)) / (2 * z)
	switch {
	case math.IsNaN(sd) || math.IsInf(sd, 1):
		return 1
	case sd == 0 && ratio == 1:
		return 1 // no resample differs
	}
	return math.Erfc(math.Abs(math.Log(ratio)) / sd / math.Sqrt2)
}
