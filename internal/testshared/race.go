//go:build race

package testshared

// UnderRace tells that the test was built with the race detector.
const UnderRace = true
