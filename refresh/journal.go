package refresh

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"tailgate/internal/fault"
	"tailgate/schemas"
)

// journal is what was done for a day: state/day=D.json, replaced whole after each step.
type journal struct {
	Day   string          `json:"day"`
	Good  bool            `json:"good"` // all steps of the day were done
	Steps map[Step]*entry `json:"steps"`
	// Again is the second reading of the day that is under way or was the last; null = none.
	Again *again `json:"again,omitempty"`
}

// entry is one step as it was done last.
type entry struct {
	Inputs string          `json:"inputs"` // digest of inputs and settings
	Output string          `json:"output"` // digest of what was made; "" = nothing to look at
	State  string          `json:"state"`
	Reason string          `json:"reason,omitempty"`
	At     time.Time       `json:"at"`
	Token  int64           `json:"fencing_token"`
	Rows   int64           `json:"rows"`
	Bytes  int64           `json:"bytes"`
	Result json.RawMessage `json:"result,omitempty"` // of the step, for those behind it
}

// again names a second reading of a day, so that a run which was killed goes on with it.
type again struct {
	Epoch string `json:"epoch"`
	Log   string `json:"log"`
	Done  bool   `json:"done"`
	// Replaced rows of other epochs were read again, and wait for nothing.
	Replaced int64 `json:"replaced"`
}

// journal reads the journal of a day; one that was never written is empty.
func (n *Night) journal(ctx context.Context, day string) (*journal, error) {
	j := &journal{Day: day, Steps: map[Step]*entry{}}
	data, err := n.Root.Read(ctx, journalFile(day))
	if err != nil || data == nil {
		return j, err
	}
	if err := json.Unmarshal(data, j); err != nil || j.Day != day {
		return nil, fault.Mark(fmt.Errorf("reading %s: not the journal of that day", n.Root.Path(journalFile(day))), fault.Data,
			"remove it: the day's steps are then done again")
	}
	if j.Steps == nil {
		j.Steps = map[Step]*entry{}
	}
	return j, nil
}

func (n *Night) writeJournal(ctx context.Context, j *journal) error {
	return n.replaceJournal(ctx, "write", j)
}

// replaceJournal writes the journal; what names the write for tests.
func (n *Night) replaceJournal(ctx context.Context, what string, j *journal) error {
	data, err := json.MarshalIndent(j, "", " ")
	if err != nil {
		return fmt.Errorf("encoding the journal: %w", err)
	}
	return n.replace(ctx, what, journalFile(j.Day), append(data, '\n'))
}

// result reads what a step left for others; false when it left nothing.
func (j *journal) result(s Step, into any) bool {
	e := j.Steps[s]
	return e != nil && e.Result != nil && json.Unmarshal(e.Result, into) == nil
}

// digestOf pins values by their JSON.
func digestOf(values ...any) string {
	h := sha256.New()
	for _, v := range values {
		data, err := json.Marshal(v)
		if err != nil {
			panic("refresh: a digest of what has no JSON: " + err.Error()) // plain structs of ours only
		}
		h.Write(append(data, '\n'))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// folderDigest pins a finished folder by its manifest; "" when it is not whole. A manifest that cannot be read is
// noted: the folder is made again.
func (n *Night) folderDigest(ctx context.Context, folder string) (string, error) {
	key := path.Join(folder, schemas.ManifestName)
	data, err := n.Root.Read(ctx, key)
	if err != nil || data == nil || isUnfinished(data) {
		return "", err
	}
	m, err := schemas.ParseManifest(n.Root.Path(key), data)
	if err != nil {
		n.note("%v: the folder is made again", err)
		return "", nil
	}
	list, err := n.Root.List(ctx, folder)
	if err != nil {
		return "", fmt.Errorf("listing %s: %w", n.Root.Path(folder), err)
	}
	sizes := map[string]int64{}
	for _, o := range list {
		sizes[strings.TrimPrefix(o.Key, folder+"/")] = o.Size
	}
	for _, f := range m.Files {
		name := path.Base(f.Name)
		if size, ok := sizes[name]; !ok || size != f.Bytes {
			n.note("%s is missing or cut: the folder is made again", n.Root.Path(path.Join(folder, name)))
			return "", nil
		}
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), nil
}

// fileDigest pins a file; "" when it is not there.
func (n *Night) fileDigest(ctx context.Context, key string) (string, error) {
	data, err := n.Root.Read(ctx, key)
	if err != nil || data == nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), nil
}

// note tells something in the status and in the log.
func (n *Night) note(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	n.Status.Notes = append(n.Status.Notes, text)
	n.Log.Warn(text)
}

// work is one step of one day that is done again only when something has changed.
type work struct {
	day    string
	step   Step
	inputs string // digest
	// output pins what the step makes; "" = it is not there.
	output func() (string, error)
	do     func(r *StepReport) (result any, err error)
}

// run does the work unless the journal has it, and tells whether it did.
func (n *Night) run(ctx context.Context, j *journal, w work) (did bool, err error) {
	n.crash("step-" + string(w.step))
	if err := context.Cause(ctx); err != nil {
		return false, fmt.Errorf("refreshing %s: %w", w.day, err)
	}
	r := StepReport{Step: w.step, Day: w.day, State: StepSkipped}
	defer func() { n.Status.Steps = append(n.Status.Steps, r) }()
	old := j.Steps[w.step]
	if old != nil && old.Inputs == w.inputs {
		now, err := w.output()
		if err != nil {
			r.State = StepFailed
			return false, err
		}
		if now == old.Output {
			r.Reason = old.Reason
			if old.State == StepOff {
				r.State = StepOff
			}
			return false, nil
		}
	}
	n.o.Progress(w.step, w.day)
	began, cpu := time.Now(), cpuSeconds()
	n.Log.Info("step begins", "step", w.step, "day", w.day)
	r.State = StepDone
	result, err := w.do(&r)
	r.Seconds, r.CPUSeconds = time.Since(began).Seconds(), cpuSeconds()-cpu
	if err != nil {
		r.State, r.Reason = StepFailed, err.Error()
		return false, err
	}
	e := &entry{Inputs: w.inputs, State: r.State, Reason: r.Reason, At: n.Now().UTC(), Token: n.Status.Token, Rows: r.Rows, Bytes: r.Bytes}
	if e.Output, err = w.output(); err != nil {
		return false, err
	}
	if result != nil {
		if e.Result, err = json.Marshal(result); err != nil {
			return false, errors.Join(errors.New("noting a step"), err)
		}
	}
	j.Steps[w.step] = e
	n.Log.Info("step done", "step", w.step, "day", w.day, "seconds", r.Seconds, "cpu_seconds", r.CPUSeconds, "rows", r.Rows, "bytes", r.Bytes)
	return true, n.writeJournal(ctx, j)
}
