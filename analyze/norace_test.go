//go:build !race

package analyze_test

const underRace = false
