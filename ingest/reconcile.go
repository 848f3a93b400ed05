package ingest

import (
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
	}
	ids, tokens, err := m.anon.Blocks(m.scratch[:0], &rec.prompt)
	if err != nil {
		return errHash
	}
	m.scratch = ids
	if row.InputTokens == nil {
		if !rec.prompt.Full() {
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
