package capacity

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"tailgate/internal/fault"
	"tailgate/internal/smallfile"
	"tailgate/schemas"
)

// Answers of a checklist.
const (
	ItemDone    = "done"
	ItemMissing = "not done"
	ItemUnknown = "cannot tell"
)

// Item is one question that stands before going live.
type Item struct {
	What   string `json:"what"`
	Answer string `json:"answer"`
	Why    string `json:"why"`
	File   string `json:"file"` // that shows it
}

// Checklist are the items proved from the files of a capacity test.
type Checklist []Item

// Done tells that nothing is missing or unknown.
func (c Checklist) Done() bool {
	return !slices.ContainsFunc(c, func(i Item) bool { return i.Answer != ItemDone })
}

// Distances of input lengths, and what counts as covered.
const coveredKS = .05

// ReadChecklist proves the eight items from the folder of a capacity test.
func ReadChecklist(dir string) (Checklist, error) {
	var j journal
	if err := readJSON(filepath.Join(dir, JournalName), &j); err != nil {
		return nil, err
	}
	var e *Envelope
	if err := readJSON(filepath.Join(dir, envelopeJSON), &e); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	c := checker{e: e, runs: slices.DeleteFunc(j.Runs, func(m Made) bool { return len(m.Invalid) > 0 })}
	return Checklist{c.loops(), c.lengths(), c.bursts(), c.tails(), c.knee(), c.safe(), c.metadata(), c.soak()}, nil
}

func readJSON(path string, into any) error {
	data, err := smallfile.Data(path)
	if err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fault.Mark(fmt.Errorf("reading %s: %w", path, err), fault.Data, "")
	}
	return nil
}

type checker struct {
	e    *Envelope // null: the test has not ended
	runs []Made
}

// run is the first run that does.
func (c checker) run(does func(Made) bool) *Made {
	if i := slices.IndexFunc(c.runs, does); i >= 0 {
		return &c.runs[i]
	}
	return nil
}

func found(what, why string, m *Made, missing string) Item {
	if m == nil {
		return Item{what, ItemMissing, missing, ""}
	}
	return Item{what, ItemDone, why, m.Folder}
}

func (c checker) loops() Item {
	const what = "closed and open loop"
	closed := c.run(func(m Made) bool { return m.Load.Concurrency > 0 })
	open := c.run(func(m Made) bool { return m.Load.Concurrency == 0 })
	switch {
	case closed == nil:
		return Item{what, ItemMissing, "no closed loop was run", ""}
	case open == nil:
		return Item{what, ItemMissing, "no open loop was run", ""}
	}
	return Item{what, ItemDone, "both were run", closed.Folder + ", " + open.Folder}
}

func (c checker) lengths() Item {
	const what = "lengths of the traffic"
	m := c.run(func(m Made) bool {
		return m.Load.Layer == LayerSearch && m.Facts.InputKS <= coveredKS && !m.Facts.OneLength
	})
	return found(what, "input lengths are within a distance (KS) of 0.05 of the trace's", m, "no searched run has the input lengths of the trace (KS up to 0.05)")
}

func (c checker) bursts() Item {
	m := c.run(func(m Made) bool {
		return m.Load.Concurrency == 0 && (len(m.Load.Bursts) > 0 || m.Load.Cell.Pattern == PatternReal || m.Load.Cell.Pattern == PatternBursty)
	})
	return found("bursts or the real trace", "tested", m, "neither real nor bursty arrivals were tested")
}

// tailRules are the families of limits that a gate must have; each is satisfied by one of its names.
var tailRules = [...][]string{{"ttft"}, {"itl", "tpot", "inter_chunk"}, {"e2e"}, {"success_rate"}, {"queue_growth", "queue_depth_max", "queue_time", "queue"}}

