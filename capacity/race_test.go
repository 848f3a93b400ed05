//go:build race

package capacity_test

// underRace leaves out whole capacity tests: their runs are made one after the other by packages that are watched
// themselves.
const underRace = true
