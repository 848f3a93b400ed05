package analyze

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"tailgate/internal/fault"
	"tailgate/internal/parquetio"
	"tailgate/schemas"
)

// testedRun is the measured part of a replay at 1.0x, and where it lies in production's time.
type testedRun struct {
	v        *view
	id       string
	rows     []int32 // that count in tails, in order
	zero     int64   // wall time of the schedule's zero, µs
	from, to int64   // wall time of the first and last row
	classes  []string
}

// runToTest refuses what is no replay of the day at 1.0x, with every reason at once.
func runToTest(d *Data, o BacktestOptions) (*testedRun, error) {
	refuse := func(errs ...error) (*testedRun, error) {
		return nil, fault.Mark(errors.Join(errs...), fault.Usage, "backtest the run of a trace that was exported from this day, replayed with no --scale")
	}
	var m *schemas.Manifest
	for _, in := range d.Inputs {
		switch {
		case in.Manifest == nil:
			return refuse(fmt.Errorf("backtesting %s: it has no manifest, so nothing tells what was replayed", in.Path))
		case m == nil:
			m = in.Manifest
		case in.clock != d.Inputs[0].clock:
			return refuse(fmt.Errorf("backtesting: %s and %s are two runs, one at a time can be held against a day", d.Inputs[0].Path, in.Path))
		}
	}
	errs := notAsLogged(m)
	run := &testedRun{v: Options{}.view(d), id: m.RunID}
	if text, ok := m.Settings["classes"].(string); ok {
		for name := range strings.SplitSeq(strings.Trim(text, "[]"), ",") {
			if name != "" {
				run.classes = append(run.classes, name)
			}
		}
	}
	run.rows = d.tails(run.v.rows)
	start := o.Start
	if m.Run != nil && m.Run.TraceStartedAt != nil && start.IsZero() {
		start = *m.Run.TraceStartedAt
	}
	if start.IsZero() {
		errs = append(errs, errors.New("backtesting: the run does not tell when its trace began; give --start with the wall time of the schedule's zero"))
	}
	if len(run.rows) == 0 {
		errs = append(errs, errors.New("backtesting: no request of the run counts"))
	}
	if len(errs) > 0 {
		return refuse(errs...)
	}
	run.zero = start.UnixMicro()
	run.from, run.to = run.zero+d.scheduled.at(run.rows[0]), run.zero+d.scheduled.at(run.rows[len(run.rows)-1])
	day, _ := time.Parse(time.DateOnly, o.Day) // validated
	if run.from < day.UnixMicro() || run.to >= day.AddDate(0, 0, 1).UnixMicro() {
		return refuse(fmt.Errorf("backtesting: the run replays %s to %s, which is not within %s", stamp(run.from), stamp(run.to), o.Day))
	}
	return run, nil
}

// notAsLogged says by which settings a run sends other requests than the log, or at other times.
func notAsLogged(m *schemas.Manifest) []error {
	var errs []error
	setting := func(name string) string {
		text, _ := m.Settings[name].(string)
		return text
	}
	if s := setting("scale"); s != "" && !isOne(s) {
		errs = append(errs, fmt.Errorf("backtesting: the run was replayed at --scale %s, not at 1.0x", s))
	}
	for _, flag := range []struct{ name, unset string }{{"target-rate", "0"}, {"request-rate", ""}, {"rate-series", ""}, {"concurrency", ""},
		{"sample-sessions", ""}, {"clip-input", "0"}, {"clip-output", "0"}} {
		if s := setting(flag.name); s != "" && s != flag.unset && s != "[]" && s != "0/s" {
			errs = append(errs, fmt.Errorf("backtesting: the run was replayed with --%s %s, not as it was logged", flag.name, s))
		}
	}
	if setting("mode") == "model" {
		errs = append(errs, errors.New("backtesting: the run sent requests drawn from a model, not those that were logged"))
	}
	if setting("turns") == "think" {
		errs = append(errs, errors.New("backtesting: the run sent turns after the ones before (--turns think), not at their stamps"))
	}
	return errs
}

// isOne reads 1x, 1.0 and 100%.
func isOne(s string) bool {
	number, percent := strings.CutSuffix(strings.TrimSpace(s), "%")
	x, err := strconv.ParseFloat(strings.TrimSuffix(number, "x"), 64)
	if percent {
		x /= 100
	}
	return err == nil && math.Abs(x-1) < 1e-9
}

// values are those of a metric of the rows that succeeded, with their times.
func (r *testedRun) values(rows []int32, m metric) (x []float64, at []int64) {
	for _, i := range rows {
		if v := r.v.d.value(m, i); r.v.d.ok(i) && !math.IsNaN(v) {
			x, at = append(x, v), append(at, r.zero+r.v.d.scheduled.at(i))
		}
	}
	return x, at
}

// window is the part of a day of the lake that was replayed, in order of arrival. The columns are those of the whole day.
type window struct {
	*dayColumns
	arrived, input, attempt []int64 // -1 is null
	op                      []int32
	ops                     parquetio.Dict
	rows                    []int32 // of the window: requests that an export takes, in either view
}

// stampSlack is what the stamps of a trace may have lost to rounding, µs.
const stampSlack = 1000

