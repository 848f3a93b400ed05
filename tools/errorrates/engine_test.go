package main

import "testing"

func BenchmarkSimulate(b *testing.B) {
	for _, s := range scenarios {
		b.Run(s.name, func(b *testing.B) {
			n := 0
			for i := range b.N {
				rs := s.simulate(load{rate: s.capacity * .85, minutes: 60, seed: uint64(i)})
				n += len(rs)
			}
		})
	}
}

func BenchmarkJudge(b *testing.B) {
	s := scenarios[0]
	rs := s.simulate(load{rate: s.rateAt(.05), minutes: 61, seed: 1})
	for b.Loop() {
		if _, err := judged(b.Context(), data(rs, warmupUs, 60), tailGate); err != nil {
			b.Fatal(err)
		}
	}
}
