package capacity

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"tailgate/analyze"
	"tailgate/internal/atomicfile"
	"tailgate/internal/fault"
	"tailgate/internal/smallfile"
)

// JournalName is the file in which a capacity test notes what it has finished.
const JournalName = "capacity.json"

// Made is a run that was made, with what it says.
type Made struct {
	Load    Load     `json:"load"`
	Folder  string   `json:"folder"` // below the test's folder
	Invalid []string `json:"invalid"`
	Verdict string   `json:"verdict"` // of the gate on the whole run
	// Counts has one list of blocks for each share rule of the gate.
	Counts [][]Count `json:"counts,omitempty"`
	Facts  RunFacts  `json:"facts"`
}

// RunFacts are the figures of a run that the envelope quotes.
type RunFacts struct {
	Seconds          float64  `json:"seconds"` // of the measured schedule
	Scheduled        int      `json:"scheduled"`
	SuccessRate      float64  `json:"success_rate"`
	RequestsPerS     float64  `json:"requests_per_s"`
	OutputTokensPerS float64  `json:"output_tokens_per_s"`
	Inflight         float64  `json:"inflight"`
	MeanE2EMs        float64  `json:"mean_e2e_ms"`
	Tails            []Figure `json:"tails,omitempty"`
	// Latency are the tails of ttft, tpot, itl and e2e, failures infinite.
	Latency    []analyze.MetricTail `json:"latency"`
	Recoveries []analyze.Recovery   `json:"recoveries,omitempty"` // from declared bursts
	Gauges     Gauges               `json:"gauges"`
	Growing    bool                 `json:"growing"`
	OutputMode string               `json:"output_mode"`
	// OutputRatio is the output tokens that came over those asked; 0 = not known.
	OutputRatio float64 `json:"output_ratio"`
	OneLength   bool    `json:"one_length"` // all prompts are of one length
	// InputKS is the Kolmogorov–Smirnov distance of the input lengths from those of the trace.
	InputKS float64 `json:"input_ks"`
	Capped  bool    `json:"capped"` // sends waited for the cap on requests in flight
	// Target is what the cluster told of itself was kept with the run.
	Target bool `json:"target_told"`
}

// Figure is one rule's observed value in a run.
type Figure struct {
	Rule     string  `json:"rule"`
	Limit    string  `json:"limit"`
	Observed float64 `json:"observed"` // −1 = none or infinite
	Verdict  string  `json:"verdict"`
}

// journal is the list of finished runs.
type journal struct {
	PlanSHA256 string `json:"plan_sha256"`
	Runs       []Made `json:"runs"`
	Draws      []Draw `json:"draws,omitempty"`

	dir string
}

// openJournal reads the journal of dir, or begins one. A journal of another plan is a fault: its runs answer another
// question.
func openJournal(dir, plan string) (*journal, error) {
	j := &journal{PlanSHA256: plan, dir: dir}
	data, err := smallfile.Data(filepath.Join(dir, JournalName))
	if errors.Is(err, fs.ErrNotExist) {
		return j, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the journal: %w", err)
	}
	if err := json.Unmarshal(data, j); err != nil {
		return nil, fault.Mark(fmt.Errorf("reading %s: %w", filepath.Join(dir, JournalName), err), fault.Data, "")
	}
	if j.PlanSHA256 != plan {
		return nil, fault.Mark(fmt.Errorf("%s holds runs of another plan, gate or trace", dir), fault.Usage, "give another folder with --out")
	}
	return j, nil
}

// find returns the valid run of a load.
func (j *journal) find(l Load) *Made {
	for i := range j.Runs {
		if m := &j.Runs[i]; m.Load.Name == l.Name && len(m.Invalid) == 0 {
			return m
		}
	}
	return nil
}

// tries counts the runs that were made of a load.
func (j *journal) tries(l Load) int {
	n := 0
	for _, m := range j.Runs {
		if m.Load.Name == l.Name {
			n++
		}
	}
	return n
}

// add notes a run, whole or not at all.
func (j *journal) add(m Made) error {
	j.Runs = append(j.Runs, m)
	return j.write()
}

// draw is what was noted of the arrivals of a cell; null = nothing yet.
func (j *journal) draw(c Cell, cluster string) *Draw {
	for i := range j.Draws {
		if d := &j.Draws[i]; d.Cell == c && d.Cluster == cluster {
			return d
		}
	}
	return nil
}

// addDraw notes the arrivals of a cell.
func (j *journal) addDraw(d Draw) error {
	j.Draws = append(j.Draws, d)
	return j.write()
}

func (j *journal) write() error {
	data, err := json.MarshalIndent(j, "", " ")
	if err != nil {
		return fmt.Errorf("writing the journal: %w", err)
	}
	return atomicfile.WriteFile(filepath.Join(j.dir, JournalName), append(data, '\n'))
}
