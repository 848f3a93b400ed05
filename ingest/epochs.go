package ingest

import (
	"errors"
	"fmt"

	"tailgate/schemas"
)

// DayKeys are what the rows of one day are made with.
type DayKeys struct {
	Anonymizer Anonymizer
	Epoch      string
}

// errDayKeys marks an error of Options.ByDay: it ends the run, since another try may have the keys.
var errDayKeys = errors.New("choosing the keys of a day")

// useDay makes the rows to come those of a day of arrival.
func (m *rowMaker) useDay(day string) error {
	if m.byDay == nil || day == m.day {
		return nil
	}
	k, err := m.byDay(day)
	if err != nil {
		return fmt.Errorf("%w %s: %w", errDayKeys, day, err)
	}
	m.anon, m.epoch, m.day = k.Anonymizer, k.Epoch, day
	return nil
}

// noteEpoch keeps the epoch of a day's rows; nothing where the footer's is that of all rows.
func (f *segmentFacts) noteEpoch(day, epoch string) {
	if epoch == "" {
		return
	}
	if f.Epochs == nil {
		f.Epochs = map[string]string{}
	}
	f.Epochs[day] = epoch
}

// epochOf is the epoch of the segment's rows of a day.
func (s *segmentFile) epochOf(day string) string {
	if e, ok := s.facts.Epochs[day]; ok {
		return e
	}
	return s.footer[schemas.KeyEpoch]
}
