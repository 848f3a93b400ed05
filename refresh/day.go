package refresh

import (
	"fmt"
	"time"
)

// endOfDay is the midnight that ends a UTC day.
func endOfDay(day string) (time.Time, error) {
	at, err := time.Parse(time.DateOnly, day)
	if err != nil {
		return time.Time{}, fmt.Errorf("finding the end of a day: %w", err)
	}
	return at.AddDate(0, 0, 1), nil
}

// after is when something of a day goes that is kept for so long; zero = never.
func after(day string, keep time.Duration) time.Time {
	end, err := endOfDay(day)
	if err != nil || keep == 0 {
		return time.Time{}
	}
	return end.Add(keep)
}
