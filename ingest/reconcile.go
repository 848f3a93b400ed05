package ingest

import (
	"tailgate/prompt"
	"tailgate/schemas"
)

// hash fills the prompt columns of row: ids of all ⌈input/16⌉ blocks, the tail's length and how our count
// compares with the engine's. A prompt that is not known leaves hash_ids null.
func (m *rowMaker) hash(row *schemas.Request, rec *record, at place) error {
	row.Reconciled = schemas.ReconciledNone
	if row.InputTokens != nil {
		row.TailTokens = *row.InputTokens % blockSize
	}
	switch row.PromptState {
	case schemas.PromptAbsent, schemas.PromptEncrypted, schemas.PromptExternal:
		return nil
	case schemas.PromptPrehashed:
		m.rekey(row, rec, at)
		return nil
	}
	ids, tokens, err := m.anon.Blocks(m.scratch[:0], &rec.prompt)
	if err != nil {
		return errHash
	}
	m.scratch = ids
	countable := rec.prompt.Full() && textOnly(&rec.prompt)
	if countable {
		row.CountedTokens = new(int32(tokens))
	}
	if row.InputTokens == nil {
		if !countable {
			return nil // neither the engine nor the text tells how long the prompt was
		}
		row.InputTokens, row.InputTokensSource = new(int32(tokens)), schemas.TokensTokenizer
		row.TailTokens = int32(tokens % blockSize)
	} else {
		row.Reconciled = compare(tokens, int(*row.InputTokens))
	}
	row.HashIDs = m.reconcile(ids, tokens, int(*row.InputTokens), at)
	return nil
}

// textOnly tells whether the length of p can be counted: what an image or a recording costs, only the engine knows.
func textOnly(p *prompt.Prompt) bool {
	for i := range p.Messages {
		for _, part := range p.Messages[i].Parts {
			if part.Kind != prompt.Text && part.Kind != prompt.Other {
				return false
			}
		}
	}
	return true
}

// rekey puts ids that the gateway hashed under our key, so that they cannot be joined with its own log. Only
// blocks of 16 tokens fit the lake; with any other size, or without the prompt's length, hash_ids stays null:
// a prompt of which nothing is known, and countable as prehashed rows without ids. The gateway counted with a
// tokenizer of its own and hashed the last, partial block too, so that last id never stays.
func (m *rowMaker) rekey(row *schemas.Request, rec *record, at place) {
	if rec.hashes.block != blockSize || row.InputTokens == nil {
		return
	}
	engine := int(*row.InputTokens)
	full := max(len(rec.hashes.ids)-1, 0)
	ids := make([]int64, full)
	for i := range ids {
		ids[i] = m.anon.Key("prehash", []byte(rec.prompt.Model), rec.hashes.ids[i])
	}
	row.Reconciled = compare(full*blockSize, engine)
	row.HashIDs = m.reconcile(ids, full*blockSize, engine, at)
}

// compare says what becomes of our tokens to reach the engine's count.
func compare(ours, engine int) string {
	switch {
	case ours < engine:
		return schemas.ReconciledPadded
	case ours > engine:
		return schemas.ReconciledCut
	}
	return schemas.ReconciledEqual
}

// reconcile returns the ⌈engine/16⌉ ids of a prompt whose own ids cover ours tokens: the first
// min(our full blocks, ⌊engine/16⌋) stay, and every later position gets an id that no other row has. The
// tail's id stays only when both counts agree.
func (m *rowMaker) reconcile(ids []int64, ours, engine int, at place) []int64 {
	n := (engine + blockSize - 1) / blockSize
	keep := min(len(ids), ours/blockSize, engine/blockSize)
	if ours == engine {
		keep = min(len(ids), n)
	}
	out := make([]int64, n)
	copy(out, ids[:keep])
	for i := keep; i < n; i++ {
		out[i] = m.anon.Key("unique", at.parts(int64(i))...)
	}
	return out
}
