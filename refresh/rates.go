package refresh

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
)

// ratesName is the file in state/ that the plan of the next night is made of.
const ratesName = "rates.json"

// rates is what a night took, by row.
type rates struct {
	Day              string            `json:"day"`
	RowsPerRecord    float64           `json:"rows_per_record"`
	SecondsPerRecord float64           `json:"seconds_per_record"` // of the ingest
	Steps            map[Step]stepRate `json:"steps"`
}

type stepRate struct {
	CPUSecondsPerRow float64 `json:"cpu_seconds_per_row"`
	BytesPerRow      float64 `json:"bytes_per_row"`
}

func parseRates(data []byte) (*rates, error) {
	r := &rates{}
	if err := json.Unmarshal(data, r); err != nil || r.Steps == nil {
		return nil, errors.New("reading the rates of the last night: broken")
	}
	return r, nil
}

// leastRows is from how many rows on a night tells rates.
const leastRows = 100

// tookName is the file in state/ with what the night of a day took so far: a run that was killed has measured some of its
// steps, the one that goes on the others.
const tookName = "took.json"

// took is what a night took, over all of its runs.
type took struct {
	Day     string            `json:"day"`
	Rows    int64             `json:"rows"` // that the log gave
	Records int64             `json:"records"`
	Seconds float64           `json:"seconds"` // of the ingest
	Steps   map[Step]stepTook `json:"steps"`
}

type stepTook struct {
	CPUSeconds float64 `json:"cpu_seconds"`
	Bytes      int64   `json:"bytes"`
}

// measure notes what the steps took that were done since it was asked last.
func (n *Night) measure(ctx context.Context) error {
	if n.took == nil {
		if err := n.lastTook(ctx); err != nil {
			return err
		}
	}
	t, news := n.took, false
	for ; n.measured < len(n.Status.Steps); n.measured++ {
		s := &n.Status.Steps[n.measured]
		if s.State != StepDone || s.Day != t.Day || s.Step == StepDrift {
			continue
		}
		news = true
		step := stepTook{CPUSeconds: s.CPUSeconds, Bytes: s.Bytes}
		if in := n.Status.Ingest; s.Step == StepIngest && in != nil { // each run reads on
			t.Rows, t.Records, t.Seconds = t.Rows+in.Rows, t.Records+in.Records, t.Seconds+s.Seconds
			step.CPUSeconds, step.Bytes = step.CPUSeconds+t.Steps[StepIngest].CPUSeconds, step.Bytes+t.Steps[StepIngest].Bytes
		}
		t.Steps[s.Step] = step
	}
	if !news {
		return nil
	}
	return n.replaceJSON(ctx, tookName, t)
}

// lastTook reads what an earlier run of this night noted. One of another night, or one that cannot be read, counts for
// nothing: it is a measurement, and the next night makes a new one.
func (n *Night) lastTook(ctx context.Context) error {
	n.took = &took{Day: n.Status.Day, Steps: map[Step]stepTook{}}
	data, err := n.Root.Read(ctx, path.Join(StateFolder, tookName))
	if err != nil || data == nil {
		return err
	}
	t := &took{}
	if json.Unmarshal(data, t) == nil && t.Day == n.Status.Day && t.Steps != nil {
		n.took = t
	}
	return nil
}

// keepRates notes what this night took by row, in one run or in several: the ingest by the rows that it read, the other
// steps by those of the day. What was not measured stands as an earlier night left it; without a build, or new rows, nothing is noted.
func (n *Night) keepRates(ctx context.Context) error {
	if err := n.measure(ctx); err != nil {
		return err
	}
	t := n.took
	j, err := n.journal(ctx, t.Day)
	if err != nil {
		return err
	}
	built := j.Steps[StepPublish]
	if built == nil || built.Rows < leastRows || t.Rows < leastRows || t.Records == 0 {
		return nil
	}
	r, err := n.lastRates(ctx)
	if err != nil {
		return err
	}
	if r == nil {
		r = &rates{Steps: map[Step]stepRate{}}
	}
	for s, took := range t.Steps {
		rows := built.Rows
		if s == StepIngest {
			rows = t.Rows
		}
		r.Steps[s] = took.by(rows)
	}
	r.Day, r.RowsPerRecord, r.SecondsPerRecord = t.Day, float64(t.Rows)/float64(t.Records), t.Seconds/float64(t.Records)
	return n.replaceJSON(ctx, ratesName, r)
}

func (t stepTook) by(rows int64) stepRate {
	return stepRate{CPUSecondsPerRow: t.CPUSeconds / float64(rows), BytesPerRow: float64(t.Bytes) / float64(rows)}
}

// lastRates reads what was noted last; nil when there is nothing, or nothing that can be read.
func (n *Night) lastRates(ctx context.Context) (*rates, error) {
	data, err := n.Root.Read(ctx, path.Join(StateFolder, ratesName))
	if err != nil || data == nil {
		return nil, err
	}
	r, err := parseRates(data)
	if err != nil {
		n.note("%v: there are no rates", err)
		return nil, nil
	}
	return r, nil
}

// replaceJSON writes a file of the state, unless it stands there already: a run that does nothing changes nothing.
func (n *Night) replaceJSON(ctx context.Context, name string, v any) error {
	data, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		return fmt.Errorf("encoding %s: %w", name, err)
	}
	data, key := append(data, '\n'), path.Join(StateFolder, name)
	if old, err := n.Root.Read(ctx, key); err != nil || bytes.Equal(old, data) {
		return err
	}
	return n.Replace(ctx, key, data)
}
