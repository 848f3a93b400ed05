package trace

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
)

// key is a known key of a JSONL row.
type key int

const (
	keyTimestamp key = iota
	keyInput
	keyOutput
	keyHashIDs
	keySession
	keyTurn
	keyParent
	keyTenant
	keyClass
	keyModel
	keyStream
	keyStatus
	keySource
	keyCopy
	keyDamaged
	keyChat       // Bailian only
	keyParentChat // Bailian only
	keyCount
	keyUnknown = keyCount
)

// names are the keys of a dialect of JSONL; "" where the dialect has none.
type names [keyCount]string

// keyNames is the order in which the writer writes and the slow reader reads.
var keyNames = names{"timestamp", "input_length", "output_length", "hash_ids", "session_id", "turn",
	"parent", "tenant", "class", "model", "stream", "status", "source_row", "copy", "damaged", "", ""}

// bailianNames are the keys of Qwen-Bailian traces.
var bailianNames = names{keyTimestamp: "timestamp", keyInput: "input_length", keyOutput: "output_length",
	keyHashIDs: "hash_ids", keyTurn: "turn", keyClass: "type", keyChat: "chat_id", keyParentChat: "parent_chat_id"}

func (n *names) key(name []byte) key {
	switch string(name) {
	case "timestamp":
		return keyTimestamp
	case "input_length":
		return keyInput
	case "output_length":
		return keyOutput
	case "hash_ids":
		return keyHashIDs
	}
	for k := keySession; k < keyCount; k++ {
		if string(name) == n[k] && n[k] != "" {
			return k
		}
	}
	return keyUnknown
}

// bigID is an id outside the int64 range, in its decimal digits, at its place in hash_ids.
type bigID struct {
	at   int
	text string
}

// fields are the values of one row, reused from line to line.
type fields struct {
	names *names
	has   [keyCount]bool
	num   [keyCount]int64  // numbers; the timestamp in µs
	text  [keyCount][]byte // strings, valid until the next line
	flag  [keyCount]bool   // true or false
	ids   []int64
	big   []bigID
}

func (f *fields) reset() {
	f.has = [keyCount]bool{}
	f.ids, f.big = f.ids[:0], f.big[:0]
}

// maxStampUs bounds stamps so that differences never overflow: 73,000 years.
const maxStampUs = 1 << 61

// setNumber takes a number token; shift is the power of ten from the timestamp's unit to µs.
func (f *fields) setNumber(k key, tok []byte, shift int) error {
	if k != keyTimestamp {
		shift = 0
	}
	v, exact, ok := parseDecimal(tok, shift)
	switch {
	case k == keyTimestamp && (!ok || v > maxStampUs || v < -maxStampUs):
		return errors.New("timestamp is out of range")
	case k != keyTimestamp && (!ok || !exact):
		return fmt.Errorf("%s must be an integer", f.names[k])
	case k != keyTimestamp && v < 0:
		return fmt.Errorf("%s must be >= 0", f.names[k])
	case (k == keyInput || k == keyOutput || k == keyTurn || k == keyCopy) && v > math.MaxInt32:
		return fmt.Errorf("%s is out of range", f.names[k])
	}
	f.num[k], f.has[k] = v, true
	return nil
}

// addID appends one id of hash_ids.
func (f *fields) addID(tok []byte) error {
	v, exact, ok := parseDecimal(tok, 0)
	switch {
	case ok && exact:
	case !ok && len(bytes.Trim(tok, "-0123456789")) == 0 && len(tok) >= maxDigits:
		f.big = append(f.big, bigID{at: len(f.ids), text: string(tok)})
	default:
		return fmt.Errorf("hash_ids[%d] must be an integer", len(f.ids))
	}
	f.ids = append(f.ids, v)
	return nil
}

// readSlow fills f by encoding/json: the meaning that readFast has to agree with.
func (f *fields) readSlow(line []byte, shift int) error {
	f.reset()
	var object map[string]json.RawMessage
	if err := json.Unmarshal(line, &object); err != nil {
		if bytes.IndexByte(line, 0) >= 0 {
			return errors.New("NUL bytes: a hole in the file")
		}
		var typ *json.UnmarshalTypeError
		if errors.As(err, &typ) {
			return errors.New("not a JSON object")
		}
		return fmt.Errorf("not a JSON object: %w", err)
	}
	for k, name := range f.names {
		value, ok := object[name]
		if name == "" || !ok || string(value) == "null" {
			continue
		}
		if err := f.setRaw(key(k), value, shift); err != nil {
			return err
		}
	}
	return nil
}

func (f *fields) setRaw(k key, value json.RawMessage, shift int) error {
	first := value[0]
	number := first == '-' || first-'0' <= 9
	switch k {
	case keyHashIDs:
		return f.setRawIDs(value)
	case keyStream, keyDamaged:
		if first != 't' && first != 'f' {
			return fmt.Errorf("%s must be true or false", f.names[k])
		}
		f.flag[k], f.has[k] = first == 't', true
	case keySession, keyTenant, keyClass, keyModel, keyStatus, keyChat, keyParentChat:
		switch {
		case number:
			f.text[k] = value
		case first == '"':
			var s string
			if err := json.Unmarshal(value, &s); err != nil {
				return fmt.Errorf("%s: %w", f.names[k], err)
			}
			f.text[k] = []byte(s)
		default:
			return fmt.Errorf("%s must be a string", f.names[k])
		}
		f.has[k] = true
	default:
		if !number {
			return fmt.Errorf("%s must be a number", f.names[k])
		}
		return f.setNumber(k, value, shift)
	}
	return nil
}

func (f *fields) setRawIDs(value json.RawMessage) error {
	var list []json.RawMessage
	if err := json.Unmarshal(value, &list); err != nil {
		return errors.New("hash_ids must be a list of integers")
	}
	for _, tok := range list {
		if err := f.addID(tok); err != nil {
			return err
		}
	}
	f.has[keyHashIDs] = true
	return nil
}
