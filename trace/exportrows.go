package trace

import (
	"errors"
	"fmt"

	"tailgate/internal/rng"
)

// lakeBlock is the block size of the lake, in tokens.
const lakeBlock = 16

// checkLakePrompt holds a row to what the lake promises of a prompt that was hashed.
func checkLakePrompt(input int32, have int, private, tailTokens int32) error {
	if input < 0 {
		return errors.New("hash_ids without input_tokens")
	}
	full, tail := int(input)/lakeBlock, input%lakeBlock
	sharedTail := tail > 0 && have == full+1 && private == 0
	if private < 0 || tailTokens != tail || have+int(private) != full && !sharedTail {
		return fmt.Errorf("%d hash_ids, %d private_blocks and %d tail_tokens do not make %d input_tokens", have, private, tailTokens, input)
	}
	return nil
}

// privateIDs derives the hash ids of a trace from those of the lake. The id of block k of size tokens is the
// lake's id at index size/16·(k+1) − 1, which covers everything before it; the partial tail has the last one.
// Where the lake keeps no id, nobody shares the block, and it gets an id that no other block of the view has.
type privateIDs struct {
	size int
	hash func(keys ...uint64) uint64 // nil = rng.Hash
}

// private marks a block without an id in the lake. Ids of the lake are never negative.
const private = -1

func (p *privateIDs) derive(to []int64, input int32, list []int64) []int64 {
	n, per := blocks(input, p.size), p.size/lakeBlock
	last := blocks(input, lakeBlock) - 1
	for k := range n {
		id := int64(private)
		if at := min(per*(k+1)-1, last); at < len(list) {
			id = list[at]
		}
		to = append(to, id)
	}
	return to
}

// fill gives the private blocks of a row their ids: a hash of request, attempt and index, drawn again where it is
// taken. used holds all ids of other blocks, and those that were given.
func (p *privateIDs) fill(row *lakeRow, used *idSet) {
	hash := p.hash
	if hash == nil {
		hash = rng.Hash
	}
	for k, id := range row.HashIDs {
		if id != private {
			continue
		}
		for draw := uint64(0); id == private || !used.add(id); draw++ {
			id = int64(hash(row.key, uint64(k), draw) &^ (1 << 63))
		}
		row.HashIDs[k] = id
	}
}

func label(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// notes counts what the view left out or changed, with the rows of a trace that were spread.
func (e *exporter) notes(spread int64) []string {
	var out []string
	for _, n := range []struct {
		n    int64
		what string
	}{
		{e.probes, "probes are left out"},
		{e.otherOps, "requests that are neither chat, completion nor responses are left out"},
		{e.unreached, "requests never reached the engine and are left out of the engine view"},
		{e.retries, "retries are left out of the client view"},
		{e.medianInputs, "requests have no known input length: the median of their class stands for it"},
		{e.sampled, "requests come from logs that hold only a sample of the traffic: the rate is too low by that"},
		{e.damaged, "requests have a prompt that was cut or redacted: behind it they share nothing here, whatever they shared"},
		{spread, "requests come from a clock coarser than 10 ms: spread over its resolution"},
	} {
		if n.n > 0 {
			out = append(out, fmt.Sprintf("%d %s", n.n, n.what))
		}
	}
	return out
}
