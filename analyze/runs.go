package analyze

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"tailgate/schemas"
)

// RunRows are the rows of the runs table: one per run that has a manifest, in the order of the inputs, with the
// name of the gate and its verdict where there is one. Shards of a run are one row.
func (r *Report) RunRows() ([]schemas.Run, error) {
	var out []schemas.Run
	for _, in := range r.view.d.Inputs {
		m := in.Manifest
		if m == nil || slices.ContainsFunc(out, func(have schemas.Run) bool { return have.RunID == m.RunID }) {
			continue
		}
		settings, err := json.Marshal(m.Settings)
		if err != nil {
			return nil, fmt.Errorf("encoding the settings of run %s: %w", m.RunID, err)
		}
		row := schemas.Run{RunID: m.RunID, StartedAt: m.StartedAt, Labels: m.Labels, Settings: string(settings), TraceSHA256: inputSum(m),
			Model: label(m, "model"), Engine: label(m, "engine"), GPU: label(m, "gpu"), GPUCount: label(m, "gpu_count"), Parallelism: label(m, "parallelism")}
		if r.gate != nil {
			gate, verdict := r.gate.Name, r.Verdict()
			row.Gate, row.Verdict = &gate, &verdict
		}
		out = append(out, row)
	}
	return out, nil
}

// inputSum is the sha256 of the trace that a run replayed.
func inputSum(m *schemas.Manifest) string {
	var sums []string
	for _, in := range m.Inputs {
		sums = append(sums, in.SHA256)
	}
	return strings.Join(sums, ",")
}

// label is one of the five labels that a capacity claim needs, null when the run has none.
func label(m *schemas.Manifest, key string) *string {
	if v, ok := m.Labels[key]; ok {
		return &v
	}
	return nil
}
