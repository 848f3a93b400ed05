package analyze

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"time"

	"tailgate/internal/fault"
	"tailgate/internal/parquetio"
	"tailgate/internal/stats"
	"tailgate/internal/wildcard"
	"tailgate/schemas"
)

// Truth compares a client's own account of its requests with the truth table of the simulated engine that it was
// run against, rows joined by X-Request-Id = RUN_ID-ROW. Every row counts, warm-up included.
//
// The two sides' clocks are set by the request that came in soonest after its send stamp: what all requests have
// in common (a clock's offset, the shortest way over the network) is ClockOffset and in no error of a run.
type Truth struct {
	Requests int `json:"requests"` // rows of the runs that were sent
	Joined   int `json:"joined"`   // of these, in the truth
	Strange  int `json:"strange"`  // rows of the truth that belong to no row of the runs
	// KernelStamps counts the joined requests whose arrival was stamped by the kernel.
	KernelStamps int    `json:"kernel_stamps"`
	ClockOffset  Figure `json:"clock_offset_ms"` // of the first run

	StatusDiffers int `json:"status_differs"` // joined rows with another status than the truth tells
	TokensDiffer  int `json:"tokens_differ"`  // ok rows with another count of output tokens

	Lag  TruthMetric `json:"lag_ms"`  // scheduled to sent, and to received
	TTFT TruthMetric `json:"ttft_ms"` // sent to the first token, and received to the first token written
	ITL  TruthMetric `json:"itl_ms"`  // gaps between tokens, those of a request paired by size
	E2E  TruthMetric `json:"e2e_ms"`  // sent to the last token, and received to the last token written

	// SimLate is how late the simulator wrote its tokens, the worst of each request: its own jitter, which both
	// sides see.
	SimLate Spread `json:"sim_late_ms"`
}

// TruthMetric is one metric as the client and as the truth have it, in ms, and the client's error.
type TruthMetric struct {
	Client Spread `json:"client"`
	Truth  Spread `json:"truth"`
	Error  Spread `json:"error"` // client − truth, request by request
}

// Spread describes a sample: exact percentiles by nearest rank, null where n = 0.
type Spread struct {
	N    int    `json:"n"`
	Min  Figure `json:"min"`
	Mean Figure `json:"mean"`
	P50  Figure `json:"p50"`
	P99  Figure `json:"p99"`
	Max  Figure `json:"max"`
}

// account is what the comparison needs of a row of the results.
type account struct {
	RunID        string  `parquet:"run_id,dict"`
	Row          int64   `parquet:"row"`
	ScheduledUs  int64   `parquet:"scheduled_us"`
	SentUs       *int64  `parquet:"sent_us,optional"`
	FirstTokenUs *int64  `parquet:"first_token_us,optional"`
	LastTokenUs  *int64  `parquet:"last_token_us,optional"`
	OutputTokens *int32  `parquet:"output_tokens,optional"`
	ITLUs        []int32 `parquet:"itl_us,optional,list"`
	ITLIsToken   bool    `parquet:"itl_is_token"`
	Status       string  `parquet:"status,dict"`

	told *schemas.Truth
}

// CompareTruth reads the truth table at path and the results of the run folders. Folders without a manifest, and
// runs in virtual time, are wrong usage: they have no wall clock to compare with.
func CompareTruth(ctx context.Context, folders []string, path string) (*Truth, error) {
	told, err := readTruth(path)
	if err != nil {
		return nil, err
	}
	c := &comparison{t: Truth{ClockOffset: unknown}}
	known := len(told)
	for i, dir := range folders {
		if err := c.add(ctx, dir, told, i == 0); err != nil {
			return nil, err
		}
	}
	if c.t.Strange = known - c.t.Joined; c.t.Joined == 0 {
		return nil, fault.Mark(fmt.Errorf("comparing with %s: none of its %d rows belongs to a request of the run", path, known), fault.Data,
			"give the file that `tailgate sim --truth` wrote during this run")
	}
	return c.result(), nil
}

func readTruth(path string) (map[string]*schemas.Truth, error) {
	footer, _, err := parquetio.Footer(path)
	if err != nil {
		return nil, err
	}
	if footer[schemas.KeySchema] != schemas.TableTruth {
		return nil, fault.Mark(fmt.Errorf("reading %s: holds the table %q, not truth", path, footer[schemas.KeySchema]), fault.Data, "")
	}
	rows, _, err := parquetio.ReadFile[schemas.Truth](path)
	if err != nil {
		return nil, err
	}
	told := make(map[string]*schemas.Truth, len(rows))
	for i := range rows {
		told[rows[i].RequestID] = &rows[i]
	}
	return told, nil
}

// comparison collects the samples, in µs.
type comparison struct {
	t              Truth
	lag, ttft, e2e pairs
	itl            pairs
	simLate        []float64
}

// pairs is a metric on both sides.
type pairs struct{ client, truth, diff []float64 }

func (p *pairs) add(client, truth float64) {
	p.client, p.truth = append(p.client, client), append(p.truth, truth)
	p.diff = append(p.diff, client-truth)
}

