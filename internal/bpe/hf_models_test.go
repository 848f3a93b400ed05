package bpe

import (
	"bytes"
	"fmt"
	"os"
	"testing"
)

// The vocabularies of real models: each of their special tokens is one id both ways, and every token decodes.
func TestHFModels(t *testing.T) {
	if os.Getenv("TAILGATE_PROVE") != "full" {
		t.Skip("loads models' own files; runs with TAILGATE_PROVE=full")
	}
	for _, name := range hfModels {
		t.Run(name, func(t *testing.T) {
			data, _, err := readModel(name)
			if err != nil {
				t.Skip(err)
			}
			e, err := ParseHF(bytes.NewReader(data))
			if err != nil {
				t.Fatal(err)
			}
			enc := e.NewEncoder()
			for _, s := range e.Specials() {
				id, _ := e.Special(s)
				if got := fmt.Sprint(enc.AppendSpecial(nil, []byte(s))); got != fmt.Sprint([]uint32{id}) {
					t.Errorf("special token %d is read as %s", id, got)
				}
			}
			if e.tables().greedy == nil {
				t.Error("merged by rank")
			} else if wild := e.tables().greedy.wilds; (wild > 0) != (name == "llama3") {
				t.Errorf("%d tokens are not made of lower ids (T1: Llama 3 alone has some)", wild)
			} else {
				t.Logf("%d tokens are not made of lower ids", wild)
			}
			if e.Size() < 128_000 {
				t.Errorf("only %d ids", e.Size())
			}
		})
	}
}
