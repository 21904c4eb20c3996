//go:build race

package core_test

// raceEnabled tells tests that the race detector makes everything slower and
// allocate.
const raceEnabled = true