// add joins the rows of one run folder.
func (c *comparison) add(ctx context.Context, dir string, told map[string]*schemas.Truth, first bool) error {
	m, err := schemas.ReadManifest(dir)
	if err != nil {
		return fault.Mark(fmt.Errorf("comparing with the truth: %w", err), fault.Usage, "the comparison needs finished run folders")
	}
	if m.Clock == "virtual" {
		return fault.Mark(fmt.Errorf("comparing with the truth: %s is a run in virtual time", dir), fault.Usage,
			"only runs against `tailgate sim` over HTTP have a client to judge")
	}
	rows, err := readAccounts(ctx, dir, told, &c.t.Requests)
	if err != nil || len(rows) == 0 {
		return err
	}
	zero := m.StartedAt
	offset := int64(math.MaxInt64)
	for i := range rows {
		offset = min(offset, receivedUs(&rows[i], zero)-*rows[i].SentUs)
	}
	if first {
		c.t.ClockOffset = Figure(float64(offset) / 1e3)
	}
	for i := range rows {
		c.join(&rows[i], receivedUs(&rows[i], zero)-offset)
	}
	return nil
}

func receivedUs(a *account, zero time.Time) int64 { return a.told.ReceivedAt.Sub(zero).Microseconds() }

// readAccounts returns the rows that were sent and are in the truth, and counts all that were sent.
func readAccounts(ctx context.Context, dir string, told map[string]*schemas.Truth, sent *int) ([]account, error) {
	paths := []string{filepath.Join(dir, resultsName)}
	if segments, err := wildcard.Paths(dir, segmentsGlob); err == nil && len(segments) > 0 {
		paths = segments
	}
	var joined []account
	batch := make([]account, 1024)
	for _, path := range paths {
		r, err := parquetio.Open[account](path)
		if err != nil {
			return nil, err
		}
		for {
			n, err := r.Read(batch)
			for _, a := range batch[:n] {
				if a.SentUs == nil {
					continue
				}
				*sent++
				if a.told = told[a.RunID+"-"+strconv.FormatInt(a.Row, 10)]; a.told != nil {
					joined = append(joined, a)
				}
			}
			if errors.Is(err, io.EOF) {
				break
			}
			if err = errors.Join(err, ctx.Err()); err != nil {
				r.Close()
				return nil, err
			}
			clear(batch) // the rows that were kept own their lists
		}
		r.Close()
	}
	return joined, nil
}

// join compares one request; received is on the client's clock.
func (c *comparison) join(a *account, received int64) {
	t := a.told
	c.t.Joined++
	if t.KernelStamp {
		c.t.KernelStamps++
	}
	if a.Status != t.Status {
		c.t.StatusDiffers++
	}
	if a.Status == schemas.ResultOK && a.OutputTokens != nil && *a.OutputTokens != t.OutputTokens {
		c.t.TokensDiffer++
	}
	c.lag.add(float64(*a.SentUs-a.ScheduledUs), float64(received-a.ScheduledUs))
	if t.LateMaxUs != nil {
		c.simLate = append(c.simLate, float64(*t.LateMaxUs))
	}
	n := len(t.TokenUs)
	if n == 0 {
		return
	}
	if a.FirstTokenUs != nil {
		c.ttft.add(float64(*a.FirstTokenUs-*a.SentUs), float64(t.TokenUs[0]))
	}
	if a.LastTokenUs != nil && a.Status == t.Status {
		c.e2e.add(float64(*a.LastTokenUs-*a.SentUs), float64(t.TokenUs[n-1]))
	}
	if !a.ITLIsToken || len(a.ITLUs) != n-1 {
		return
	}
	gaps := make([]int32, n-1)
	for i := range gaps {
		gaps[i] = t.TokenUs[i+1] - t.TokenUs[i]
	}
	slices.Sort(gaps)
	slices.Sort(a.ITLUs)
	for i, gap := range gaps {
		c.itl.add(float64(a.ITLUs[i]), float64(gap))
	}
}

func (c *comparison) result() *Truth {
	t := &c.t
	for _, m := range []struct {
		p  *pairs
		to *TruthMetric
	}{{&c.lag, &t.Lag}, {&c.ttft, &t.TTFT}, {&c.itl, &t.ITL}, {&c.e2e, &t.E2E}} {
		*m.to = TruthMetric{Client: spread(m.p.client), Truth: spread(m.p.truth), Error: spread(m.p.diff)}
	}
	t.SimLate = spread(c.simLate)
	return t
}

// spread describes values in µs as ms. It sorts them.
func spread(us []float64) Spread {
	s := Spread{N: len(us), Min: unknown, Mean: unknown, P50: unknown, P99: unknown, Max: unknown}
	if len(us) == 0 {
		return s
	}
	sort.Float64s(us)
	sum := 0.0
	for _, x := range us {
		sum += x
	}
	at := func(p float64) Figure {
		x, _ := stats.Quantile(us, p)
		return Figure(x / 1e3)
	}
	s.Min, s.P50, s.P99, s.Max = Figure(us[0]/1e3), at(.5), at(.99), Figure(us[len(us)-1]/1e3)
	s.Mean = Figure(math.Round(sum/float64(len(us))) / 1e3)
	return s
}
