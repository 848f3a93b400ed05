package ingest

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"tailgate/internal/objstore"
	"tailgate/internal/rng"
	"tailgate/schemas"
)

// dayTurn is one request of a day of traffic: which turn of which session, and when.
type dayTurn struct {
	atUs    int64
	session int32
	turn    int8
	turns   int8
}

// dayTraffic is n requests of a day: sessions of four turns in the mean that begin along a curve of the day, their turns
// half a minute apart.
func dayTraffic(n int) []dayTurn {
	r := rng.New(1, "day")
	all := make([]dayTurn, 0, n+8)
	for session := int32(0); len(all) < n; session++ {
		turns := 1 + r.IntN(7)
		hour := 0.0
		for { // three times as many at 14:00 as at 02:00
			hour = 23.5 * r.Float64()
			if r.Float64() < 0.6+0.4*math.Sin((hour-8)/12*math.Pi) {
				break
			}
		}
		at := int64(hour * 3600e6)
		for k := range turns {
			all = append(all, dayTurn{min(at, 86_399_000_000), session, int8(k), int8(turns)})
			at += 1_000_000 + int64(r.ExpFloat64()*30e6)
		}
	}
	all = all[:n]
	slices.SortFunc(all, func(a, b dayTurn) int { return cmp.Or(cmp.Compare(a.atUs, b.atUs), cmp.Compare(a.session, b.session)) })
	return all
}

// dayClasses are the five classes, the more frequent ones more often.
var dayClasses = [...]string{schemas.ClassInteractive, schemas.ClassInteractive, schemas.ClassInteractive, schemas.ClassAgent, schemas.ClassAgent,
	schemas.ClassBatch, schemas.ClassLongContext, schemas.LabelOther}

// dayRow is the i-th request of the day, with 8 ids in the mean as ingest makes them: the system prompt of its tenant, what
// the turns before it added, and what it adds.
func dayRow(i int, t dayTurn, midnight time.Time) schemas.Request {
	s := uint64(t.session)
	tenant := rng.Hash(s, 1) % 200
	ids := make([]int64, 0, 24)
	for b := range 1 + tenant%2 {
		ids = append(ids, int64(rng.Hash(tenant, b, 2)>>1))
	}
	for k := range uint64(t.turn) + 1 {
		for b := range 2 + rng.Hash(s, k, 3)%5/4 {
			ids = append(ids, int64(rng.Hash(s, k, b, 4)>>1))
		}
	}
	h := rng.Hash(uint64(i), 5)
	tail := int32(h % 16)
	if tail > 0 {
		ids[len(ids)-1] = int64(rng.Hash(uint64(i), 6) >> 1) // the partial block is this request's own
	}
	input := 16 * int32(len(ids))
	if tail > 0 {
		input -= 16 - tail
	}
	row := schemas.Request{
		RequestKey: int64(rng.Hash(uint64(i), 7) >> 1), RequestID: new(fmt.Sprintf("r_%013d", i)), ArrivedAt: midnight.Add(time.Duration(t.atUs) * time.Microsecond),
		TimeResolutionUs: 1, TQuality: schemas.TimeStart, Gateway: "litellm", Op: schemas.OpChat, Status: schemas.StatusOK, HTTPStatus: new(int32(200)),
		ReachedEngine: true, SampledFraction: 1, Stream: new(h>>5%2 == 0), Model: "pelican-8b", Class: new(dayClasses[s%uint64(len(dayClasses))]),
		Tenant: new(fmt.Sprintf("t_%013d", tenant)), Session: new(fmt.Sprintf("s_%013d", t.session)), InputTokens: &input,
		InputTokensSource: schemas.TokensProvider, OutputTokens: new(1 + int32(h>>20%2000)), OutputTokensSource: schemas.TokensProvider,
		CachedTokensSource: schemas.TokensAbsent, ReasoningTokensSource: schemas.TokensAbsent, Reconciled: schemas.ReconciledEqual,
		TTFTUs: new(int64(h >> 10 % 1_000_000)), DurationUs: new(int64(1_000_000 + h>>8%30_000_000)), PromptState: schemas.PromptFull, HashIDs: ids,
		TailTokens: tail, Topic: "k_aaaaaaaaaaaaa", Offset: int64(i / proveParts), Partition: int32(i % proveParts),
	}
	if h>>40%97 == 0 {
		row.Status, row.HTTPStatus = schemas.StatusServerError, new(int32(500))
	}
	return row
}

// dayLake writes n requests of one day as the segments of four partitions.
func dayLake(t testing.TB, lake string, n int) {
	t.Helper()
	midnight, _ := time.Parse(time.DateOnly, proveDay)
	store, all := objstore.NewDir(lake), dayTraffic(n)
	footer := schemas.Footer{Schema: schemas.TableSegment, Epoch: "e1", Tokenizer: "chars4", BlockSize: "16"}
	for p := range proveParts {
		id := logID{topic: "k_aaaaaaaaaaaaa", partition: int32(p)}
		const per = 250_000
		for first := p; first < n; first += per * proveParts {
			seg, err := newSegment(store, id, footer, int64(first/proveParts), &budget{}, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			for i := first; i < min(first+per*proveParts, n); i += proveParts {
				if err := seg.addRow(dayRow(i, all[i], midnight)); err != nil {
					t.Fatal(err)
				}
				seg.facts.Messages++
				seg.facts.Next = int64(i/proveParts + 1)
			}
			if err := seg.close(); err != nil {
				t.Fatal(err)
			}
			if err := store.Publish(context.Background(), seg.file, segmentKey(id, int64(first/proveParts))); err != nil {
				t.Fatal(err)
			}
			seg.discard()
		}
	}
}
