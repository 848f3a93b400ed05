//go:build race

package main

// underRace leaves out the statistics of many simulated runs, which have no threads of their own to watch.
const underRace = true
