package analyze

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"tailgate/internal/fault"
	"tailgate/internal/parquetio"
	"tailgate/internal/stats"
	"tailgate/schemas"
)

// ProposeOptions say how a gate is proposed from what production had.
type ProposeOptions struct {
	Day   string  // for the text
	Slack float64 // share by which a limit lies above what production had; 0.2 = 20 %
	MinN  int     // classes with fewer requests of a metric get no rule on it; 0 = 1,000
}

// production is what a day of the lake tells of one class.
type production struct {
	ttft, e2e  []float64 // µs, of ok requests
	ok, failed int
}

// ProposeGate writes a gate file whose limits are production's own percentiles of a published day, with some slack: the
// whole first, then a bucket for each class. Probes, requests that never reached the engine and those cancelled by their
// client are left out. It is a start to be edited, and says so.
func ProposeGate(ctx context.Context, path string, o ProposeOptions) ([]byte, error) {
	if o.MinN == 0 {
		o.MinN = 1000
	}
	classes, err := readProduction(ctx, path)
	if err != nil {
		return nil, fault.Mark(fmt.Errorf("proposing a gate: %w", err), fault.Data, "")
	}
	whole := &production{}
	for _, c := range classes {
		whole.ttft, whole.e2e = append(whole.ttft, c.ttft...), append(whole.e2e, c.e2e...)
		whole.ok, whole.failed = whole.ok+c.ok, whole.failed+c.failed
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "# PROPOSED from production's own latencies on %s (%d requests), with %.4g %% of slack. Edit before you rely on it:\n"+
		"# what production had is what users lived with, not what they need.\n", o.Day, whole.ok+whole.failed, 100*o.Slack)
	rules := whole.rules(o, true)
	if len(rules) == 0 {
		return nil, fault.Mark(fmt.Errorf("proposing a gate: %s has latencies of %d requests, %d are needed", o.Day, max(len(whole.ttft), len(whole.e2e)), o.MinN),
			fault.Data, "publish a day with ttft or durations in its logs")
	}
	b.WriteString("capacity_gate:\n")
	for _, r := range rules {
		fmt.Fprintf(&b, "  %s\n", r)
	}
	b.WriteString("  queue_growth: \"no_sustained_growth\"\n")
	first := true
	for _, name := range slices.Sorted(maps.Keys(classes)) {
		rules := classes[name].rules(o, false)
		if name == "" || len(rules) == 0 || len(classes) == 1 {
			continue
		}
		if first {
			b.WriteString("buckets:\n")
			first = false
		}
		fmt.Fprintf(&b, "  - by: {class: %s}   # %d requests\n", strconv.Quote(name), classes[name].ok+classes[name].failed)
		for _, r := range rules {
			fmt.Fprintf(&b, "    %s\n", r)
		}
	}
	b.WriteString("warmup: 60s\n")
	return b.Bytes(), nil
}

// rules are the lines of one bucket.
func (p *production) rules(o ProposeOptions, success bool) []string {
	var out []string
	if n := p.ok + p.failed; success && n >= o.MinN {
		// Failures are few: the slack is on their share.
		share := float64(p.failed) / float64(n) * (1 + o.Slack)
		out = append(out, fmt.Sprintf(`success_rate: ">= %s"`, strconv.FormatFloat(math.Floor(max(0, 1-share)*1e4)/1e4, 'g', -1, 64)))
	}
	for _, m := range []struct {
		name   string
		values []float64
	}{{"ttft", p.ttft}, {"e2e", p.e2e}} {
		if len(m.values) < o.MinN {
			continue
		}
		k95, k99 := stats.Rank(len(m.values), .95)-1, stats.Rank(len(m.values), .99)-1
		stats.Select(m.values, k95, k99)
		for _, q := range []struct {
			name string
			k    int
		}{{"p95", k95}, {"p99", k99}} {
			out = append(out, fmt.Sprintf(`%s_%s: "<= %sms"   # production had %.4g ms`, m.name, q.name,
				strconv.FormatFloat(roundUp(m.values[q.k]*(1+o.Slack)/1e3), 'f', -1, 64), m.values[q.k]/1e3))
		}
	}
	return out
}

// roundUp keeps two digits, rounded up.
func roundUp(x float64) float64 {
	unit := math.Pow(10, math.Floor(math.Log10(max(x, 1)))-1)
	return math.Ceil(x/unit-1e-9) * unit
}

// readProduction reads the day by columns.
func readProduction(ctx context.Context, path string) (map[string]*production, error) {
	c, err := parquetio.OpenColumns(path)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if table := c.Footer()[schemas.KeySchema]; table != schemas.TableRequests {
		return nil, fmt.Errorf("reading %s: holds the table %s, not requests", path, table)
	}
	day, err := readDay(ctx, c)
	if err != nil {
		return nil, err
	}
	out := map[string]*production{}
	for i := range day.ttft {
		if day.probe[i] || !day.reached[i] || day.status[i] == day.cancelled {
			continue
		}
		name := ""
		if day.class[i] >= 0 {
			name = day.classes.Words[day.class[i]]
		}
		p := out[name]
		if p == nil {
			p = &production{}
			out[name] = p
		}
		if day.status[i] != day.good {
			p.failed++
			continue
		}
		p.ok++
		if day.ttft[i] >= 0 {
			p.ttft = append(p.ttft, float64(day.ttft[i]))
		}
		if day.duration[i] >= 0 {
			p.e2e = append(p.e2e, float64(day.duration[i]))
		}
	}
	return out, nil
}

// dayColumns are the columns of a day that a proposal needs; -1 is null.
type dayColumns struct {
	ttft, duration  []int64
	class, status   []int32
	probe, reached  []bool
	classes         parquetio.Dict
	good, cancelled int32 // codes of status
}

func readDay(ctx context.Context, c *parquetio.Columns) (*dayColumns, error) {
	d := &dayColumns{}
	var statuses parquetio.Dict
	d.good, d.cancelled = statuses.Code([]byte(schemas.StatusOK)), statuses.Code([]byte(schemas.StatusCancelled))
	numbers := func(name string, to *[]int64) error {
		return c.Int64s(ctx, name, func(values []int64, valid []bool) error {
			for i, v := range values {
				if !valid[i] {
					v = -1
				}
				*to = append(*to, v)
			}
			return nil
		})
	}
	words := func(name string, dict *parquetio.Dict, to *[]int32) error {
		return c.Strings(ctx, name, dict, func(codes []int32) error {
			*to = append(*to, codes...)
			return nil
		})
	}
	flags := func(name string, to *[]bool) error {
		return c.Bools(ctx, name, func(values, _ []bool) error {
			*to = append(*to, values...)
			return nil
		})
	}
	steps := []func() error{
		func() error { return numbers("ttft_us", &d.ttft) },
		func() error { return numbers("duration_us", &d.duration) },
		func() error { return words("class", &d.classes, &d.class) },
		func() error { return words("status", &statuses, &d.status) },
		func() error { return flags("is_probe", &d.probe) },
		func() error { return flags("reached_engine", &d.reached) },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return nil, err
		}
	}
	n := len(d.ttft)
	for _, m := range [...]int{len(d.duration), len(d.class), len(d.status), len(d.probe), len(d.reached)} {
		if m != n {
			return nil, errors.New("columns of different lengths")
		}
	}
	return d, nil
}
