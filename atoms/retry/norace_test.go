//go:build !race

package retry_test

// raceEnabled tells tests that the race detector allocates.
const raceEnabled = false
