package refresh

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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

// keepRates notes what this night took, where it read the log and built the day whole; else the earlier note stays.
func (n *Night) keepRates(ctx context.Context) error {
	in := n.Status.Ingest
	if in == nil || in.Rows < leastRows || in.Records == 0 {
		return nil
	}
	r := rates{Day: n.Status.Day, RowsPerRecord: float64(in.Rows) / float64(in.Records), Steps: map[Step]stepRate{}}
	for _, s := range n.Status.Steps {
		if s.State != StepDone || s.Day != n.Status.Day || s.Step == StepDrift {
			continue
		}
		rows := float64(in.Rows)
		rate := stepRate{CPUSecondsPerRow: s.CPUSeconds / rows, BytesPerRow: float64(s.Bytes) / rows}
		if s.Step == StepIngest {
			r.SecondsPerRecord = s.Seconds / float64(in.Records)
		}
		r.Steps[s.Step] = rate
	}
	if len(r.Steps) < 2 {
		return nil
	}
	data, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return fmt.Errorf("encoding the rates: %w", err)
	}
	return n.Replace(ctx, "state/"+ratesName, append(data, '\n'))
}
