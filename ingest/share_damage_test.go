package ingest_test

import (
	"fmt"
	"strings"
	"testing"

	"tailgate/schemas"
)

// Requests whose prompt was not logged whole change nothing in the shares that publish tells, however many there
// are: neither what they shared in front of the damage, nor what nobody knows behind it.
func TestDamagedPromptsStayOutOfSharing(t *testing.T) {
	system := strings.Repeat("The tide table of the harbour. ", 40)
	var whole, damaged [][]byte
	for i := range 12 {
		ask := func(text string) fields {
			return fields{"prompt_tokens": 400, "messages": []fields{{"role": "system", "content": system}, {"role": "user", "content": text}}}
		}
		whole = append(whole, litellm(i, ask(fmt.Sprintf("Question %d", i/3))))
		damaged = append(damaged, litellm(100+i, ask("[TRUNCATED: 5000]")), litellm(200+i, ask("__REDACTED__")))
	}
	alone, _ := publish(t, lakeOf(t, whole), 1, 1)
	mixed, rows := publish(t, lakeOf(t, whole, damaged), 1, 1)
	if alone.Shared.HitRatio < 0.5 || alone.Shared != mixed.Shared {
		t.Errorf("shared %+v alone, %+v among damaged prompts", alone.Shared, mixed.Shared)
	}
	ends := map[int64]int{}
	states := map[string]int{}
	for _, r := range rows {
		states[r.PromptState]++
		if n := len(r.HashIDs); n > 0 && r.PromptState != schemas.PromptFull {
			ends[r.HashIDs[n-1]]++
			if r.PrivateBlocks < 1 {
				t.Errorf("a damaged prompt has no block of its own")
			}
		}
	}
	if states[schemas.PromptTruncated] != 12 || states[schemas.PromptRedacted] != 12 || len(ends) != 1 {
		t.Errorf("states %v, %d different last shared blocks of damaged prompts, want 1", states, len(ends))
	}
}
