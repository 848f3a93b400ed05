package trace

import (
	"bytes"
	"math/big"
	"slices"
	"strings"
	"testing"

	"tailgate/internal/rng"
)

// FuzzFastReader holds the hand-written reader to encoding/json: whatever it accepts means the same there.
func FuzzFastReader(f *testing.F) {
	for _, line := range []string{
		`{"timestamp": 0, "input_length": 6758, "output_length": 500, "hash_ids": [0, 1, 2]}`,
		`{"timestamp":1790000000373.5,"input_length":105.0,"output_length":1e3,"hash_ids":[]}`,
		`{"timestamp":1,"timestamp":2,"hash_ids":[1],"hash_ids":[2,3]}`,
		`{"session_id":"a","turn":1,"parent":0,"tenant":7,"class":"x","model":"m","stream":true,"status":"ok","source_row":3,"copy":1,"damaged":true,"delay":null}`,
		`{"damaged":false,"extra":"y","n":-1.5e+3,"b":false,"timestamp":-1}`,
		`{"hash_ids":[01]}`, `{"hash_ids":[1,]}`, `{"hash_ids":[9223372036854775807]}`, `{"stream":"true"}`, `{}`, `[1]`,
		`{"timestamp":0}x`, `{"session_id":"caf\u00e9"}`, `{"input_length":-1}`, `{"turn":1.5}`,
	} {
		f.Add([]byte(line), 3)
	}
	f.Fuzz(func(t *testing.T, line []byte, shift int) {
		if shift < 0 || shift > 6 {
			return
		}
		fast, slow := fields{names: &keyNames}, fields{names: &keyNames}
		if !fast.readFast(line, shift) {
			return
		}
		if err := slow.readSlow(line, shift); err != nil {
			t.Fatalf("accepted %q, encoding/json says %v", line, err)
		}
		if fast.has != slow.has || !slices.Equal(fast.ids, slow.ids) || len(fast.big)+len(slow.big) != 0 || fast.flag != slow.flag {
			t.Fatalf("%q: %+v, want %+v", line, fast, slow)
		}
		for k, has := range fast.has {
			if has && (fast.num[k] != slow.num[k] || !bytes.Equal(fast.text[k], slow.text[k])) {
				t.Fatalf("%q: %s is %d %q, want %d %q", line, keyNames[k], fast.num[k], fast.text[k], slow.num[k], slow.text[k])
			}
		}
	})
}

func TestFastReaderTakesPublicShapes(t *testing.T) {
	f := fields{names: &keyNames}
	for _, line := range []string{
		`{"timestamp": 27482, "input_length": 6955, "output_length": 52, "hash_ids": [46, 47, 2353]}`,
		`{"timestamp":0.25,"input_length":1,"output_length":2,"hash_ids":[],"session_id":"s","priority":3}`,
	} {
		if !f.readFast([]byte(line), 3) {
			t.Errorf("%s takes the slow way", line)
		}
	}
}

func TestParseDecimal(t *testing.T) {
	for _, tt := range []struct {
		tok       string
		shift     int
		want      int64
		exact, ok bool
	}{
		{"1790000000373.5", 3, 1790000000373500, true, true},
		{"105.0", 0, 105, true, true},
		{"1e3", 0, 1000, true, true},
		{"0.30000000000000004", 6, 300000, false, true}, // 0.1+0.2 as Python writes it
		{"0.0005", 3, 1, false, true},                   // half a µs away from zero
		{"-0.0005", 3, -1, false, true},
		{"0.00049999999999999999999999", 3, 0, false, true},
		{"9223372036854775807", 0, 9223372036854775807, true, true},
		{"9223372036854775808", 0, 0, false, false},
		{"18446744073709551615", 0, 0, false, false},
		{"100000000000000000000e-20", 0, 1, true, true},
		{"1e-400", 0, 0, false, true},
		{"1e400", 0, 0, false, false},
		{"0e999999999999", 3, 0, true, true},
		{"-0", 0, 0, true, true},
		{"01", 0, 0, false, false},
		{"1.", 0, 0, false, false},
		{"+1", 0, 0, false, false},
		{"", 0, 0, false, false},
		{"NaN", 0, 0, false, false},
	} {
		got, exact, ok := parseDecimal([]byte(tt.tok), tt.shift)
		if got != tt.want && tt.ok || ok != tt.ok || ok && exact != tt.exact {
			t.Errorf("parseDecimal(%q, %d) = %d, %v, %v", tt.tok, tt.shift, got, exact, ok)
		}
	}
}

// FuzzParseDecimal compares with exact rational arithmetic.
func FuzzParseDecimal(f *testing.F) {
	for _, s := range []string{"0", "1.5", "-12.345678901234567890123", "9e18", "123456789012345678901234567890e-15",
		"1000000000000000000700000000000e-15"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if len(s) > 40 || len(s)-strings.LastIndexAny(s, "eE") > 4 && strings.ContainsAny(s, "eE") {
			return
		}
		got, exact, ok := parseDecimal([]byte(s), 3)
		if end, valid := scanNumber([]byte(s), 0); !valid || end != len(s) {
			if ok {
				t.Fatalf("%q is no number, got %d", s, got)
			}
			return
		}
		r, _ := new(big.Rat).SetString(s)
		r.Mul(r, big.NewRat(1000, 1))
		half := big.NewRat(1, 2)
		if r.Sign() < 0 {
			half.Neg(half)
		}
		sum := new(big.Rat).Add(r, half)
		want := new(big.Int).Quo(sum.Num(), sum.Denom())
		fits := want.IsInt64() && want.Int64() != -1<<63
		if ok != fits || ok && (got != want.Int64() || exact != r.IsInt()) {
			t.Fatalf("%q = %d (exact %v, ok %v), want %s", s, got, exact, ok, want)
		}
	})
}

func TestPrivateIDsAvoidTakenOnes(t *testing.T) {
	rows := []lakeRow{{key: 1}, {key: 2}}
	rows[0].HashIDs = []int64{7, private}
	rows[1].HashIDs = []int64{private, private}
	p := privateIDs{size: 512, hash: func(keys ...uint64) uint64 {
		if keys[2] == 0 {
			return 7 | 1<<63 // taken by the first row
		}
		return rng.Hash(keys...)
	}}
	var used idSet
	used.add(7)
	for i := range rows {
		p.fill(&rows[i], &used)
	}
	seen := map[int64]bool{}
	for _, r := range rows {
		for _, id := range r.HashIDs {
			if id < 0 || seen[id] {
				t.Errorf("id %d is negative or taken", id)
			}
			seen[id] = true
		}
	}
}

// Labels are written as encoding/json has them.
func TestLabelsAreQuotedAsJSON(t *testing.T) {
	for _, s := range []string{"", "t_abc", `a"b`, `a\b`, "<&>", "é", "\u2028", "\x7f", "\x00", "\xff", "s#1@2.5x/ok"} {
		want := append(append([]byte(nil), `,"tenant":`...), quoted(s)...)
		if got := appendText(nil, keyTenant, &s); string(got) != string(want) {
			t.Errorf("%q: %s, want %s", s, got, want)
		}
	}
}
