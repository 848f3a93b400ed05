package ingest

import (
	"cmp"
	"slices"

	"tailgate/schemas"
)

// sortRows orders rows by arrival, then request key, then lineage. Rows that are equal in all of it (of two
// generations) keep the order in which they were read.
func sortRows(rows []schemas.Request) {
	order := make([]int32, len(rows)) // rows are large: sort their numbers, then move each row once
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int { return cmp.Or(compareRows(&rows[a], &rows[b]), cmp.Compare(a, b)) })
	for i := range order {
		if order[i] < 0 {
			continue
		}
		first := rows[i]
		at := int32(i)
		for order[at] != int32(i) {
			from := order[at]
			rows[at], order[at] = rows[from], -1
			at = from
		}
		rows[at], order[at] = first, -1
	}
}

func compareRows(a, b *schemas.Request) int {
	return cmp.Or(
		a.ArrivedAt.Compare(b.ArrivedAt), cmp.Compare(a.RequestKey, b.RequestKey), cmp.Compare(a.Topic, b.Topic),
		cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.Offset, b.Offset), cmp.Compare(a.Index, b.Index),
	)
}

// dedupe merges exact duplicates (equal request key, request id and arrival) of sorted rows in place: the
// richest record wins, the earlier one among equals. Rows without a request id never merge.
func dedupe(rows []schemas.Request, r *PublishReport) []schemas.Request {
	out := rows[:0]
	start := 0 // where the rows of the current arrival and key begin in out
	for i := range rows {
		row := rows[i]
		if len(out) > start && (!out[start].ArrivedAt.Equal(row.ArrivedAt) || out[start].RequestKey != row.RequestKey) {
			start = len(out)
		}
		same := slices.IndexFunc(out[start:], func(o schemas.Request) bool {
			return row.RequestID != nil && o.RequestID != nil && *o.RequestID == *row.RequestID
		})
		if same < 0 {
			out = append(out, row)
			continue
		}
		kept := &out[start+same]
		r.Duplicates++
		if conflict(kept, &row) {
			r.Conflicts++
		}
		if richness(&row) > richness(kept) {
			*kept = row
		}
	}
	clear(rows[len(out):])
	return out
}

// richness ranks duplicates: usage before none, a full prompt before a damaged one before none.
func richness(r *schemas.Request) int {
	score := 0
	for _, source := range []string{r.InputTokensSource, r.OutputTokensSource} {
		switch source {
		case schemas.TokensProvider:
			score += 30
		case schemas.TokensGateway:
			score += 20
		case schemas.TokensTokenizer:
			score += 10
		}
	}
	switch r.PromptState {
	case schemas.PromptFull:
		score += 3
	case schemas.PromptTruncated:
		score += 2
	case schemas.PromptRedacted, schemas.PromptPrehashed:
		score++
	}
	return score
}

// conflict tells whether two records of one request give different counts.
func conflict(a, b *schemas.Request) bool {
	differ := func(x, y *int32) bool { return x != nil && y != nil && *x != *y }
	return differ(a.InputTokens, b.InputTokens) || differ(a.OutputTokens, b.OutputTokens)
}

// numberTurns numbers the requests of each session from 0 in the order of rows, and returns for each row a
// number that is equal for the rows of one session; rows without a session have one of their own.
func numberTurns(rows []schemas.Request) []uint32 {
	type session struct {
		number uint32
		turns  int32
	}
	numbers := make([]uint32, len(rows))
	seen := map[string]*session{}
	next := uint32(0)
	for i := range rows {
		r := &rows[i]
		if r.Session == nil {
			numbers[i] = next
			next++
			continue
		}
		s := seen[*r.Session]
		if s == nil {
			s = &session{number: next}
			seen[*r.Session] = s
			next++
		}
		r.Turn = new(s.turns)
		numbers[i] = s.number
		s.turns++
	}
	return numbers
}
