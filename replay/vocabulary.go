package replay

import (
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"tailgate/internal/rng"
)

// word is a word of a vocabulary: one token of the target.
type word struct {
	Text string // with the blank in front
	ID   int32
	role role
}

// Vocabulary are words that are one token each in one tokenizer, in whatever order they stand: a text of n words
// has n tokens. It is immutable. Make it with NewVocabulary.
type Vocabulary struct {
	words  []word         // each text once, marks last
	plain  int            // words that are no marks: the digits of random texts
	byRole [roles][]int32 // indices of words
}

// minWords is the number of words below which blocks would need too many of them to differ.
const minWords = 32

// errNotAdditive says that a tokenizer joins words over their borders.
var errNotAdditive = errors.New("the tokenizer does not give one token to each of enough words")

// NewVocabulary chooses the words that are one token each by asking a tokenizer: ids returns the tokens of a
// text, without special ones. The words are tried in groups, so that a vocabulary that has them all answers a
// handful of questions; texts of chosen words are then tried whole.
func NewVocabulary(ids func(text string) ([]int32, error)) (*Vocabulary, error) {
	all := candidates()
	pick := picker{ids: ids, known: map[string]int32{}}
	var words, marks []word // each text once
	seen := map[string]bool{}
	for _, w := range all {
		switch {
		case seen[w.Text]:
		case w.Text[0] == ' ':
			words = append(words, w)
		default:
			marks = append(marks, w)
		}
		seen[w.Text] = true
	}
	if err := pick.choose(words); err != nil {
		return nil, err
	}
	if len(pick.known) < minWords {
		return nil, fmt.Errorf("choosing words: %w (%d of %d)", errNotAdditive, len(pick.known), len(words))
	}
	if err := pick.chooseMarks(marks); err != nil {
		return nil, err
	}
	v := &Vocabulary{}
	index := map[string]int32{}
	for _, w := range slices.Concat(words, marks) {
		if id, ok := pick.known[w.Text]; ok {
			index[w.Text] = int32(len(v.words))
			v.words = append(v.words, word{Text: w.Text, ID: id})
			if w.Text[0] == ' ' {
				v.plain++
			}
		}
	}
	for _, w := range all {
		if i, ok := index[w.Text]; ok {
			v.byRole[w.role] = append(v.byRole[w.role], i)
		}
	}
	return v, v.verify(ids)
}

// Size is the number of words.
func (v *Vocabulary) Size() int { return len(v.words) }

// Digest names the vocabulary: equal digests, equal prompts.
func (v *Vocabulary) Digest() string {
	h := fnv.New64a()
	for _, w := range v.words {
		fmt.Fprintf(h, "%s\x00%d\x00", w.Text, w.ID)
	}
	return fmt.Sprintf("%016x", h.Sum64())
}

func (v *Vocabulary) span() uint64 { return uint64(v.plain) }

// verify tries long texts of random words and of prose.
func (v *Vocabulary) verify(ids func(string) ([]int32, error)) error {
	const words = 1000
	for seed, write := range []func(uint64, int32, func(uint32)){
		v.prose, func(name uint64, n int32, yield func(uint32)) { spell(name, n, v.span(), yield) },
	} {
		var text strings.Builder
		var want []int32
		write(rng.Hash(uint64(seed)), words, func(digit uint32) {
			text.WriteString(v.words[digit].Text)
			want = append(want, v.words[digit].ID)
		})
		got, err := ids(text.String())
		if err != nil {
			return err
		}
		if !slices.Equal(got, want) {
			return fmt.Errorf("choosing words: %w (%d tokens for %d words)", errNotAdditive, len(got), words)
		}
	}
	return nil
}

// picker finds the words that are one token.
type picker struct {
	ids   func(string) ([]int32, error)
	known map[string]int32
}

// choose keeps the words of a group that are one token each, wherever they stand: the tokens of the group
// backwards must be its tokens, backwards.
func (p *picker) choose(group []word) error {
	if len(group) == 0 {
		return nil
	}
	forth, err := p.ids(textOf(group))
	if err != nil {
		return err
	}
	if len(forth) == len(group) {
		reversed := slices.Clone(group)
		slices.Reverse(reversed)
		if len(group) == 1 {
			reversed = append(reversed, group[0]) // alone, a word must be the same twice
		}
		back, err := p.ids(textOf(reversed))
		if err != nil {
			return err
		}
		slices.Reverse(back)
		if slices.Equal(back[:min(len(back), len(group))], forth) && len(back) == len(reversed) {
			for i, w := range group {
				p.known[w.Text] = forth[i]
			}
			return nil
		}
	}
	if len(group) == 1 {
		return nil
	}
	half := len(group) / 2
	if err := p.choose(group[:half]); err != nil {
		return err
	}
	return p.choose(group[half:])
}

// chooseMarks keeps the marks that are one token between two words and change neither.
func (p *picker) chooseMarks(marks []word) error {
	const around = " the"
	word, ok := p.known[around]
	if !ok {
		return nil
	}
	for _, w := range marks {
		got, err := p.ids(around + w.Text + around + w.Text + around)
		if err != nil {
			return err
		}
		if len(got) == 5 && got[1] == got[3] && got[0] == word && got[2] == word && got[4] == word {
			p.known[w.Text] = got[1]
		}
	}
	return nil
}

func textOf(words []word) string {
	var b strings.Builder
	for _, w := range words {
		b.WriteString(w.Text)
	}
	return b.String()
}
