package trace_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"tailgate/anonymize"
	"tailgate/internal/rng"
	"tailgate/prompt"
	"tailgate/schemas"
	"tailgate/trace"
)

// TestDerivedIDsAreThePrefixes: two requests share the id of a 512-token block exactly when they share every token
// up to the block's end; a tail when they share all. The lake is as publish leaves it: ids up to the last one that
// another request has, private runs behind.
func TestDerivedIDsAreThePrefixes(t *testing.T) {
	keys, err := anonymize.InitKeyDir(filepath.Join(t.TempDir(), "keys"), day)
	if err != nil {
		t.Fatal(err)
	}
	k, err := keys.Load(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	h, err := anonymize.NewHasher(k, anonymize.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{512, 64, 16} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			texts := prefixTree(size)
			rows := make([]schemas.Request, len(texts))
			uses := map[int64]int{}
			for i, text := range texts {
				ids, tokens, err := h.Blocks(nil, &prompt.Prompt{State: schemas.PromptFull, Intact: 1,
					Messages: []prompt.Message{{Parts: []prompt.Part{{Kind: prompt.Text, Text: bytes.Clone(text)}}}}})
				if err != nil || tokens != len(text)/4 {
					t.Fatalf("%d tokens of %d bytes, %v", tokens, len(text), err)
				}
				rows[i] = request(int64(i+1), time.Duration(i)*time.Second, int32(tokens), ids...)
				for _, id := range ids {
					uses[id]++
				}
			}
			for i := range rows {
				r := &rows[i]
				keep := len(r.HashIDs)
				for keep > 0 && uses[r.HashIDs[keep-1]] == 1 {
					keep--
				}
				r.HashIDs = r.HashIDs[:keep]
				r.PrivateBlocks = max(0, *r.InputTokens/16-int32(keep))
			}
			tr := export(t, lake(t, rows...), trace.ExportOptions{BlockSize: size})
			checkDerived(t, tr, texts, size)
		})
	}
}

// prefixTree makes texts of whole tokens that begin alike for a while, with lengths around the borders of blocks.
func prefixTree(size int) [][]byte {
	r := rng.New(8, "tree")
	var texts [][]byte
	for range 120 {
		var text []byte
		if len(texts) > 0 {
			from := texts[r.IntN(len(texts))]
			keep := []int{len(from), len(from) / 4 / size * size * 4, len(from) / 8 * 4, 4 * r.IntN(len(from)/4+1)}[r.IntN(4)]
			text = bytes.Clone(from[:min(keep, len(from))])
		}
		for want := []int{1, 15, 16, 17, size - 1, size, size + 1, 2*size - 16, 2*size + 8, 3 * size}[r.IntN(10)]; len(text)/4 < want; {
			text = append(text, "tidemoonkelpgull"[4*r.IntN(4):][:4]...)
		}
		texts = append(texts, text)
	}
	return texts
}

// checkDerived compares each pair of rows with their texts.
func checkDerived(t *testing.T, tr *trace.Trace, texts [][]byte, size int) {
	t.Helper()
	block := func(i, k int) []byte { // the text up to the end of block k
		return texts[i][:min(4*size*(k+1), len(texts[i]))]
	}
	sharedBlocks := 0
	for i := range tr.Rows {
		a := tr.Rows[i].HashIDs
		if want := (len(texts[i])/4 + size - 1) / size; len(a) != want {
			t.Fatalf("row %d has %d ids, want %d", i, len(a), want)
		}
		for j := range i {
			b := tr.Rows[j].HashIDs
			for k := range a {
				for l := range b {
					same := k == l && bytes.Equal(block(i, k), block(j, l))
					if (a[k] == b[l]) != same {
						t.Fatalf("rows %d and %d: ids of blocks %d and %d equal: %v, texts: %v", i, j, k, l, a[k] == b[l], same)
					}
					if same {
						sharedBlocks++
					}
				}
			}
		}
	}
	if sharedBlocks < 100 {
		t.Errorf("only %d shared blocks: the case is too tame", sharedBlocks)
	}
}
