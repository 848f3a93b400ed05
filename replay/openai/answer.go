package openai

import (
	"encoding/json"
	"math"

	"tailgate/replay"
)

// collector gathers the answer that the next turn builds on. Reasoning is no part of it: clients do not send it
// back. Only calls with KeepAnswer have one.
type collector struct {
	api  string
	text []byte
	ids  []int32
}

func (a *collector) answer() replay.Answer {
	return replay.Answer{Text: string(a.text), TokenIDs: a.ids}
}

// add takes what an event, or a whole answer, says.
func (a *collector) add(data []byte, whole bool) {
	top, err := decodeObject(data)
	if err != nil {
		return // the reader of the stream reports it
	}
	switch {
	case a.api != APIResponses:
		a.addChoices(top)
	case whole:
		a.addItems(top)
	case top["type"] == "response.output_text.delta":
		a.addText(top["delta"])
	}
}

func (a *collector) addChoices(top map[string]any) {
	list, _ := top["choices"].([]any)
	for _, v := range list {
		choice, _ := v.(map[string]any)
		if index, ok := choice["index"].(json.Number); ok && index != "0" {
			continue
		}
		a.addText(choice["text"])
		for _, name := range []string{"delta", "message"} {
			said, _ := choice[name].(map[string]any)
			a.addText(said["content"])
		}
		ids, _ := choice["token_ids"].([]any)
		for _, v := range ids {
			n, _ := v.(json.Number)
			if id, err := n.Int64(); err == nil && id >= 0 && id <= math.MaxInt32 {
				a.ids = append(a.ids, int32(id))
			}
		}
	}
}

func (a *collector) addItems(top map[string]any) {
	items, _ := top["output"].([]any)
	for _, v := range items {
		item, _ := v.(map[string]any)
		parts, _ := item["content"].([]any)
		for _, v := range parts {
			if p, _ := v.(map[string]any); p["type"] == "output_text" {
				a.addText(p["text"])
			}
		}
	}
}

func (a *collector) addText(v any) {
	if s, ok := v.(string); ok {
		a.text = append(a.text, s...)
	}
}
