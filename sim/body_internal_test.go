package sim

import (
	"encoding/json"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What the fast reader takes, encoding/json reads alike.
func FuzzScanBody(f *testing.F) {
	for _, s := range []string{
		`{"model":"m","prompt":[1,2,3],"max_tokens":3,"min_tokens":3,"ignore_eos":true,"stream":true,"stream_options":{"include_usage":true}}`,
		`{"prompt":"x\u0041","cache_salt":"a\"b","stream_options":{"continuous_usage_stats":false,"other":[{}]}}`,
		`{"max_tokens":1e3}`, `{"max_tokens":-0}`, `{"max_tokens":"3"}`, `{"Max_Tokens":3}`, `{"stream":null}`, `{"max_tokens":null}`, `{"prompt":null}`,
		`{"stream_options":null}`, `{"include_usage":true,"stream":true}`, `{"model":"m","model":"n"}`, ` {} `, `{}x`, `{"n":1}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		fast := scanBody(slices.Clone(raw))
		if fast == nil {
			return
		}
		var want body
		if err := json.Unmarshal(raw, &want); err != nil {
			t.Fatalf("taken, but %v: %s", err, raw)
		}
		if diff := cmp.Diff(want, *fast); diff != "" {
			t.Errorf("%s (-encoding/json +fast)\n%s", raw, diff)
		}
	})
}

// A list is read as encoding/json reads whole numbers up to 2³¹ − 1.
func FuzzTokenIDs(f *testing.F) {
	for _, s := range []string{`[]`, `[1]`, `[ 1 , 2 ]`, `[0,2147483647]`, `[2147483648]`, `[99999999999999999999999]`, `[1.0]`, `[1e2]`, `[-1]`, `["1"]`, `[null]`, `[[1]]`, `[true]`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var want []uint64
		list := json.Valid(raw) && raw[0] == '[' && raw[len(raw)-1] == ']'
		if !list {
			return // the caller has checked it
		}
		var elements []json.RawMessage
		ok := json.Unmarshal(raw, &elements) == nil
		for _, e := range elements {
			var n uint64
			if string(e) == "null" || json.Unmarshal(e, &n) != nil || n > math.MaxInt32 {
				ok = false
				break
			}
			want = append(want, n)
		}
		got, gotOK := tokenIDs(raw)
		if gotOK != ok || ok && len(got) != len(want) {
			t.Fatalf("%s: %v %v, want %v %v", raw, got, gotOK, want, ok)
		}
		for i := range want {
			if ok && uint64(got[i]) != want[i] {
				t.Errorf("%s: %v, want %v", raw, got, want)
			}
		}
	})
}
