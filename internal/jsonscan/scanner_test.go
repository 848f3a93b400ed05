package jsonscan_test

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"testing/quick"
	"unicode/utf8"

	"tailgate/internal/jsonscan"
)

// odd values are those that a scanner leaves to encoding/json or that nobody reads; ordinary ones it must read.
var (
	ordinary = []string{
		`{}`, `[]`, `null`, `true`, `false`, `0`, `-0`, `12`, `-1.5e-3`, `1E+9`, `0.25`, `""`, `"a\"b\\\/\b\f\n\r\t"`,
		` { "a" : [ 1 , { "b" : [ ] } , "x" ] , "c" : { } } `, `"\u00e9\ud83d\udea2"`, `"0123456789é01234567\n8"`, `[[[[]]]]`,
		"\"seven b\"", "\"eight by\"", "\"nine byte\"", "\"\x7f\"", `1795000003.118204`, `9007199254740993`, `123456789012345678901`,
		strings.Repeat("[", 64) + strings.Repeat("]", 64),
	}
	odd = []string{
		``, ` `, `{`, `[`, `]`, `}`, `[}`, `{]`, `{"a"}`, `{"a":}`, `{"a":1,}`, `[1,]`, `[,1]`, `[1 2]`, `{"a" 1}`, `{1:2}`, `{"a":1 "b":2}`,
		`01`, `-`, `1.`, `.5`, `1e`, `1e+`, `+1`, `0x1`, `--1`, `tru`, `nul`, `truE`, `nullx`, `"`, `"a`, `"\`, `"\x"`, `"\u12"`, `"\u12g4"`, `"\`,
		"\"a\nb\"", "\"\x00\"", "\"01234567\x1f\"", `{"a":1}}`, `[1]]`, "\ufeff{}", `'a'`, `NaN`,
		strings.Repeat("[", 65) + strings.Repeat("]", 65),
	}
)

func skips(data []byte) bool {
	var s jsonscan.Scanner
	s.Reset(data)
	s.Skip()
	return s.OK() && s.AtEnd()
}

func TestSkip(t *testing.T) {
	for _, v := range ordinary {
		if !skips([]byte(v)) {
			t.Errorf("%s was not read", v)
		}
	}
	for _, v := range odd {
		if skips([]byte(v)) {
			t.Errorf("%s was read", v)
		}
	}
}

func depth(data []byte) (deepest int) {
	now := 0
	for _, c := range data {
		switch c {
		case '{', '[':
			now++
			deepest = max(deepest, now)
		case '}', ']':
			now--
		}
	}
	return deepest
}

// FuzzSkip: the scanner reads exactly what encoding/json reads, if it is not nested too deeply.
func FuzzSkip(f *testing.F) {
	for _, v := range append(ordinary, odd...) {
		f.Add([]byte(v))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, want := skips(data), json.Valid(data)
		if got != want && (got || depth(data) <= 64) {
			t.Fatalf("read: %v, valid: %v", got, want)
		}
		if jsonscan.Valid(data) != want {
			t.Fatalf("Valid is %v, want %v", !want, want)
		}
	})
}

func text(data []byte) (got []byte, ok bool) {
	var s jsonscan.Scanner
	s.Reset(data)
	got = s.Text(nil)
	return got, s.OK() && s.AtEnd()
}

// FuzzText: a string that is read is what encoding/json makes of it, and only broken or lone halves are not read.
func FuzzText(f *testing.F) {
	for _, v := range append(ordinary, odd...) {
		f.Add([]byte(v))
	}
	for _, v := range []string{`"\ud800"`, `"\udc00\ud800"`, `"\ud83d\\udea2"`, `"\ud83dx"`, "\"\xff\"", "\"\xed\xa0\x80\"", `"\uD83D\uDEA2\n\u00e9"`} {
		f.Add([]byte(v))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var want string
		valid := json.Unmarshal(data, &want) == nil && bytes.HasPrefix(bytes.TrimSpace(data), []byte{'"'})
		got, ok := text(data)
		if ok && (!valid || string(got) != want) {
			t.Fatalf("%q, want %q (valid: %v)", got, want, valid)
		}
		if ok && len(got) > len(data) {
			t.Fatalf("%d bytes of %d", len(got), len(data))
		}
		if valid && !ok && utf8.Valid(data) && !strings.ContainsRune(want, utf8.RuneError) {
			t.Fatalf("%q was not read", data)
		}
		if unquoted, plain := jsonscan.Unquote(data); plain && (!ok || !bytes.Equal(unquoted, got)) {
			t.Fatalf("Unquote gives %q, Text %q", unquoted, got)
		}
		var s jsonscan.Scanner
		s.Reset(data)
		value, _ := s.Bytes([]byte("before"))
		if same := s.OK() && s.AtEnd(); same != ok || ok && !bytes.Equal(value, got) {
			t.Fatalf("Bytes gives %q, Text %q", value, got)
		}
	})
}

