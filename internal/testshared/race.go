//go:build race

package testshared

// underRace tells that the test was built with the race detector.
const underRace = true
