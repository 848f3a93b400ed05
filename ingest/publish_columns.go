package ingest

import (
	"github.com/parquet-go/parquet-go"

	"tailgate/internal/parquetio"
)

// fill fills a column of the day from slots.
type fill = parquetio.Fill[slot]

// requestFills has the columns of schemas.Request.
func requestFills(w *words) map[string]fill {
	fills := map[string]fill{
		"request_key":        fillEach(func(s *slot) parquet.Value { return parquet.Int64Value(s.key) }),
		"attempt":            fillEach(func(s *slot) parquet.Value { return parquet.Int32Value(s.attempt) }),
		"arrived_at":         fillEach(func(s *slot) parquet.Value { return parquet.Int64Value(s.arrived) }),
		"time_resolution_us": fillEach(func(s *slot) parquet.Value { return parquet.Int64Value(s.resolution) }),
		"reached_engine":     fillEach(func(s *slot) parquet.Value { return parquet.BooleanValue(s.flags&isReached != 0) }),
		"is_probe":           fillEach(func(s *slot) parquet.Value { return parquet.BooleanValue(s.flags&isProbe != 0) }),
		"sampled_fraction":   fillEach(func(s *slot) parquet.Value { return parquet.DoubleValue(s.sampled) }),
		"private_blocks":     fillEach(func(s *slot) parquet.Value { return parquet.Int32Value(s.private) }),
		"tail_tokens":        fillEach(func(s *slot) parquet.Value { return parquet.Int32Value(s.tail) }),
		"partition":          fillEach(func(s *slot) parquet.Value { return parquet.Int32Value(s.partition) }),
		"offset":             fillEach(func(s *slot) parquet.Value { return parquet.Int64Value(s.offset) }),
		"index":              fillEach(func(s *slot) parquet.Value { return parquet.Int32Value(s.index) }),
		"stream": fillOptional(0, func(s *slot, _ int) bool { return s.flags&hasStream != 0 },
			func(s *slot) parquet.Value { return parquet.BooleanValue(s.flags&isStream != 0) }),
		"hash_ids": fillIDs,
	}
	values := wordValues(w)
	for i, name := range wordColumns {
		fills[name] = fillWords(i, values)
	}
	for i, name := range intColumns {
		fills[name] = fillOptional(i, (*slot).hasInt, func(s *slot) parquet.Value { return parquet.Int32Value(s.ints[i]) })
	}
	for i, name := range longColumns {
		fills[name] = fillOptional(i, (*slot).hasLong, func(s *slot) parquet.Value { return parquet.Int64Value(s.longs[i]) })
	}
	for i, name := range textColumns {
		fills[name] = fillOptional(i, (*slot).hasText, func(s *slot) parquet.Value { return parquet.ByteArrayValue(s.texts[i]) })
	}
	return fills
}

func fillEach(value func(*slot) parquet.Value) fill {
	return func(rows []slot, out []parquet.Value) []parquet.Value {
		for i := range rows {
			out = append(out, value(&rows[i]))
		}
		return out
	}
}

// wordValues are the values of words as slots hold them: without a level for columns that have no null, and with
// one for the others.
func wordValues(w *words) [2][]parquet.Value {
	required, optional := []parquet.Value{{}}, []parquet.Value{{}}
	for _, word := range w.list {
		v := parquet.ByteArrayValue([]byte(word))
		required, optional = append(required, v), append(optional, v.Level(0, 1, 0))
	}
	return [2][]parquet.Value{required, optional}
}

func fillWords(column int, values [2][]parquet.Value) fill {
	of := values[0]
	if column >= optionalWords {
		of = values[1]
	}
	return func(rows []slot, out []parquet.Value) []parquet.Value {
		for i := range rows {
			out = append(out, of[rows[i].words[column]])
		}
		return out
	}
}

// fillOptional fills a column that may be null, with its value where has says that there is one.
func fillOptional(column int, has func(*slot, int) bool, value func(*slot) parquet.Value) fill {
	return func(rows []slot, out []parquet.Value) []parquet.Value {
		for i := range rows {
			var v parquet.Value
			if s := &rows[i]; has(s, column) {
				v = value(s).Level(0, 1, 0)
			}
			out = append(out, v)
		}
		return out
	}
}

// fillIDs writes lists: level 0 is null, 1 an empty list, 2 a value; a value that repeats is not a row's first.
func fillIDs(rows []slot, out []parquet.Value) []parquet.Value {
	for i := range rows {
		s := &rows[i]
		if len(s.ids) == 0 {
			var v parquet.Value
			if s.hasIDs() {
				v = v.Level(0, 1, 0)
			}
			out = append(out, v)
			continue
		}
		for at := range s.numIDs() {
			out = append(out, parquet.Int64Value(s.id(at)).Level(min(at, 1), 2, 0))
		}
	}
	return out
}