func (c checker) tails() Item {
	const what = "tails of ttft, itl or tpot, e2e, success and queue kept"
	if c.e == nil || len(c.e.Rows) == 0 {
		return Item{what, ItemUnknown, "the test has not ended", ""}
	}
	run := c.e.Rows[0].Run
	m := c.run(func(m Made) bool { return m.Folder == run })
	if m == nil {
		return Item{what, ItemUnknown, "no rate is confirmed", ""}
	}
	var absent, broken, open []string
	for _, names := range tailRules {
		seen := false
		for _, f := range m.Facts.Tails {
			name, _, _ := strings.Cut(f.Rule, " ")
			base, p, percentile := strings.Cut(name, "_p")
			tail := percentile && slices.Contains(names, base) && p >= "95"
			if !tail && !slices.Contains(names, name) {
				continue
			}
			seen = true
			switch f.Verdict {
			case schemas.VerdictFail:
				broken = append(broken, f.Rule)
			case schemas.VerdictInconclusive:
				open = append(open, f.Rule)
			}
		}
		if !seen {
			absent = append(absent, names[0])
		}
	}
	switch {
	case len(absent) > 0:
		return Item{what, ItemMissing, "the gate has no limit on " + strings.Join(absent, ", "), run}
	case len(broken) > 0:
		return Item{what, ItemMissing, "broken: " + strings.Join(broken, ", "), run}
	case len(open) > 0 && c.e.Rows[0].State != SearchConfirmed:
		return Item{what, ItemUnknown, "inconclusive: " + strings.Join(open, ", "), run}
	}
	return Item{what, ItemDone, "kept at the confirmed rate", run}
}

func (c checker) knee() Item {
	const what = "knee found"
	switch {
	case c.e == nil || c.e.Ladder == nil:
		return Item{what, ItemUnknown, "the test has not ended", ""}
	case c.e.Ladder.Knee == 0:
		return Item{what, ItemMissing, "the closed loop was not driven into saturation", ""}
	}
	return Item{what, ItemDone, fmt.Sprintf("at about %.0f at a time", c.e.Ladder.Knee), envelopeJSON}
}

func (c checker) safe() Item {
	const what = "Safe QPS from the gate, with headroom"
	if c.e == nil || len(c.e.Rows) == 0 {
		return Item{what, ItemUnknown, "the test has not ended", ""}
	}
	r := c.e.Rows[0]
	switch {
	case r.State != SearchConfirmed:
		return Item{what, ItemMissing, fmt.Sprintf("inconclusive, about %.0f more minutes are needed", r.NeedsMinutes), envelopeJSON}
	case r.Headroom60 == nil:
		return Item{what, ItemMissing, "no rate is known to hold with one replica less", envelopeJSON}
	case *r.Headroom60 < c.e.Growth:
		return Item{what, ItemMissing, fmt.Sprintf("headroom %.3g with one replica less, %.3g is declared", *r.Headroom60, c.e.Growth), envelopeJSON}
	}
	return Item{what, ItemDone, fmt.Sprintf("%.4g/s, headroom %.3g with one replica less", r.SafeQPS, *r.Headroom60), envelopeJSON}
}

func (c checker) metadata() Item {
	const what = "metadata complete"
	if c.e == nil {
		return Item{what, ItemUnknown, "the test has not ended", ""}
	}
	missing := missingLabels(c.e.Labels)
	if c.e.TraceSHA256 == "" {
		missing = append(missing, "trace sha256")
	}
	if c.run(func(m Made) bool { return !m.Facts.Target }) != nil {
		missing = append(missing, "what the target tells of itself")
	}
	if len(missing) > 0 {
		return Item{what, ItemMissing, "missing: " + strings.Join(missing, ", "), envelopeJSON}
	}
	return Item{what, ItemDone, "labels, trace and target", envelopeJSON}
}

func (c checker) soak() Item {
	const what = "soak with recovery"
	switch {
	case c.e == nil:
		return Item{what, ItemUnknown, "the test has not ended", ""}
	case c.e.Soak == nil:
		return Item{what, ItemMissing, "no soak was run", ""}
	case len(c.e.Soak.Bursts) == 0:
		return Item{what, ItemMissing, "the soak had no burst to recover from", c.e.Soak.Run}
	case c.e.Soak.Verdict == schemas.VerdictFail:
		return Item{what, ItemMissing, "the soak broke the gate", c.e.Soak.Run}
	case c.e.Soak.Verdict != schemas.VerdictPass:
		return Item{what, ItemUnknown, "the soak's verdict is " + c.e.Soak.Verdict, c.e.Soak.Run}
	}
	if !c.e.Soak.recovered() {
		return Item{what, ItemMissing, c.e.Soak.recoveryText(), c.e.Soak.Run}
	}
	return Item{what, ItemDone, "held, " + c.e.Soak.recoveryText(), c.e.Soak.Run}
}

// WriteText writes the list for people.
func (c Checklist) WriteText(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for i, item := range c {
		line := fmt.Sprintf("%d\t%s\t%s\t%s", i+1, item.Answer, item.What, item.Why)
		if item.File != "" {
			line += " (" + item.File + ")"
		}
		if _, err := fmt.Fprintln(t, line); err != nil {
			return fmt.Errorf("writing the checklist: %w", err)
		}
	}
	return t.Flush()
}
