package refresh

import (
	_ "embed"
	"fmt"
	"time"

	"tailgate/internal/page"
)

//go:embed page.html
var pageText string

var statusPage = page.New(pageText, map[string]any{
	"time":    func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") },
	"seconds": func(v float64) string { return fmt.Sprintf("%.1f s", v) },
	"bytes":   sizeText,
	"good":    func(outcome string) bool { return outcome == OutcomeDone || outcome == OutcomeNoNewData },
	"said":    (*Status).said,
	"deref":   func(v *float64) float64 { return *v },
	"percent": func(v float64) string { return fmt.Sprintf("%.1f %%", 100*v) },
})

// page renders the status for people: one file, nothing to fetch.
func (s *Status) page() ([]byte, error) {
	b, err := statusPage.Render(s)
	if err != nil {
		return nil, fmt.Errorf("writing the page: %w", err)
	}
	return b, nil
}

// sizeText is a size for people.
func sizeText(n int64) string {
	for _, u := range []struct {
		size float64
		name string
	}{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if v := float64(n) / u.size; v >= 1 {
			return fmt.Sprintf("%.1f %s", v, u.name)
		}
	}
	return fmt.Sprintf("%d B", n)
}
