package openai

import (
	"testing"
)

// deltas are events of responses that the scanner must not leave to encoding/json.
var deltas = []string{
	`{"type":"response.output_text.delta","sequence_number":7,"item_id":"msg_1","output_index":0,"content_index":0,"delta":" a\"\né","logprobs":[]}`,
	`{"type":"response.reasoning_text.delta","delta":"hm"}`,
	`{"delta":"","type":"response.output_text.delta"}`,
	`{"type":"response.function_call_arguments.delta","delta":"{\"a\""} `,
}

func TestOrdinaryDeltasAreScanned(t *testing.T) {
	for _, data := range deltas {
		got, ok := scanEvent([]byte(data))
		if !ok {
			t.Errorf("left to encoding/json: %s", data)
			continue
		}
		if want, err := decodeEvent([]byte(data)); err != nil || got != want {
			t.Errorf("%s\n got %+v\nwant %+v (%v)", data, got, want, err)
		}
	}
}

// others are events that must be decoded, or refused by both.
var others = []string{
	`{"type":"response.created","response":{"status":"in_progress"}}`,
	`{"type":"response.completed","response":{"status":"completed","usage":{"input_tokens":1,"output_tokens":2}}}`,
	`{"type":"response.output_text.delta","delta":"a","delta":""}`,
	`{"type":"response.output_text.delta","delta":1}`,
	`{"type":"response.output_text.delta"}`,
	`{"type":"response.output_text.delta","delta":"a","error":{"code":500}}`,
	`{"type":"response.output_text.done","text":"abc"}`,
	`{"type":"error","code":"server_error","message":"m"}`,
	`{"t\u0079pe":"response.output_text.delta","delta":"a"}`,
	`{"delta":"a"}`, `{}`, `[]`, ``, `{`, `{"type":"x"}`, `{"error":{"message":"m"}}`,
}

func TestOtherEventsAreNotScanned(t *testing.T) {
	for _, data := range others {
		if c, ok := scanEvent([]byte(data)); ok {
			t.Errorf("scanned %s as %+v", data, c)
		}
	}
}

func FuzzEvent(f *testing.F) {
	for _, data := range append(append([]string{}, deltas...), others...) {
		f.Add([]byte(data))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, ok := scanEvent(data)
		want, err := decodeEvent(data)
		if ok && (err != nil || got != want) {
			t.Errorf("scanned %q\n got %+v\nwant %+v (%v)", data, got, want, err)
		}
	})
}

const (
	begun     = `{"type":"response.created","response":{"status":"in_progress"}}`
	completed = `{"type":"response.completed","response":{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"abc"}]}],"usage":{"input_tokens":9,"input_tokens_details":{"cached_tokens":8},"output_tokens":4,"output_tokens_details":{"reasoning_tokens":1}}}}`
)

