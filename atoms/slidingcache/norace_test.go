//go:build !race

package slidingcache_test

const raceEnabled = false
