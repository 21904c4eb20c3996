//go:build !race

package core

// RaceEnabled tells tests that the race detector makes everything slower and
// allocate.
const RaceEnabled = false
