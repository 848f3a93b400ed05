package analyze_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"tailgate/analyze"
	"tailgate/internal/fault"
)

func TestParseBy(t *testing.T) {
	for _, s := range []string{"tenant", "class", "model", "target", "bucket", "input_length=0,1024,8192", "output_length=1", "session_size=1,2,10",
		"tenant*class", "class*input_length=0,1024", "time=5m", "time=1m30s", "time=1h", "class*time=30s"} {
		by, err := analyze.ParseBy(s)
		if err != nil || by.String() != s {
			t.Errorf("%q reads as %q, %v", s, by, err)
		}
	}
	if by, err := analyze.ParseBy(" class * session-size=1, 4 "); err != nil || by.String() != "class*session_size=1,4" {
		t.Errorf("%q, %v", by, err)
	}
	for s, want := range map[string]string{
		"": "unknown key", "planet": `unknown key "planet"`, "tenant=a": "takes no edges", "input_length": "needs edges", "input_length=": "not a whole number",
		"input_length=0,0": "must ascend", "input_length=-1": "not a whole number", "input_length=9999999999": "not a whole number",
		"class*class": "stands twice", "time": "whole seconds", "time=0": "whole seconds", "time=1500ms": "whole seconds", "time=1m*time=2m": "stands twice", "class*": "unknown key", "a*b": `unknown key "b"`,
	} {
		if by, err := analyze.ParseBy(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q reads as %q, %v", s, by, err)
		}
	}
}

func TestCuts(t *testing.T) {
	d := load(t, jsonl(t,
		`{"sent":0,"first":1,"last":2,"status":"ok","class":"b","tenant":"x","input_length":1023,"session":"s"}`,
		`{"sent":0,"first":1,"last":2,"status":"ok","class":"a","tenant":"x","input_length":1024,"session":"s"}`,
		`{"sent":0,"first":1,"last":2,"status":"ok","class":"a","tenant":"y","session":"t"}`,
		`{"sent":0,"first":1,"last":2,"status":"ok","input_tokens":5000}`))
	for by, want := range map[string]string{
		"class":                           `{"class":"a"} 2, {"class":"b"} 1, {"class":null} 1`,
		"input_length=0,1024,9000":        `{"input_length":[0,1024]} 1, {"input_length":[1024,9000]} 2, {"input_length":[9000,null]} 0, {"input_length":null} 1`,
		"input_length=1024":               `{"input_length":[1024,null]} 2, {"input_length":null} 1`,
		"session_size=1,2":                `{"session_size":[1,2]} 1, {"session_size":[2,null]} 2, {"session_size":null} 1`,
		"tenant*class":                    `{"tenant":"x","class":"a"} 1, {"tenant":"x","class":"b"} 1, {"tenant":"y","class":"a"} 1, {"tenant":null,"class":null} 1`,
		"class*input_length=0,1024":       `{"class":"a","input_length":[1024,null]} 1, {"class":"a","input_length":null} 1, {"class":"b","input_length":[0,1024]} 1, {"class":null,"input_length":[1024,null]} 1`,
		"input_length=0*session_size=1,2": `{"input_length":[0,null],"session_size":[1,2]} 0, {"input_length":[0,null],"session_size":[2,null]} 2, {"input_length":[0,null],"session_size":null} 1, {"input_length":null,"session_size":[1,2]} 1`,
	} {
		r := report(t, d, "", by)
		var got []string
		for _, b := range r.Buckets[1:] {
			data, err := b.By.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, row("%s %d", data, b.Scheduled))
		}
		if s := strings.Join(got, ", "); s != want {
			t.Errorf("%s:\n got %s\nwant %s", by, s, want)
		}
	}
}

func TestOptionsAreChecked(t *testing.T) {
	by, _ := analyze.ParseBy("class")
	cut := -time.Second
	o := analyze.Options{By: []analyze.By{by, by, {}}, Warmup: &cut}
	err := o.Validate()
	if err == nil || fault.Of(err) != fault.Usage || strings.Count(err.Error(), "\n") != 2 {
		t.Errorf("want three faults: %v", err)
	}
	if _, err := analyze.Analyze(context.Background(), load(t, jsonl(t, `{"sent":1,"status":"ok"}`)), o); err == nil {
		t.Error("Analyze took broken options")
	}
}

func FuzzParseBy(f *testing.F) {
	for _, s := range []string{"tenant*class", "input_length=0,1024", "class*session-size=1,2", "=,*", "input_length=2147483648"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		by, err := analyze.ParseBy(s)
		if err != nil {
			return
		}
		again, err := analyze.ParseBy(by.String())
		if err != nil || again.String() != by.String() {
			t.Errorf("%q prints as %q, which reads as %q, %v", s, by, again, err)
		}
	})
}
