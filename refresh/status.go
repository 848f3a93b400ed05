package refresh

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// StatusSchema names the layout of status.json; a change that is more than an addition gets another name.
const StatusSchema = "tailgate.refresh_status/1"

// Outcomes of a run.
const (
	OutcomeDone      = "done"
	OutcomeNoNewData = "no_new_data" // nothing to do, or nothing arrived on the day; exit 8
	OutcomeLate      = "late_data"   // done, but rows of the day wait; exit 9
	OutcomeDrift     = "drift"       // done, but the traffic is not that of the last good day; exit 3
	OutcomeFailed    = "failed"
)

// Status is what one run did: status.json of the root and of the day.
type Status struct {
	Schema  string `json:"schema"`
	Tool    string `json:"tool_version"`
	Day     string `json:"day"`     // UTC day that was asked for
	Outcome string `json:"outcome"` // an Outcome… constant
	Exit    int    `json:"exit"`    // exit code without --cron
	Error   string `json:"error,omitempty"`
	Hint    string `json:"hint,omitempty"`

	StartedAt time.Time `json:"started_at"`
	EndedAt   time.Time `json:"ended_at"`
	Token     int64     `json:"fencing_token"`

	// LastGoodDay is the newest day with a complete set of outputs; "" = none yet.
	LastGoodDay string    `json:"last_good_day"`
	LastGoodAt  time.Time `json:"last_good_at"` // when it became that

	Steps    []StepReport    `json:"steps"`
	Ingest   *IngestStatus   `json:"ingest,omitempty"`
	Days     []DayStatus     `json:"days"` // that were built or looked at, oldest first
	Drift    *DriftStatus    `json:"drift,omitempty"`
	Keys     []KeyStatus     `json:"keys"`
	Privacy  *PrivacyStatus  `json:"privacy,omitempty"`
	Headroom *HeadroomStatus `json:"headroom,omitempty"`
	Retained *RetainStatus   `json:"retention,omitempty"`
	Notes    []string        `json:"notes"`
}

// StepReport is what became of one step of one day.
type StepReport struct {
	Step       Step    `json:"step"`
	Day        string  `json:"day"`
	State      string  `json:"state"` // StepDone, StepSkipped, StepOff or StepFailed
	Reason     string  `json:"reason,omitempty"`
	Seconds    float64 `json:"seconds"`
	CPUSeconds float64 `json:"cpu_seconds"` // of this process; 0 where the system does not tell
	Bytes      int64   `json:"bytes"`       // written
	Rows       int64   `json:"rows"`        // worked on
}

// IngestStatus is what the run read.
type IngestStatus struct {
	Records    int64             `json:"records"` // offsets consumed
	Rows       int64             `json:"rows"`
	Skipped    map[string]int64  `json:"skipped"`      // records by reason
	Dead       map[string]int64  `json:"dead_letters"` // records by reason
	Segments   int               `json:"segments"`
	Lost       int64             `json:"lost"` // offsets that retention deleted before they were read
	Partitions []PartitionStatus `json:"partitions"`
}

// PartitionStatus is how far one partition was read.
type PartitionStatus struct {
	Topic     string `json:"topic"` // token
	Partition int32  `json:"partition"`
	Next      int64  `json:"next"`    // offset to go on from
	Waiting   int64  `json:"waiting"` // offsets left to the end that the log had; -1 when not known
}

// DayStatus is the state of one day.
type DayStatus struct {
	Day       string `json:"day"`
	Epoch     string `json:"epoch"`
	Rows      int64  `json:"rows"`
	Complete  bool   `json:"complete"` // every log was read beyond the day's end
	Late      int64  `json:"late"`     // rows that came after an earlier build and are in this one
	Refused   int64  `json:"refused"`  // rows under another epoch, that no build takes
	Waiting   int64  `json:"waiting"`  // late rows that the live build has not
	OpenUntil string `json:"open_until,omitempty"`
}

// DriftStatus tells how far the day is from the last good one.
type DriftStatus struct {
	Against string   `json:"against"` // day; "" = there is none to compare with
	Metrics int      `json:"metrics"`
	Drifted []string `json:"drifted"` // metrics above their limit
}

// KeyStatus is the age of one key.
type KeyStatus struct {
	Epoch     string    `json:"epoch"`
	Kind      string    `json:"kind"` // block or pseudonym
	CreatedAt time.Time `json:"created_at"`
	DueAt     time.Time `json:"due_at"` // when it is to be destroyed
	Overdue   bool      `json:"overdue"`
	Reason    string    `json:"reason,omitempty"` // why an overdue key stays
}

// PrivacyStatus sums up privacy.json.
type PrivacyStatus struct {
	Canary           string  `json:"canary"` // CanaryClean or CanaryFound
	SuppressedLabels int64   `json:"suppressed_labels"`
	RekeyedRows      int64   `json:"rekeyed_rows"`
	SharedBlocks     float64 `json:"shared_block_share"`
}

// HeadroomStatus sums up headroom.json.
type HeadroomStatus struct {
	UsedShare       float64  `json:"used_share"`         // of Safe QPS, at the day's highest peak
	UsedShareMinus1 float64  `json:"used_share_minus_1"` // of N−1
	DaysLeft        *float64 `json:"days_until_breach"`  // null = no breach is in sight, or it cannot be told
	Stale           []string `json:"stale"`              // what left the tested band
	Over            bool     `json:"over"`
}

// RetainStatus sums up what retention did.
type RetainStatus struct {
	Removed       []string `json:"removed"` // keys below the root
	RemovedBytes  int64    `json:"removed_bytes"`
	DestroyedKeys []string `json:"destroyed_keys"`
	Kept          []string `json:"kept"` // what is past its time and stays, with the reason
	// StillNamed are removed things that something which stays was made of.
	StillNamed  []string `json:"still_named"`
	SegmentRows int64    `json:"segment_rows"` // taken out of segments that stay
	LettersGone int64    `json:"dead_letters"` // in segments that went
}

func (s *Status) encode() ([]byte, error) {
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encoding the status: %w", err)
	}
	return append(data, '\n'), nil
}

// ParseStatus reads status.json.
func ParseStatus(data []byte) (*Status, error) {
	s := &Status{}
	if err := json.Unmarshal(data, s); err != nil {
		return nil, fmt.Errorf("reading the status: %w", err)
	}
	if s.Schema != StatusSchema {
		return nil, fmt.Errorf("reading the status: %w", errors.New("not a "+StatusSchema))
	}
	return s, nil
}