var responseStreams = []struct {
	name    string
	packets []recorded
	want    want
}{
	{"reasoning, then text; usage at the end", []recorded{
		ev(1, begun), ev(2, `{"type":"response.output_item.added","item":{"type":"message"}}`),
		ev(10, `{"type":"response.reasoning_text.delta","delta":"r"}`),
		ev(20, `{"type":"response.output_text.delta","delta":"a"}`), ev(30, `{"type":"response.output_text.delta","delta":"b"}`),
		ev(31, `{"type":"response.output_text.done","text":"ab"}`), ev(32, completed),
	}, want{"ok", "", 10, 20, 30, 4, 0, 9, 8, 1, 3}},
	{"a pinned length ends as incomplete", []recorded{
		ev(10, `{"type":"response.output_text.delta","delta":"a"}`),
		ev(11, `{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"usage":{"input_tokens":9,"output_tokens":1}}}`),
	}, want{"ok", "", 10, 10, 10, 1, 0, 9, -1, -1, 1}},
	{"the name of a tool comes with its item", []recorded{
		ev(10, `{"type":"response.output_item.added","item":{"type":"function_call","name":"f","arguments":""}}`),
		ev(20, `{"type":"response.function_call_arguments.delta","delta":"{}"}`), ev(21, completed),
	}, want{"ok", "", 10, 10, 20, 4, 0, 9, 8, 1, 2}},
	{"a server that sends whole texts only", []recorded{
		ev(1, begun), ev(30, `{"type":"response.output_text.done","text":"abc"}`), ev(31, completed),
	}, want{"ok", "", 30, 30, 30, 4, 0, 9, 8, 1, 1}},
	{"a server that says it all at the end", []recorded{ev(1, begun), ev(40, completed)},
		want{"ok", "", 40, 40, 40, 4, 0, 9, 8, 1, 1}},
	{"[DONE] behind the end is tolerated", []recorded{
		ev(10, `{"type":"response.output_text.delta","delta":"a"}`), ev(11, completed), ev(12, done),
	}, want{"ok", "", 10, 10, 10, 4, 0, 9, 8, 1, 1}},
	{"cut before the end", []recorded{ev(10, `{"type":"response.output_text.delta","delta":"a"}`)},
		want{"truncated", "no_finish", 10, 10, 10, -1, 0, -1, -1, -1, 1}},
	{"failed", []recorded{
		ev(10, `{"type":"response.output_text.delta","delta":"a"}`),
		ev(20, `{"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"m"},"usage":null}}`),
	}, want{"error_event", "engine_error", 10, 10, 10, -1, 0, -1, -1, -1, 1}},
	{"overloaded", []recorded{ev(5, `{"type":"error","code":"rate_limit_exceeded","message":"m"}`)},
		want{"error_event", "rate_limited", -1, -1, -1, -1, 0, -1, -1, -1, 0}},
	{"an error as chat has it", []recorded{ev(5, `{"error":{"message":"m","code":503}}`)},
		want{"error_event", "rate_limited", -1, -1, -1, -1, 0, -1, -1, -1, 0}},
	{"cancelled by the server", []recorded{ev(5, `{"type":"response.completed","response":{"status":"cancelled"}}`)},
		want{"error_event", "engine_abort", -1, -1, -1, -1, 0, -1, -1, -1, 0}},
	{"complete without a token", []recorded{ev(5, `{"type":"response.completed","response":{"status":"completed","output":[]}}`)},
		want{"empty", "no_token", -1, -1, -1, -1, 0, -1, -1, -1, 0}},
}

func TestResponseStreams(t *testing.T) {
	for _, c := range responseStreams {
		t.Run(c.name, func(t *testing.T) { check(t, playAs(APIResponses, c.packets), c.want) })
	}
}

func TestAnswersForTheNextTurn(t *testing.T) {
	for _, c := range []struct {
		name, api string
		packets   []recorded
		text      string
		ids       int
	}{
		{"chat", APIChat, []recorded{
			ev(1, `{"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}`),
			ev(2, `{"choices":[{"index":0,"delta":{"reasoning":"hm"}}]}`),
			ev(3, `{"choices":[{"index":0,"delta":{"content":"a\"\u00e9"}}]}`),
			ev(4, `{"choices":[{"index":1,"delta":{"content":"another choice"}}]}`),
			ev(5, `{"choices":[{"index":0,"delta":{"content":"b"},"finish_reason":"stop"}]}`),
		}, "a\"éb", 0},
		{"token ids", APICompletions, []recorded{
			ev(3, `{"choices":[{"index":0,"text":"","token_ids":[5]}]}`),
			ev(4, `{"choices":[{"index":0,"text":"x","token_ids":[6,7],"finish_reason":"length"}]}`),
		}, "x", 3},
		{"responses", APIResponses, []recorded{
			ev(3, `{"type":"response.reasoning_text.delta","delta":"r"}`),
			ev(4, `{"type":"response.output_text.delta","delta":"a"}`), ev(5, `{"type":"response.output_text.done","text":"a"}`),
			ev(6, `{"type":"response.output_text.delta","delta":"b"}`), ev(7, completed),
		}, "ab", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			keep := &collector{api: c.api}
			o := playInto(c.api, keep, c.packets)
			if o.Answer.Text != c.text || len(o.Answer.TokenIDs) != c.ids || o.Status != "ok" {
				t.Errorf("%s: %q, ids %v", o.Status, o.Answer.Text, o.Answer.TokenIDs)
			}
		})
	}
}
