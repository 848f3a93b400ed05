package replay

import (
	"math/bits"

	"tailgate/internal/rng"
)

// role is the part that a word plays in a sentence.
type role uint8

const (
	opener role = iota // a determiner that begins a sentence
	determiner
	adjective
	noun
	verb
	adverb
	preposition
	conjunction
	comma
	stop
	roles
)

// sentences are the patterns of prose. A role for which the vocabulary has no word is left out.
var sentences = [][]role{
	{opener, noun, verb, determiner, noun, stop},
	{opener, adjective, noun, verb, determiner, noun, preposition, determiner, noun, stop},
	{opener, noun, verb, determiner, adjective, noun, comma, conjunction, determiner, noun, verb, determiner, noun, stop},
	{opener, noun, preposition, determiner, noun, verb, determiner, noun, adverb, stop},
	{opener, adjective, noun, adverb, verb, determiner, noun, preposition, determiner, adjective, noun, stop},
	{opener, noun, verb, determiner, noun, conjunction, verb, determiner, adjective, noun, preposition, determiner, noun, stop},
}

// prose yields the first n words of an endless text that name determines: English sentences without sense, whose
// grammar a draft model can follow where it cannot follow random tokens.
func (v *Vocabulary) prose(name uint64, n int32, yield func(uint32)) {
	draw := uint64(0)
	choose := func(from int) int {
		draw++
		hi, _ := bits.Mul64(rng.Hash(name, draw), uint64(from))
		return int(hi)
	}
	for n > 0 {
		for _, r := range sentences[choose(len(sentences))] {
			list := v.byRole[r]
			if len(list) == 0 {
				continue
			}
			yield(uint32(list[choose(len(list))]))
			if n--; n == 0 {
				return
			}
		}
	}
}
