package analyze

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"tailgate/internal/fault"
	"tailgate/internal/stats"
	"tailgate/schemas"
)

// Stored is what an analysis left of its runs: their rows of the runs and the buckets table.
type Stored struct {
	Name    string // for messages
	Runs    []schemas.Run
	Buckets []schemas.Bucket
}

// Trend shows the tails of many runs day by day, and of all days together, from merged histograms. It judges nothing:
// verdicts are taken on exact rows. Its fields are its JSON.
type Trend struct {
	Definition string `json:"definition"`
	// HistogramError is how far a percentile may lie below the exact one, as a share of it.
	HistogramError float64    `json:"histogram_error"`
	Unchecked      []string   `json:"unchecked"`
	Days           []TrendDay `json:"days"`
	All            TrendDay   `json:"all"`
}

// TrendDay is one UTC day, that on which a run started, or all of them.
type TrendDay struct {
	Day     *string       `json:"day"` // null: all days, or runs that tell none
	Runs    []string      `json:"runs"`
	Buckets []TrendBucket `json:"buckets"`
}

// TrendBucket is one bucket of a day.
type TrendBucket struct {
	By          json.RawMessage `json:"by"`
	Runs        int             `json:"runs"` // that have the bucket; an input that names no run counts as one
	Scheduled   int64           `json:"scheduled"`
	OK          int64           `json:"ok"`
	SuccessRate Figure          `json:"success_rate"`
	Metrics     TrendMetrics    `json:"metrics"`
}

// TrendMetric holds percentiles over all scheduled requests, failures infinite, in ms.
type TrendMetric struct {
	Name string `json:"-"`
	N    int64  `json:"n"`
	P50  Figure `json:"p50"`
	P95  Figure `json:"p95"`
	P99  Figure `json:"p99"`
}

// TrendMetrics holds one TrendMetric per metric; its JSON is an object.
type TrendMetrics []TrendMetric

// MarshalJSON writes an object with the metrics as names.
func (ms TrendMetrics) MarshalJSON() ([]byte, error) {
	return objectOf(ms, func(m TrendMetric) string { return m.Name })
}

// MakeTrend merges what was stored of runs. A run that stands twice is a fault of kind Usage, and a histogram that
// cannot be read one of kind Data.
func MakeTrend(stored []Stored) (*Trend, error) {
	t := &Trend{Definition: schemas.Definition, HistogramError: histError, Unchecked: []string{}, Days: []TrendDay{}}
	if err := eachRunOnce(stored); err != nil {
		return nil, err
	}
	byDay := map[string][]Stored{}
	for _, s := range stored {
		byDay[s.day()] = append(byDay[s.day()], s)
	}
	days := slices.Sorted(maps.Keys(byDay))
	if _, ok := byDay[""]; ok { // it goes last
		days = append(days[1:], "")
	}
	for _, day := range days {
		d, err := mergeDay(byDay[day])
		if err != nil {
			return nil, err
		}
		if d.Day = &day; day == "" {
			d.Day = nil
			t.Unchecked = append(t.Unchecked, fmt.Sprintf("the day of %d inputs: bare files and runs in virtual time have none", len(byDay[day])))
		}
		t.Days = append(t.Days, d)
	}
	var err error
	t.All, err = mergeDay(stored)
	return t, err
}

// day is the UTC day of the earliest run, "" when none tells: runs in virtual time all start at the epoch.
func (s Stored) day() string {
	if len(s.Runs) == 0 {
		return ""
	}
	first := slices.MinFunc(s.Runs, func(a, b schemas.Run) int { return a.StartedAt.Compare(b.StartedAt) }).StartedAt
	if first.Unix() == 0 {
		return ""
	}
	return first.UTC().Format(time.DateOnly)
}

// eachRunOnce names runs that two inputs hold: they would count twice.
func eachRunOnce(stored []Stored) error {
	var errs []error
	seen := map[string]string{}
	for _, s := range stored {
		for _, run := range s.Runs {
			if first, ok := seen[run.RunID]; ok {
				errs = append(errs, fmt.Errorf("run %s is in %s and in %s", run.RunID, first, s.Name))
			}
			seen[run.RunID] = s.Name
		}
	}
	return fault.Mark(errors.Join(errs...), fault.Usage, "give each run once; shards of a run: analyze them together with --parquet, and give that folder")
}

