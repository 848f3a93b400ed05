package ingest_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tailgate/ingest"
	"tailgate/internal/parquetio"
	"tailgate/schemas"
)

// TestReconciling is design's rule to the letter: the first min(our full blocks, ⌊L/16⌋) ids stay, every later
// position has an id of its own, and reconciled says how the counts compare. Where both agree nothing is to be
// reconciled, and the tail keeps its id.
func TestReconciling(t *testing.T) {
	const bytesPerToken = 4 // of the fake anonymizer
	text := func(tokens int) string { return strings.Repeat("w", tokens*bytesPerToken) }
	for _, tc := range []struct {
		ours, engine, keep int
		reconciled         string
	}{
		{64, 64, 4, "equal"}, {70, 70, 5, "equal"}, // the tail of 6 is the same tail
		{64, 70, 4, "padded"}, {64, 80, 4, "padded"}, {64, 95, 4, "padded"}, {70, 75, 4, "padded"}, {15, 16, 0, "padded"},
		{70, 64, 4, "cut"}, {64, 63, 3, "cut"}, {70, 69, 4, "cut"}, {80, 15, 0, "cut"}, {70, 1, 0, "cut"}, {95, 17, 1, "cut"},
	} {
		t.Run(fmt.Sprintf("ours %d engine %d", tc.ours, tc.engine), func(t *testing.T) {
			o := options(t.TempDir())
			rec := func(i, tokens int) []byte {
				return litellm(i, fields{"messages": text(tc.ours), "prompt_tokens": tokens})
			}
			run(t, newMemory([]ingest.Record{message(0, rec(0, tc.ours)), message(1, rec(1, tc.engine)), message(2, rec(2, tc.engine))}), o)
			rows := segmentRows(t, o.Lake)
			own, got, again := rows[0].HashIDs, rows[1], rows[2].HashIDs
			if n := (tc.engine + 15) / 16; len(got.HashIDs) != n || got.TailTokens != int32(tc.engine%16) {
				t.Errorf("%d ids and a tail of %d, want %d ids", len(got.HashIDs), got.TailTokens, n)
			}
			for i, id := range got.HashIDs {
				if same := i < len(own) && id == own[i]; same != (i < tc.keep) {
					t.Errorf("position %d: same as our own %v, want %d kept", i, same, tc.keep)
				}
				if shared := id == again[i]; shared != (i < tc.keep) {
					t.Errorf("position %d: shared with an equal request %v, want %d kept", i, shared, tc.keep)
				}
			}
			if got.Reconciled != tc.reconciled || *got.CountedTokens != int32(tc.ours) {
				t.Errorf("reconciled %s, counted %d", got.Reconciled, *got.CountedTokens)
			}
		})
	}
}

// Nothing is counted where the text is not whole, or where only the engine knows what a part costs.
func TestCountedTokensAreOfWholeTexts(t *testing.T) {
	image := []fields{{"role": "user", "content": []fields{{"type": "text", "text": "What is this?"},
		{"type": "image_url", "image_url": fields{"url": "https://example.com/a.png"}}}}}
	for name, tc := range map[string]struct {
		change        fields
		counted, told bool
	}{
		"text":                   {fields{"messages": "Was the lamp lit?"}, true, true},
		"text, no count":         {fields{"messages": "Was the lamp lit?", "prompt_tokens": 0, "response": nil}, true, true},
		"redacted":               {fields{"messages": "redacted-by-litellm"}, false, true},
		"image":                  {fields{"messages": image}, false, true},
		"image, no count either": {fields{"messages": image, "prompt_tokens": 0, "response": nil}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := one(t, tc.change)
			if (r.CountedTokens != nil) != tc.counted || (r.InputTokens != nil) != tc.told {
				t.Errorf("counted %v, input %v", r.CountedTokens, r.InputTokens)
			}
		})
	}
}

// The quality of a run and of a published day against the rows themselves.
func TestQuality(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	var values [][]byte
	for i := range 600 {
		change := fields{"messages": strings.Repeat("x", 1+r.IntN(900)), "prompt_tokens": 1 + r.IntN(300), "model_group": fmt.Sprint("m", i%2),
			"session_id": fmt.Sprint("s", i)}
		switch i % 10 {
		case 0:
			change["messages"] = nil // not known
		case 1:
			change["messages"] = "redacted-by-litellm"
		case 2:
			delete(change, "prompt_tokens")
			change["prompt_tokens"], change["response"] = 0, nil // only we count
		}
		values = append(values, litellm(i, change))
	}
	o := options(t.TempDir())
	var recs []ingest.Record
	for i, v := range values {
		recs = append(recs, message(int64(i), v))
	}
	o.RotateRows = 100 // several segments add up
	report := run(t, newMemory(recs), o)
	checkQuality(t, segmentRows(t, o.Lake), report.Quality)
	p, _ := publishWith(t, ingest.PublishOptions{Lake: o.Lake, K: 1, MinRequests: 400})
	rows, _, err := parquetio.ReadFile[schemas.Request](dayPath(o.Lake))
	if err != nil {
		t.Fatal(err)
	}
	checkQuality(t, rows, p.Quality)
	for _, g := range p.Quality.Groups { // both models have 300 requests
		if g.Model != schemas.LabelOther {
			t.Errorf("the report names a suppressed model: %+v", g)
		}
	}
	var text bytes.Buffer
	if err := p.WriteText(&text); err != nil || !strings.Contains(text.String(), "p95 |diff|") || !strings.Contains(text.String(), "(lost: ") {
		t.Errorf("%v: %s", err, text.String())
	}
	if data, err := json.Marshal(p); err != nil || !bytes.Contains(data, []byte(`"mean_diff_tokens":`)) {
		t.Errorf("%s, %v", data, err)
	}
}

func checkQuality(t *testing.T, rows []schemas.Request, q ingest.Quality) {
	t.Helper()
	want := map[string]int64{}
	var diffs, absolute []int
	sum := 0
	for _, r := range rows {
		if r.Reconciled != schemas.ReconciledNone {
			want["rows"]++
			want[r.Reconciled]++
			if r.CountedTokens != nil {
				d := int(*r.CountedTokens) - int(*r.InputTokens)
				diffs, absolute = append(diffs, d), append(absolute, max(d, -d))
				sum += d
			}
		}
	}
	got := map[string]int64{"rows": q.Total.Rows, "equal": q.Total.Equal, "padded": q.Total.Padded, "cut": q.Total.Cut}
	for k, n := range got {
		if n == 0 {
			delete(got, k)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	slices.Sort(diffs)
	slices.Sort(absolute)
	rank := func(v []int, p float64) float64 { return float64(v[int(math.Ceil(p*float64(len(v))))-1]) }
	if q.Total.Compared != int64(len(diffs)) || math.Abs(*q.Total.MeanDiff-float64(sum)/float64(len(diffs))) > 1e-9 {
		t.Errorf("%d compared, mean %v; want %d, %v", q.Total.Compared, *q.Total.MeanDiff, len(diffs), float64(sum)/float64(len(diffs)))
	}
	for _, pair := range [][2]float64{{float64(*q.Total.P50Diff), rank(diffs, .5)}, {float64(*q.Total.P95Abs), rank(absolute, .95)}} {
		if math.Abs(pair[0]-pair[1]) > max(.051*math.Abs(pair[1]), .5) {
			t.Errorf("quantile %v, want %v", pair[0], pair[1])
		}
	}
	n := int64(0)
	for _, g := range q.Groups {
		n += g.Rows
	}
	if n != q.Total.Rows {
		t.Errorf("groups have %d rows of %d", n, q.Total.Rows)
	}
}
