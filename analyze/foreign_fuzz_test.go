package analyze

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"testing"
	"testing/iotest"
)

// fuzzForeign feeds a reader: it must end in rows that keep time's arrow and that the tables take, or in an error.
func fuzzForeign(f *testing.F, file string, read func(context.Context, io.Reader, *foreign) error, seeds ...string) {
	text, err := os.ReadFile(filepath.Join("testdata", "foreign", file))
	if err != nil {
		f.Fatal(err)
	}
	text = text[:min(len(text), 6000)]
	f.Add(text)
	f.Add(text[:bytes.LastIndexByte(text, '\n')+1]) // whole lines
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		to := &foreign{notes: map[string]int{}}
		if read(context.Background(), bytes.NewReader(text), to) != nil {
			return
		}
		d := newData()
		if _, err := to.appendTo(d); err != nil {
			return
		}
		d.endInput(Input{}, "")
		d.finish()
		for i := range int32(d.n) {
			if i > 0 && d.scheduled.at(i) < d.scheduled.at(i-1) {
				t.Errorf("row %d is due at %d after one at %d", i, d.scheduled.at(i), d.scheduled.at(i-1))
			}
			if s, ok := d.status.word(i); !ok || s == "" {
				t.Errorf("row %d has no status", i)
			}
			for _, m := range []metric{ttftSent, e2eSent, tpot} {
				if x := d.value(m, i); x < 0 {
					t.Errorf("metric %d of row %d is %g", m, i, x)
				}
			}
			d.gapsOf(itl, i)
		}
	})
}

func FuzzForeignAIPerf(f *testing.F) {
	fuzzForeign(f, "aiperf.jsonl", readAIPerf,
		`{"metadata":{"request_start_ns":5,"turn_index":1,"was_cancelled":true},"metrics":{"request_latency":{"value":7,"unit":"ms"},"inter_chunk_latency":{"value":[1],"unit":"ms"}}}`)
}

func FuzzForeignVLLM(f *testing.F) {
	fuzzForeign(f, "vllm.json", readVLLM,
		`{"output_lens":[3,0],"ttfts":[0.01,0],"itls":[[0.01,0.02],[]],"start_times":[1,2],"errors":["","x"],"queue_times":[0.1,-Infinity]}`)
}

func FuzzForeignGuideLLM(f *testing.F) {
	fuzzForeign(f, "guidellm.json", readGuideLLM,
		`{"benchmarks":[{"requests":{"successful":[{"info":{"timings":{"targeted_start":1,"request_start":2,"first_token_iteration":3,"last_token_iteration":4}},"output_tokens":3}],"incomplete":[{}]}}]}`)
}

func FuzzForeignInferencePerf(f *testing.F) {
	fuzzForeign(f, "inference-perf.json", readInferencePerf,
		`[{"start_time":1,"end_time":2,"info":{"response_metrics":{"output_tokens":2,"chunk_times":[1.25,1.75]}}},{"start_time":NaN,"end_time":1,"error":{"error_type":"HTTP Error 429"}}]`)
}

// Valid JSON passes as it is, in whatever portions it comes; the words of Python become null.
func FuzzPythonJSON(f *testing.F) {
	f.Add([]byte(`{"a":[1,-2.5e3,"NaN \" -Infinity"],"b":null}`))
	f.Add([]byte(`[NaN,Infinity,-Infinity,-1]`))
	f.Fuzz(func(t *testing.T, text []byte) {
		whole, err := io.ReadAll(pythonJSON(bytes.NewReader(text)))
		if err != nil {
			t.Fatal(err)
		}
		pieces, err := io.ReadAll(iotest.OneByteReader(pythonJSON(iotest.HalfReader(bytes.NewReader(text)))))
		if err != nil || !bytes.Equal(whole, pieces) {
			t.Errorf("%q in pieces, %q whole (%v)", pieces, whole, err)
		}
		if json.Valid(text) && !bytes.Equal(whole, text) {
			t.Errorf("%q became %q", text, whole)
		}
	})
}

func TestPythonJSON(t *testing.T) {
	got, err := io.ReadAll(pythonJSON(bytes.NewReader([]byte(`{"NaN":NaN,"x\"NaN":[Infinity,-Infinity,-1,"Infinity"]}`))))
	if want := `{"NaN":null,"x\"NaN":[null,null,-1,"Infinity"]}`; err != nil || string(got) != want {
		t.Errorf("%s (%v), want %s", got, err, want)
	}
}