// trendCell is one bucket × metric of a day while its runs are merged.
type trendCell struct {
	runs                int
	scheduled, ok, tail int64
	hist                *hdrhistogram.PackedHistogram // there may be thousands of cells
}

type trendKey struct{ by, metric string }

func mergeDay(stored []Stored) (TrendDay, error) {
	day := TrendDay{Runs: []string{}, Buckets: []TrendBucket{}}
	cells := map[trendKey]*trendCell{}
	var bys []string // the whole first, then as they come
	for _, s := range stored {
		for _, run := range s.Runs {
			day.Runs = append(day.Runs, run.RunID)
		}
		for _, b := range s.Buckets {
			if b.Metric == metrics[outputTokens].json {
				continue
			}
			k := trendKey{b.By, b.Metric}
			c := cells[k]
			if c == nil {
				c = &trendCell{hist: hdrhistogram.NewPacked(1, histMaxUs, histDigits)}
				cells[k] = c
				if !slices.Contains(bys, b.By) {
					bys = append(bys, b.By)
				}
			}
			c.runs += max(1, len(s.Runs))
			if err := c.add(b); err != nil {
				return day, fault.Mark(fmt.Errorf("reading %s: bucket %s of %s: %w", s.Name, b.Metric, b.By, err), fault.Data, "write it anew with --parquet")
			}
		}
	}
	whole := Tuple(nil).json()
	if i := slices.Index(bys, whole); i > 0 {
		bys = slices.Insert(slices.Delete(bys, i, i+1), 0, whole)
	}
	for _, by := range bys {
		b := TrendBucket{By: json.RawMessage(by), SuccessRate: unknown}
		for _, m := range metrics {
			c := cells[trendKey{by, m.json}]
			if c == nil {
				continue
			}
			b.Runs, b.Scheduled, b.OK = c.runs, c.scheduled, c.ok
			b.Metrics = append(b.Metrics, c.metric(m))
		}
		if b.Scheduled > 0 {
			b.SuccessRate = Figure(float64(b.OK) / float64(b.Scheduled))
		}
		day.Buckets = append(day.Buckets, b)
	}
	return day, nil
}

func (c *trendCell) add(b schemas.Bucket) error {
	if b.HdrV2 == "" {
		return errors.New("it holds no histogram")
	}
	h, err := hdrhistogram.DecodePacked([]byte(b.HdrV2))
	if err != nil {
		return err
	}
	if dropped := c.hist.Merge(h); dropped > 0 {
		return fmt.Errorf("%d values of the histogram are out of range", dropped)
	}
	c.scheduled, c.ok, c.tail = c.scheduled+b.Scheduled, c.ok+b.OK, c.tail+b.TailN
	return nil
}

// metric takes percentiles of the tail: what the histogram lacks of it are failures.
func (c *trendCell) metric(m metricName) TrendMetric {
	out := TrendMetric{Name: m.json, N: c.tail, P50: unknown, P95: unknown, P99: unknown}
	var rest []*Figure
	var ranks []int64
	for _, p := range []struct {
		p  float64
		of *Figure
	}{{.5, &out.P50}, {.95, &out.P95}, {.99, &out.P99}} {
		if c.tail > 0 {
			*p.of = Figure(math.Inf(1))
			rest, ranks = append(rest, p.of), append(ranks, int64(stats.Rank(int(c.tail), p.p)))
		}
	}
	seen := int64(0)
	c.hist.ForEachBucket(func(lowest, n int64) bool {
		seen += n
		for len(rest) > 0 && ranks[0] <= seen {
			*rest[0] = Figure(float64(lowest) / m.metric.scale())
			rest, ranks = rest[1:], ranks[1:]
		}
		return len(rest) > 0
	})
	return out
}

// bucketName is a bucket's JSON in the words of Tuple.String.
func bucketName(by json.RawMessage) string {
	d := json.NewDecoder(strings.NewReader(string(by)))
	var t Tuple
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return string(by)
	}
	for d.More() {
		key, err := d.Token()
		name, ok := key.(string)
		var raw json.RawMessage
		if err != nil || !ok || d.Decode(&raw) != nil {
			return string(by)
		}
		v := KeyValue{Key: name}
		var ends [2]*int64
		switch {
		case json.Unmarshal(raw, &ends) == nil && raw[0] == '[':
			v.Lo, v.Hi = ends[0], ends[1]
		case json.Unmarshal(raw, &v.Text) != nil:
			return string(by)
		}
		t = append(t, v)
	}
	return t.String()
}
