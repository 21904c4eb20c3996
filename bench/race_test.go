//go:build race

package bench

// raceEnabled tells tests that the race detector makes everything slower and
// allocate.
const raceEnabled = true
