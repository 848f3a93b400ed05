//go:build !race

package capacity_test

const underRace = false
