package trace

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"tailgate/internal/fault"
	"tailgate/internal/smallfile"
)

// SidecarSuffix is appended to the name of a JSONL trace for the file that describes it.
const SidecarSuffix = ".meta.json"

// KeyTraceMeta is the Parquet footer key that holds what a sidecar holds.
const KeyTraceMeta = "tailgate.trace_meta"

// sidecar is the description of a trace file. A field that is left out is not declared: readers fall back to
// the format.
type sidecar struct {
	Format     string     `json:"format,omitempty"`
	Tool       string     `json:"tool_version,omitempty"`
	Rows       int64      `json:"rows"`
	SHA256     string     `json:"sha256,omitempty"` // of the described file; absent inside Parquet
	Unit       string     `json:"time_unit,omitempty"`
	BlockSize  int        `json:"block_size,omitempty"`
	Tokenizer  string     `json:"tokenizer,omitempty"`
	Convention string     `json:"convention,omitempty"`
	Epoch      string     `json:"epoch,omitempty"`
	ZeroBased  bool       `json:"zero_based,omitempty"` // stamps count from the schedule's zero, not from the first row
	StartedAt  *time.Time `json:"started_at,omitempty"`
	LengthUs   int64      `json:"length_us,omitempty"`
	LeadInUs   int64      `json:"lead_in_us,omitempty"`
	QuantumUs  *int64     `json:"quantum_us,omitempty"` // 0 = the clock is fine; absent = not known
	Spread     bool       `json:"spread,omitempty"`
	Seed       uint64     `json:"seed,omitempty"`
	Source     string     `json:"source_sha256,omitempty"` // of the file that the trace was made from
}

// readSidecar reads the sidecar of the trace at path; nil when there is none.
func readSidecar(path string) (*sidecar, error) {
	name := path + SidecarSuffix
	data, err := smallfile.Data(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	s, err := parseSidecar(data)
	if err != nil {
		return nil, fault.Mark(fmt.Errorf("reading %s: %w", name, err), fault.Data, "mend it, or remove it to read the trace without it")
	}
	return s, nil
}

// parseSidecar reads a sidecar and reports every fault.
func parseSidecar(data []byte) (*sidecar, error) {
	s := sidecar{Rows: -1}
	if err := json.Unmarshal(bytes.TrimSpace(data), &s); err != nil {
		return nil, fmt.Errorf("not a trace description: %w", err)
	}
	var errs []error
	if err := (Options{Unit: s.Unit, BlockSize: s.BlockSize}).Validate(); err != nil {
		errs = append(errs, err)
	}
	if s.LengthUs < 0 || s.LeadInUs < 0 || s.LengthUs > maxStampUs || s.LeadInUs > s.LengthUs {
		errs = append(errs, errors.New("length_us and lead_in_us must be >= 0, lead_in_us not above length_us"))
	}
	if s.QuantumUs != nil && (*s.QuantumUs < 0 || *s.QuantumUs > maxStampUs) {
		errs = append(errs, errors.New("quantum_us must be >= 0"))
	}
	switch s.Convention {
	case "", ConventionCumulative, ConventionDelta:
	default:
		errs = append(errs, fmt.Errorf("convention %q is not cumulative or delta", s.Convention))
	}
	return &s, errors.Join(errs...)
}

// describe takes what the sidecar declares; a nil sidecar declares nothing.
func (s *sidecar) describe(m *Meta) {
	if s == nil {
		return
	}
	m.Tokenizer, m.Epoch = s.Tokenizer, s.Epoch
	m.LengthUs, m.LeadInUs = s.LengthUs, s.LeadInUs
	m.Spread, m.Seed = s.Spread, s.Seed
	if s.QuantumUs != nil {
		m.QuantumUs = *s.QuantumUs
	}
	if s.StartedAt != nil {
		m.StartedAt = s.StartedAt.UTC()
	}
}

// sidecarOf describes the trace as it is written: stamps from the schedule's zero, in unit.
func (s *Stream) sidecarOf(format, unit, tool string) *sidecar {
	m := &s.Meta
	quantum := m.QuantumUs
	side := &sidecar{
		Format: readAs(format), Tool: tool, Rows: s.rows, Unit: unit, BlockSize: m.BlockSize, Tokenizer: m.Tokenizer,
		Convention: conventionOf(format), Epoch: m.Epoch, ZeroBased: true, LengthUs: s.LengthUs(), LeadInUs: m.LeadInUs,
		QuantumUs: &quantum, Spread: m.Spread, Seed: m.Seed, Source: m.SHA256,
	}
	if !m.StartedAt.IsZero() {
		at := m.StartedAt.UTC()
		side.StartedAt = &at
	}
	return side
}

// encode renders the sidecar.
func (s *sidecar) encode() ([]byte, error) {
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encoding the trace's description: %w", err)
	}
	return append(data, '\n'), nil
}
