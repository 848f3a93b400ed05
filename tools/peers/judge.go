package main

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"tailgate/internal/parquetio"
	"tailgate/internal/stats"
	"tailgate/schemas"
)

// figures of one run. Times are in ms where no other unit stands.
type figures struct {
	Requests     int     `json:"requests"` // that the target answered
	Rate         float64 `json:"requests_per_s"`
	Connections  int     `json:"connections"`
	LagP50       float64 `json:"lag_p50_ms"` // received at the target later than due, counted from the least late one
	LagP99       float64 `json:"lag_p99_ms"`
	LagMax       float64 `json:"lag_max_ms"`
	Late         float64 `json:"late_share"` // by more than 5 ms
	GapCV        float64 `json:"gap_cv"`     // of the gaps between arrivals: 1 for Poisson arrivals
	TruthTTFTP99 float64 `json:"truth_ttft_p99_ms"`
	ToldTTFTP99  float64 `json:"told_ttft_p99_ms"` // by the tool itself
	ToldOK       int     `json:"told_ok"`
	Tokens       int     `json:"tokens"`
	CPU          float64 `json:"cpu_s"`     // of the tool with all its processes, from its start to its end
	MemoryMB     float64 `json:"memory_mb"` // most of the sum of PSS, looked at twice a second
	Processes    int     `json:"processes"`
	StartS       float64 `json:"start_s"`       // from its start to the first request
	ExportS      float64 `json:"export_s"`      // from the end of the last answer to its own
	Foreign      float64 `json:"foreign_share"` // of the machine's CPU time, taken by others
}

// lateMs is what counts as late.
const lateMs = 5

// judge fills in what the target's truth at path tells of a run. Requests beyond the load's number are the tool's own trials
// and come first.
func (f *figures) judge(t *tool, r *room, path string, used *usage) error {
	rows, _, err := parquetio.ReadFile[schemas.Truth](path)
	if err != nil {
		return err
	}
	slices.SortFunc(rows, func(a, b schemas.Truth) int { return a.ReceivedAt.Compare(b.ReceivedAt) })
	if extra := len(rows) - r.Requests; extra > 0 {
		rows = rows[extra:]
	}
	if len(rows) < r.Requests*9/10 {
		return fmt.Errorf("the target saw %d of %d requests", len(rows), r.Requests)
	}
	first, last := rows[0].ReceivedAt, rows[len(rows)-1].ReceivedAt
	var at, gaps, ttft []float64
	conns, ended := map[int64]bool{}, last
	for i, row := range rows {
		at = append(at, row.ReceivedAt.Sub(first).Seconds())
		if i > 0 {
			gaps = append(gaps, at[i]-at[i-1])
		}
		conns[row.Conn] = true
		f.Tokens += int(row.OutputTokens)
		if len(row.TokenUs) > 0 {
			ttft = append(ttft, float64(row.TokenUs[0])/1e3)
		}
		if end := row.ReceivedAt.Add(usToDuration(row.ClosedUs)); end.After(ended) {
			ended = end
		}
	}
	if len(ttft) == 0 {
		return errors.New("the target wrote no stream")
	}
	f.Requests, f.Connections = len(rows), len(conns)
	f.Rate = float64(len(rows)-1) / last.Sub(first).Seconds()
	f.GapCV = cv(gaps)
	f.TruthTTFTP99 = quantile(ttft, .99)
	f.StartS, f.ExportS = first.Sub(used.started).Seconds(), used.ended.Sub(ended).Seconds()
	if !t.plansItself {
		f.lag(at, r.due())
	}
	return nil
}

// lag compares arrivals with the schedule, both in seconds and ascending. The two clocks are set by the request that was
// least late, as every tool begins its schedule when it likes.
func (f *figures) lag(at, due []float64) {
	n := min(len(at), len(due))
	late := make([]float64, n)
	for i := range n {
		late[i] = (at[i] - due[i]) * 1e3
	}
	least := slices.Min(late)
	over := 0
	for i := range late {
		late[i] -= least
		if late[i] > lateMs {
			over++
		}
	}
	f.LagP50, f.LagP99, f.LagMax = quantile(late, .5), quantile(late, .99), slices.Max(late)
	f.Late = float64(over) / float64(n)
}

// quantile sorts x.
func quantile(x []float64, p float64) float64 {
	slices.SortFunc(x, cmp.Compare[float64])
	v, _ := stats.Quantile(x, p)
	return v
}

func cv(x []float64) float64 {
	sum, squares := 0.0, 0.0
	for _, v := range x {
		sum += v
	}
	mean := sum / float64(len(x))
	for _, v := range x {
		squares += (v - mean) * (v - mean)
	}
	return math.Sqrt(squares/float64(len(x))) / mean
}

func usToDuration(us int64) time.Duration { return time.Duration(us) * time.Microsecond }

func (f *figures) ttftError() float64  { return f.ToldTTFTP99 - f.TruthTTFTP99 }
func (f *figures) perTokenUs() float64 { return f.CPU * 1e6 / float64(f.Tokens) }
func (f *figures) fixedS() float64     { return f.StartS + f.ExportS }
