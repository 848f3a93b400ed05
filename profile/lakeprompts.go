package profile

import (
	"errors"
	"fmt"

	"tailgate/internal/parquetio"
	"tailgate/schemas"
)

// prompts reads what tells of the prompts and puts their blocks into the tree.
func (r *lakeReader) prompts() error {
	err := errors.Join(
		r.ints("private_blocks", func(v int64, _ bool) { r.private = append(r.private, int32(v)) }),
		r.ints("tail_tokens", func(v int64, _ bool) { r.tails = append(r.tails, int32(v)) }),
		r.damaged())
	if err != nil {
		return err
	}
	if len(r.private) != r.n || len(r.tails) != r.n || len(r.prompt) != r.n || len(r.part.in) != r.n {
		return errors.New("columns of different lengths")
	}
	p := r.part
	p.leaf, p.depth, p.private = make([]uint32, 0, r.n), make([]int32, 0, r.n), make([]int32, 0, r.n)
	at := 0
	var ids []int64
	return r.file.Int64Lists(r.ctx, "hash_ids", func(lengths []int32, values []int64) error {
		for i, n := range lengths {
			list := values[:max(n, 0)]
			values = values[len(list):]
			if !r.wants.has(at + i) {
				continue
			}
			k := len(p.leaf)
			if k >= r.n {
				return errors.New("columns of different lengths")
			}
			if n < 0 {
				p.leaf, p.depth, p.private = append(p.leaf, 0), append(p.depth, 0), append(p.private, 0)
				r.prompt[k] &^= rowDamaged
				continue
			}
			if err := checkPrompt(p.in[k], len(list), r.private[k], r.tails[k]); err != nil {
				return fmt.Errorf("row %d: %w", at+i, err)
			}
			if r.prompt[k] |= rowPrompt; r.prompt[k]&rowDamaged != 0 {
				p.left.Damaged++
			}
			blocks := 0
			ids, blocks = bigBlocks(ids[:0], list, p.in[k], p.blockSize)
			leaf, depth := p.tree.add(ids)
			p.leaf, p.depth, p.private = append(p.leaf, leaf), append(p.depth, int32(depth)), append(p.private, int32(blocks-depth))
		}
		at += len(lengths)
		return nil
	})
}

// damaged marks the prompts that were cut or redacted in the log.
func (r *lakeReader) damaged() error {
	var states parquetio.Dict
	return r.words("prompt_state", &states, func(code int32) {
		flag := uint8(0)
		if code >= 0 && (states.Words[code] == schemas.PromptTruncated || states.Words[code] == schemas.PromptRedacted) {
			flag = rowDamaged
		}
		r.prompt = append(r.prompt, flag)
	})
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
// last one. The blocks without an id are those that no other request shares.
func bigBlocks(to, list []int64, input int32, size int) (ids []int64, blocks int) {
	blocks = (int(input) + size - 1) / size
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
