//go:build race

package slidingcache_test

// raceEnabled tells tests that the race detector makes everything slower and
// allocate.
const raceEnabled = true
