package analyze

import (
	"fmt"
	"math"

	"github.com/HdrHistogram/hdrhistogram-go"

	"tailgate/schemas"
)

// Histograms of stored tails: three significant digits, so that a value read from one is up to 0.1 % below the exact one.
const (
	histDigits = 3
	histMaxUs  = 24 * 60 * 60 * 1e6 // longer times count as a day
	histError  = .001
)

// histogram is what is stored of the finite values of a tail, for merging over runs.
type histogram struct {
	bins []schemas.HistBin
	hdr  string // HdrHistogram V2 in base64
}

// recorder collects values in µs.
type recorder struct{ *hdrhistogram.Histogram }

func newRecorder() recorder { return recorder{hdrhistogram.New(1, histMaxUs, histDigits)} }

// add counts n values; those out of range count at its ends.
func (r recorder) add(us float64, n int64) {
	// The value is inside the range, which is all that it could be refused for.
	_ = r.RecordValues(int64(min(max(math.Round(us), 0), histMaxUs)), n)
}

// histogram keeps the bins that hold something.
func (r recorder) histogram() (histogram, error) {
	encoded, err := r.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		return histogram{}, fmt.Errorf("encoding a histogram: %w", err)
	}
	h := histogram{hdr: string(encoded)}
	for _, bar := range r.Distribution() {
		if bar.Count > 0 {
			h.bins = append(h.bins, schemas.HistBin{UpperUs: bar.To, N: bar.Count})
		}
	}
	return h, nil
}

// histogram records the finite values of a metric's tail; there is none of counts of tokens.
func (d *Data) histogram(rows []int32, m metric) (histogram, error) {
	if m == outputTokens {
		return histogram{}, nil
	}
	rows = d.tails(rows)
	r := newRecorder()
	if m.pooled() {
		for _, i := range rows {
			if d.ok(i) {
				for _, gap := range d.gapsOf(m, i) {
					r.add(float64(gap), 1)
				}
			}
		}
		return r.histogram()
	}
	for _, i := range rows {
		if x := d.value(m, i); d.ok(i) && !math.IsNaN(x) {
			r.add(x, 1)
		}
	}
	return r.histogram()
}
