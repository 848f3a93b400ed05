package anonymize_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"testing"

	"tailgate/anonymize"
)

// BenchmarkChain hashes 16,000 tokens in blocks of 16; fresh is the baseline: a new HMAC for each block.
func BenchmarkChain(b *testing.B) {
	key := make([]byte, 32)
	tokens := make([]uint32, 16_000)
	for i := range tokens {
		tokens[i] = uint32(i * 2654435761 >> 15)
	}
	rate := func(b *testing.B) {
		b.SetBytes(int64(4 * len(tokens)))
		b.ReportMetric(float64(len(tokens)*b.N)/b.Elapsed().Seconds()/1e6, "Mtokens/s")
	}
	b.Run("reused", func(b *testing.B) {
		chain := anonymize.Chain(key)
		var ids []int64
		b.ReportAllocs()
		for b.Loop() {
			ids = chain(ids[:0], anonymize.Scope{Model: "larch-32b"}, tokens)
		}
		rate(b)
	})
	b.Run("fresh", func(b *testing.B) {
		var ids []int64
		for b.Loop() {
			ids = ids[:0]
			state := make([]byte, sha256.Size)
			for at := 0; at < len(tokens); at += 16 {
				m := hmac.New(sha256.New, key)
				m.Write(state)
				m.Write([]byte{0})
				for _, t := range tokens[at : at+16] {
					m.Write(binary.LittleEndian.AppendUint32(nil, t))
				}
				state = m.Sum(nil)
				ids = append(ids, int64(binary.BigEndian.Uint64(state)&^(1<<63)))
			}
		}
		rate(b)
	})
}
