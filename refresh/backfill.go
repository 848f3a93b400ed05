package refresh

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tailgate/anonymize"
)

// backfill builds the days of the run again, in order. A day whose key is gone is read again under a new one, into a
// log of its own beside what was read before.
func (n *Night) backfill(ctx context.Context) (did bool, err error) {
	days, err := daysFrom(n.o.Day, n.Status.Day)
	if err != nil {
		return false, err
	}
	newest := days[len(days)-1]
	n.Day = newest
	if did, err = n.ingest(ctx); err != nil { // what the log has by now
		return did, err
	}
	for _, day := range days {
		epoch, err := n.readAgain(ctx, day)
		if err != nil {
			return did, fmt.Errorf("building %s again: %w", day, err)
		}
		built, err := n.build(ctx, day, epoch)
		did = did || epoch != "" || built
		if err != nil {
			return did, err
		}
	}
	return did, nil
}

// daysFrom lists the days from one to another.
func daysFrom(from, to string) ([]string, error) {
	at, err := time.Parse(time.DateOnly, from)
	if err != nil {
		return nil, fmt.Errorf("listing days: %w", err)
	}
	days := []string{from}
	for days[len(days)-1] < to {
		at = at.AddDate(0, 0, 1)
		days = append(days, at.Format(time.DateOnly))
	}
	return days, nil
}

// needsAgain tells whether rows of the day wait that its key cannot take any more, and begins a second reading then.
func (n *Night) needsAgain(ctx context.Context, j *journal) (bool, error) {
	if j.Again != nil && !j.Again.Done { // one that was killed goes on, as long as its key lives
		_, err := n.hash.of(j.Again.Epoch)
		if err == nil || !errors.Is(err, anonymize.ErrDestroyed) {
			return err == nil, err
		}
		j.Again = nil
	}
	states, err := n.look(ctx, j.Day)
	if err != nil {
		return false, err
	}
	s := &states[0]
	if s.Fault == nil && s.Refused == 0 {
		return false, nil
	}
	if s.Live != nil {
		if _, err := n.hash.of(s.Live.Epoch); err == nil && s.Fault == nil && s.Waiting > 0 {
			return false, nil // the live epoch takes what waits
		} else if err != nil && !errors.Is(err, anonymize.ErrDestroyed) {
			return false, err
		}
	}
	epoch, err := n.Keys.NewEpoch(ctx, n.Now())
	if err != nil {
		return false, err
	}
	j.Again = &again{Epoch: epoch, Log: "again " + j.Day + " " + epoch}
	return true, n.writeJournal(ctx, j)
}

// readAgain reads a day again under a new epoch where that is needed; the epoch is "" where it is not.
func (n *Night) readAgain(ctx context.Context, day string) (epoch string, err error) {
	j, err := n.journal(ctx, day)
	if err != nil {
		return "", err
	}
	need, err := n.needsAgain(ctx, j)
	if err != nil || !need {
		return "", err
	}
	x, err := n.hash.of(j.Again.Epoch)
	if err != nil {
		return "", err
	}
	midnight, err := time.Parse(time.DateOnly, day)
	if err != nil {
		return "", fmt.Errorf("reading a day again: %w", err)
	}
	mark, err := n.mark(day)
	if err != nil {
		return "", err
	}
	o := n.ingestOptions()
	o.Anonymizer, o.Footer = x, footer(x, n.Tool)
	o.Log, o.From, o.OnlyDay = j.Again.Log, midnight.Add(-clockMargin), day
	// Rows that were late are behind the mark: everything up to now may be of the day.
	if now := n.Now().UTC(); now.After(mark) {
		mark = now
	}
	if _, err := n.read(ctx, day, o, mark); err != nil {
		return "", err
	}
	return j.Again.Epoch, nil
}

// clockMargin is how far the log's clock may lie behind that of a gateway.
const clockMargin = time.Hour
