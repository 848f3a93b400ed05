// Package rng derives all randomness of tailgate from one seed: named sub-streams that do not disturb one
// another, and a counter-based hash for draws that must not depend on order or on the number of threads.
package rng

import (
	"hash/fnv"
	"math/rand/v2"
)

// New returns the sub-stream of seed with the given name, for example New(seed, "arrival").
// Equal arguments give equal streams on every machine.
func New(seed uint64, name ...string) *rand.Rand {
	h := fnv.New64a()
	for _, n := range name {
		h.Write([]byte(n))
		h.Write([]byte{0})
	}
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

// Hash mixes the keys to 64 uniform bits: a random draw addressed by its keys instead of by its place in a
// stream. The mixer is SplitMix64 (Steele, Lea, Flood 2014).
func Hash(keys ...uint64) uint64 {
	x := uint64(0x9e3779b97f4a7c15)
	for _, k := range keys {
		x = mix(x ^ k)
	}
	return mix(x)
}

// Float returns Hash(keys...) as a number in [0, 1).
func Float(keys ...uint64) float64 { return float64(Hash(keys...)>>11) / (1 << 53) }

func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9
	x = (x ^ (x >> 27)) * 0x94d049bb133111eb
	return x ^ (x >> 31)
}
