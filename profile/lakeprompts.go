package profile

import (
	"errors"
	"fmt"
)

// prompts reads the ids of the blocks, those of a sample where there is one.
func (r *groupReader) prompts(group, first int) error {
	r.counts, r.firsts, r.kept, r.wholes = r.counts[:0], r.firsts[:0], r.kept[:0], r.wholes[:0]
	r.ids, r.whole, r.sample = r.ids[:0], r.whole[:0], sampled{r.sample.ids[:0], r.sample.places[:0]}
	row := 0 // of the group
	err := r.file.Int64Lists(group, "hash_ids", func(lengths []int32, values []int64) error {
		for _, n := range lengths {
			list := values[:max(n, 0)]
			values = values[len(list):]
			if k := len(r.counts); k < len(r.rows) && int(r.rows[k]) == row {
				if err := r.prompt(k, n >= 0, list); err != nil {
					return fmt.Errorf("row %d: %w", first+row, err)
				}
			}
			row++
		}
		return nil
	})
	if err == nil && len(r.counts) != len(r.rows) {
		return errors.New("columns of different lengths")
	}
	return err
}

// prompt takes the ids of the k-th row.
func (r *groupReader) prompt(k int, known bool, list []int64) error {
	blocks := 0
	if known {
		if err := checkPrompt(r.in[k], len(list), r.private[k], r.tails[k]); err != nil {
			return err
		}
		if r.flags[k] |= rowPrompt; r.flags[k]&rowDamaged != 0 {
			r.left.Damaged++
		}
		if list, blocks = bigBlocks(r.big[:0], list, r.in[k], r.part.blockSize); r.part.blockSize != lakeBlock {
			r.big = list
		}
	} else {
		r.flags[k] &^= rowDamaged
	}
	r.counts, r.private[k] = append(r.counts, int32(len(list))), int32(blocks-len(list))
	if r.skip == 0 {
		r.ids = append(r.ids, list...)
		return nil
	}
	r.firsts = append(r.firsts, 0)
	if len(list) > 0 {
		r.firsts[k] = list[0]
	}
	if r.skip.keepsWhole(r.session[k]) {
		r.wholes, r.whole = append(r.wholes, int32(len(list))), append(r.whole, list...)
	} else {
		r.wholes = append(r.wholes, none)
	}
	before := len(r.sample.ids)
	r.sample = r.sample.and(r.skip, list)
	r.kept = append(r.kept, int32(len(r.sample.ids)-before))
	return nil
}

// checkPrompt holds a row to what the lake promises of a prompt that was hashed, as trace.Export does.
func checkPrompt(input int32, ids int, private, tail int32) error {
	if input < 0 {
		return errors.New("hash_ids without input_tokens")
	}
	full, rest := int(input)/lakeBlock, input%lakeBlock
	sharedTail := rest > 0 && ids == full+1 && private == 0
	if private < 0 || tail != rest || ids+int(private) != full && !sharedTail {
		return fmt.Errorf("%d hash_ids, %d private_blocks and %d tail_tokens do not make %d input_tokens", ids, private, tail, input)
	}
	return nil
}

// bigBlocks appends the ids of the blocks of size tokens that the lake has ids for, and tells how many blocks there
// are. The id of block k is the lake's at index size/16·(k+1) − 1, which covers all before it; the partial tail has the
// last one. The blocks without an id are those that no other request shares. Blocks of the lake's own size are a part of
// list.
func bigBlocks(to, list []int64, input int32, size int) (ids []int64, blocks int) {
	blocks = (int(input) + size - 1) / size
	if size == lakeBlock {
		return list[:min(len(list), blocks)], blocks
	}
	per, last := size/lakeBlock, (int(input)+lakeBlock-1)/lakeBlock-1
	for k := range blocks {
		at := min(per*(k+1)-1, last)
		if at >= len(list) {
			break
		}
		to = append(to, list[at])
	}
	return to, blocks
}
