package anonymize_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tailgate/anonymize"
	"tailgate/internal/prefix"
	"tailgate/internal/rng"
	"tailgate/prompt"
	"tailgate/schemas"
)

func chat(messages ...prompt.Message) *prompt.Prompt {
	return &prompt.Prompt{State: schemas.PromptFull, Intact: len(messages), Model: "larch-32b", Messages: messages}
}

func says(role, text string) prompt.Message {
	return prompt.Message{Role: role, Parts: []prompt.Part{{Kind: prompt.Text, Text: []byte(text)}}}
}

// The ids of turn n+1 begin with those of all full blocks of turn n, and its blocks over the answer are those that
// the engine cached while it wrote it: the history that a gateway logs continues the chain, so nothing but the
// prompts needs ids.
func TestNextTurnContinuesTheChain(t *testing.T) {
	for _, template := range []string{"plain", "chatml", "llama3", "jinja:testdata/templates/chatml.jinja"} {
		for _, tokenizer := range []string{"o200k", "chars4", "../internal/bpe/testdata/hf/llama3.json"} {
			t.Run(template+"/"+tokenizer, func(t *testing.T) {
				h := freshHasher(t, anonymize.Options{Tokenizer: tokenizer, Template: template, BlockSize: 4})
				r := rng.New(8, "turns", template, tokenizer)
				words := func(n int) string {
					var b strings.Builder
					for i := range 1 + r.IntN(n) {
						fmt.Fprintf(&b, "%s%d ", []string{"tide", "Ebb", "潮", "mole", "<|im_end|>"}[r.IntN(5)], i)
					}
					return b.String() + "."
				}
				messages := []prompt.Message{says("system", words(40)), says("user", words(30))}
				before := blocks(t, h, chat(messages...))
				for turn := range 6 {
					messages = append(messages, says("assistant", words(60)), says("user", words(30)))
					now, tokens, err := h.Blocks(nil, chat(messages...))
					if err != nil {
						t.Fatal(err)
					}
					full := before[:len(before)-1] // the last one may be partial
					if diff := cmp.Diff(full, now[:min(len(full), len(now))]); diff != "" {
						t.Fatalf("turn %d does not go on from the one before:\n%s", turn, diff)
					}
					if len(now) <= len(before) || (tokens+3)/4 != len(now) {
						t.Fatalf("turn %d: %d ids for %d tokens after %d ids", turn, len(now), tokens, len(before))
					}
					before = now
				}
			})
		}
	}
}

// A message that was cut shares what was there before it, and nothing from it on, with every template and
// tokenizer; also when the memo knows the whole prompt.
func TestDamagedPromptsShareOnlyWhatIsWhole(t *testing.T) {
	whole := chat(says("system", strings.Repeat("You know the tide tables. ", 20)), says("user", strings.Repeat("When is the ebb? ", 20)),
		says("assistant", "At nine."), says("user", strings.Repeat("And tomorrow? ", 20)))
	for _, template := range []string{"plain", "chatml", "llama3", "jinja:testdata/templates/chatml.jinja"} {
		for _, tokenizer := range []string{"o200k", "chars4", "bytes"} {
			h := freshHasher(t, anonymize.Options{Tokenizer: tokenizer, Template: template})
			all := blocks(t, h, whole)
			last := len(all)
			for intact := 3; intact >= 0; intact-- {
				for _, state := range []string{schemas.PromptTruncated, schemas.PromptRedacted, schemas.PromptEncrypted} {
					p := *whole
					p.State, p.Intact = state, intact
					ids, tokens, err := h.Blocks(nil, &p)
					if err != nil {
						t.Fatal(err)
					}
					if n := prefix.Common(ids, all); n != len(ids) || tokens != 16*n {
						t.Errorf("%s, %s: %d ids of which %d are those of the whole prompt, over %d tokens", template, tokenizer, len(ids), n, tokens)
					}
					if intact == 0 && len(ids) != 0 || len(ids) > last {
						t.Errorf("%s, %s: %d ids with %d intact messages", template, tokenizer, len(ids), intact)
					}
					other := p
					other.Messages = slices.Clone(p.Messages)
					other.Messages[intact] = says("user", "[cut]")
					if again := blocks(t, h, &other); !cmp.Equal(again, ids) {
						t.Errorf("%s, %s: what stands in the place of a cut message changes the ids", template, tokenizer)
					}
				}
				ids, _, _ := h.Blocks(nil, &prompt.Prompt{State: schemas.PromptTruncated, Intact: intact, Model: whole.Model, Messages: whole.Messages})
				last = len(ids)
			}
			if last != 0 || len(all) < 8 {
				t.Errorf("%s, %s: %d of %d ids without an intact message", template, tokenizer, last, len(all))
			}
		}
	}
}

// A control token's text in a prompt is the token or text, as the option says.
func TestSpecialsInAPrompt(t *testing.T) {
	path := "../internal/bpe/testdata/hf/llama3.json"
	text := says("user", "a <|eot_id|> b")
	counts := map[string]int{}
	for _, specials := range []string{"own", "all", ""} {
		h := freshHasher(t, anonymize.Options{Tokenizer: path, Template: "llama3", Specials: specials})
		_, counts[specials], _ = h.Blocks(nil, chat(text))
	}
	if counts["own"] <= counts["all"] || counts[""] != counts["all"] {
		t.Errorf("tokens by treatment of specials: %v", counts)
	}
}
