package replay_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"tailgate/replay"
	"tailgate/schemas"
)

func row(n int64, tokens int32, ids ...int64) *schemas.TraceRow {
	return &schemas.TraceRow{Row: n, InputTokens: tokens, HashIDs: ids}
}

// tokenIDs are all ids of a row's prompt.
func tokenIDs(p *replay.Prompts, r *schemas.TraceRow) []int32 {
	var ids []int32
	if err := json.Unmarshal(fmt.Appendf(nil, "[%s]", p.AppendIDs(nil, r, 0, r.InputTokens)), &ids); err != nil {
		panic(err)
	}
	return ids
}

func textOf(p *replay.Prompts, r *schemas.TraceRow) string { return string(p.AppendText(nil, r)) }

func TestPromptHasExactlyTheAskedLength(t *testing.T) {
	p := &replay.Prompts{BlockSize: 16, Seed: 1, Salt: "a"}
	for _, r := range []*schemas.TraceRow{row(0, 0), row(1, 1, 7), row(2, 16, 7), row(3, 17, 7, 8), row(4, 100), row(5, 40, 1), row(6, 5, 1, 2, 3)} {
		ids := tokenIDs(p, r)
		if len(ids) != int(r.InputTokens) {
			t.Errorf("row %d: %d tokens, want %d", r.Row, len(ids), r.InputTokens)
		}
		for _, id := range ids {
			if id < replay.TokenMin || id >= replay.TokenMin+replay.TokenSpan {
				t.Fatalf("row %d: token %d is outside the vocabulary", r.Row, id)
			}
		}
		text := textOf(p, r)
		if len(text) != replay.WordBytes*int(r.InputTokens) || len(strings.Fields(text)) != int(r.InputTokens) {
			t.Errorf("row %d: text of %d bytes, %d words", r.Row, len(text), len(strings.Fields(text)))
		}
	}
}

func TestBlocksAreEqualExactlyWhenIDsAre(t *testing.T) {
	const size = 5 // the smallest for which this holds by construction
	p := &replay.Prompts{BlockSize: size, Seed: 3}
	seen := map[string]int64{}
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 20_000 {
		id := int64(i)
		if i%2 == 1 {
			id = r.Int64()
		}
		a, b := tokenIDs(p, row(1, size, id)), tokenIDs(p, row(2, 2*size, 99, id))[size:]
		if !slices.Equal(a, b) {
			t.Fatalf("id %d: content depends on the row or the place", id)
		}
		text := textOf(p, row(1, size, id))
		for _, key := range []string{fmt.Sprint(a), text} {
			if other, ok := seen[key]; ok && other != id {
				t.Fatalf("ids %d and %d have the same content", id, other)
			}
			seen[key] = id
		}
	}
}

func TestPartialTailIsThePrefixOfItsBlock(t *testing.T) {
	p := &replay.Prompts{BlockSize: 16}
	whole := tokenIDs(p, row(0, 16, 5))
	for n := int32(1); n <= 16; n++ {
		if tail := tokenIDs(p, row(1, 16+n, 4, 5))[16:]; !slices.Equal(tail, whole[:n]) {
			t.Errorf("tail of %d tokens is not the block's prefix", n)
		}
	}
}

func TestRowsWithoutIDsShareNothing(t *testing.T) {
	p := &replay.Prompts{BlockSize: 16}
	a, b := tokenIDs(p, row(1, 64)), tokenIDs(p, row(2, 64))
	for i := range 4 {
		if slices.Equal(a[16*i:16*i+16], b[16*i:16*i+16]) {
			t.Errorf("block %d is shared", i)
		}
	}
	if c := tokenIDs(p, row(1, 64)); !slices.Equal(a, c) {
		t.Error("the same row gave two prompts")
	}
	short := tokenIDs(p, row(3, 64, 1))
	if other := tokenIDs(p, row(4, 64, 1)); !slices.Equal(short[:16], other[:16]) || slices.Equal(short[16:32], other[16:32]) {
		t.Error("what the ids do not cover must be the row's own")
	}
}

func TestSeedAndSaltChangeEveryBlock(t *testing.T) {
	base := replay.Prompts{BlockSize: 16, Seed: 1, Salt: "run-1"}
	seed, salt := base, base
	seed.Seed, salt.Salt = 2, "run-2"
	r := row(1, 32, 1, 2)
	for _, other := range []replay.Prompts{seed, salt} {
		a, b := tokenIDs(&base, r), tokenIDs(&other, r)
		if slices.Equal(a[:16], b[:16]) || slices.Equal(a[16:], b[16:]) {
			t.Error("a block is shared between runs")
		}
	}
}
