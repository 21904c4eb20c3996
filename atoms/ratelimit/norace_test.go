//go:build !race

package ratelimit_test

// raceEnabled tells tests that the race detector makes everything allocate.
const raceEnabled = false