// readWindow reads the requests of the day that arrived while the run's window lasted.
func readWindow(ctx context.Context, path string, run *testedRun) (*window, error) {
	bad := func(err error) (*window, error) {
		return nil, fault.Mark(fmt.Errorf("backtesting: %w", err), fault.Data, "")
	}
	c, err := parquetio.OpenColumns(path)
	if err != nil {
		return bad(err)
	}
	defer c.Close()
	if table := c.Footer()[schemas.KeySchema]; table != schemas.TableRequests {
		return bad(fmt.Errorf("reading %s: holds the table %s, not requests", path, table))
	}
	w := &window{}
	if w.dayColumns, err = readDay(ctx, c); err == nil {
		err = w.read(ctx, c)
	}
	if err != nil {
		return bad(err)
	}
	kept := map[int32]bool{}
	for _, op := range []string{schemas.OpChat, schemas.OpCompletion, schemas.OpResponses} {
		kept[w.ops.Code([]byte(op))] = true
	}
	for i, at := range w.arrived {
		if at >= run.from-stampSlack && at <= run.to+stampSlack && kept[w.op[i]] && !w.probe[i] && w.inClasses(int32(i), run.classes) {
			w.rows = append(w.rows, int32(i))
		}
	}
	sort.SliceStable(w.rows, func(a, b int) bool { return w.arrived[w.rows[a]] < w.arrived[w.rows[b]] })
	return w, nil
}

func (w *window) read(ctx context.Context, c *parquetio.Columns) error {
	wide := func(name string, to *[]int64) error {
		return c.Int64s(ctx, name, func(values []int64, _ []bool) error {
			*to = append(*to, values...)
			return nil
		})
	}
	narrow := func(name string, to *[]int64) error {
		return c.Int32s(ctx, name, func(values []int32, valid []bool) error {
			for i, v := range values {
				if !valid[i] {
					v = -1
				}
				*to = append(*to, int64(v))
			}
			return nil
		})
	}
	err := errors.Join(wide("arrived_at", &w.arrived), narrow("input_tokens", &w.input), narrow("attempt", &w.attempt),
		c.Strings(ctx, "op", &w.ops, func(codes []int32) error {
			w.op = append(w.op, codes...)
			return nil
		}))
	if n := len(w.ttft); err == nil && (len(w.arrived) != n || len(w.input) != n || len(w.attempt) != n || len(w.op) != n) {
		err = errors.New("columns of different lengths")
	}
	return err
}

func (w *window) inClasses(i int32, classes []string) bool {
	return len(classes) == 0 || w.class[i] >= 0 && slices.Contains(classes, w.classes.Words[w.class[i]])
}

// countSlack is by how much the numbers of requests may differ.
const countSlack = .02

// match keeps the requests of the view that the run replayed, by their number, and refuses a run of another number.
func (w *window) match(run *testedRun) (view string, err error) {
	var engine, client []int32
	for _, i := range w.rows {
		if w.reached[i] {
			engine = append(engine, i)
		}
		if w.attempt[i] == 0 {
			client = append(client, i)
		}
	}
	n := len(run.rows)
	view, w.rows = "engine", engine
	if diff(len(client), n) < diff(len(engine), n) {
		view, w.rows = "client", client
	}
	if float64(diff(len(w.rows), n)) > max(2, countSlack*float64(n)) {
		return "", fault.Mark(fmt.Errorf("backtesting: the run sent %d requests where production had %d between %s and %s: it is no replay of them at 1.0x",
			n, len(w.rows), stamp(run.from), stamp(run.to)), fault.Usage, "backtest the run of a trace that was exported from this day, replayed with no --scale")
	}
	return view, nil
}

func diff(a, b int) int { return max(a-b, b-a) }

// values are those of a compared metric of the rows that succeeded, with their times.
func (w *window) values(rows []int32, metric int) (x []float64, at []int64) {
	column := [][]int64{w.ttft, w.duration}[metric]
	for _, i := range rows {
		if w.status[i] == w.good && column[i] >= 0 {
			x, at = append(x, float64(column[i])), append(at, w.arrived[i])
		}
	}
	return x, at
}

// success is the share that succeeded of those that their client did not cancel.
func (w *window) success(rows []int32) Figure {
	ok, n := 0, 0
	for _, i := range rows {
		if w.status[i] != w.cancelled {
			n++
			if w.status[i] == w.good {
				ok++
			}
		}
	}
	if n == 0 {
		return unknown
	}
	return Figure(float64(ok) / float64(n))
}

// backtestCell is one bucket with its rows on both sides.
type backtestCell struct {
	by   Tuple
	rows []int32
	prod []int32
}

// pairCells cuts both sides in the same buckets: all, each class, each class × length that the replay has.
func pairCells(run *testedRun, w *window, edges []int64) []backtestCell {
	out := []backtestCell{{rows: run.rows, prod: w.rows}}
	class, lengths := Part{Key: "class"}, Part{Key: "input_length", Edges: edges}
	for _, by := range []By{{[]Part{class}}, {[]Part{class, lengths}}} {
		for _, c := range run.v.d.cut(by, run.rows) {
			cell := backtestCell{by: c.by, rows: c.rows}
			for _, i := range w.rows {
				if w.matches(i, c.by) {
					cell.prod = append(cell.prod, i)
				}
			}
			out = append(out, cell)
		}
	}
	return out
}

// matches tells whether a request of the lake lies in a bucket of the replay.
func (w *window) matches(i int32, t Tuple) bool {
	for _, v := range t {
		switch {
		case v.Key == "class" && v.Text == nil:
			if w.class[i] >= 0 {
				return false
			}
		case v.Key == "class":
			if w.class[i] < 0 || w.classes.Words[w.class[i]] != *v.Text {
				return false
			}
		case w.input[i] < 0 || v.Lo != nil && w.input[i] < *v.Lo || v.Hi != nil && w.input[i] >= *v.Hi:
			return false
		}
	}
	return true
}