func TestTextOfManyRunes(t *testing.T) {
	var all []rune
	for r := rune(0); r <= utf8.MaxRune; r += 7 {
		if utf8.ValidRune(r) {
			all = append(all, r)
		}
	}
	plain, err := json.Marshal(string(all))
	if err != nil {
		t.Fatal(err)
	}
	if got, ok := text(plain); !ok || string(got) != string(all) {
		t.Error("a long text differs")
	}
}

func float(data []byte) (v float64, ok bool) {
	var s jsonscan.Scanner
	s.Reset(data)
	v = s.Float()
	return v, s.OK() && s.AtEnd()
}

// FuzzFloat: a number that is read is the float64 that encoding/json takes.
func FuzzFloat(f *testing.F) {
	for _, v := range append(ordinary, odd...) {
		f.Add([]byte(v))
	}
	for _, v := range []string{`1e400`, `-1e-400`, `9007199254740991`, `900719925474099.25`, `0.000000000000000001`, `1.7976931348623157e308`} {
		f.Add([]byte(v))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var want *float64
		valid := json.Unmarshal(data, &want) == nil && want != nil
		got, ok := float(data)
		if ok != valid || ok && math.Float64bits(got) != math.Float64bits(*want) {
			t.Fatalf("%v %v, want %v", got, ok, valid)
		}
	})
}

func TestFloatRoundTrip(t *testing.T) {
	check := func(v float64) bool {
		data, err := json.Marshal(v)
		if err != nil {
			return true
		}
		got, ok := float(data)
		return ok && got == v
	}
	if err := quick.Check(check, nil); err != nil {
		t.Error(err)
	}
	times := func(us uint32) bool { return check(float64(1_795_000_000_000_000+int64(us)) / 1e6) }
	if err := quick.Check(times, nil); err != nil {
		t.Error(err)
	}
}

var members = jsonscan.NewFields("key", "other", "userId")

type object struct {
	Key    json.RawMessage `json:"key"`
	Other  json.RawMessage `json:"other"`
	UserID json.RawMessage `json:"userId"`
}

// readObject walks an object as a decoder does.
func readObject(data []byte) (o object, ok bool) {
	var s jsonscan.Scanner
	s.Reset(data)
	var seen uint64
	for s.Enter('{'); s.More('}'); {
		switch s.Field(members, &seen) {
		case "key":
			o.Key = s.Raw()
		case "other":
			o.Other = s.Raw()
		case "userId":
			o.UserID = s.Raw()
		default:
			s.Skip()
		}
	}
	return o, s.OK() && s.AtEnd()
}

// FuzzFields: an object that is read gives the members that encoding/json gives.
func FuzzFields(f *testing.F) {
	for _, v := range append(ordinary, odd...) {
		f.Add([]byte(v))
		f.Add([]byte(`{"key":` + v + `}`))
	}
	for _, v := range []string{
		`{"key":1,"key":2}`, `{"Key":1}`, `{"userid":1}`, `{"\u006bey":1}`, `{"` + "\u212a" + `ey":1}`, `{"kay":1,"other":null,"userId":{"key":1}}`,
		`{"":1}`, `{"key":1,"x":2,"x":3}`, `{"key":[1,{}],"other":"a"} `,
	} {
		f.Add([]byte(v))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, ok := readObject(data)
		if !ok {
			return
		}
		var want object
		if err := json.Unmarshal(data, &want); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got.Key, want.Key) || !bytes.Equal(got.Other, want.Other) || !bytes.Equal(got.UserID, want.UserID) {
			t.Fatalf("%s, want %s", got, want)
		}
	})
}

func TestOddNamesFail(t *testing.T) {
	for v, want := range map[string]bool{
		`{"key":1}`: true, `{"unknown":1,"unknown":2}`: true, `{"kez":1,"KEYS":2}`: true, `{"":1}`: true, `{"key":"é","other":"é"}`: true,
		`{"key":1,"key":2}`: false, `{"Key":1}`: false, `{"userid":1}`: false, `{"\u006bey":1}`: false, "{\"\u212aey\":1}": false,
	} {
		if _, ok := readObject([]byte(v)); ok != want {
			t.Errorf("%s: read %v", v, ok)
		}
	}
}

func TestNoAllocation(t *testing.T) {
	data := []byte(`{"key":"a\n\u00e9b","x":[1,2.5,{"y":null}],"other":1795000003.118204,"userId":true}`)
	buf := make([]byte, 0, len(data))
	n := testing.AllocsPerRun(100, func() {
		var s jsonscan.Scanner
		s.Reset(data)
		var seen uint64
		for s.Enter('{'); s.More('}'); {
			switch s.Field(members, &seen) {
			case "key":
				buf = s.Text(buf[:0])
			case "other":
				s.Float()
			case "userId":
				s.Bool()
			default:
				s.Skip()
			}
		}
		if !s.OK() {
			t.Error("odd")
		}
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}
