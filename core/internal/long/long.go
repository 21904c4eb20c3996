// Package long says how long random tests run.
package long

import (
	"os"
	"runtime/debug"
	"slices"
	"testing"
	"time"
)

// Often returns how often a random test tries. EPHEMERAL_LONG=1 in the environment selects the long form, as CI does
// in the step without the race detector. The short form takes about a second at most. With -short or the race
// detector it is a fifth of that.
func Often(long, short int) int {
	if os.Getenv("EPHEMERAL_LONG") == "1" {
		return long
	}
	if testing.Short() || Race() {
		return min(short, max(1, short/5))
	}
	return short
}

// Race reports whether the race detector is on.
func Race() bool {
	info, _ := debug.ReadBuildInfo()
	return slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// Linear fails if work for large things costs much more for each than for a tenth of them. The bound is generous,
// because many do not fit into the caches of a processor; if each cost as much as there are others, it would be a
// hundred times.
func Linear(t *testing.T, large int, run func(n int)) {
	t.Helper()
	large = large * Often(3, 1) / 3
	took := func(n int) time.Duration {
		began := time.Now()
		run(n)
		return time.Since(began)
	}
	var few, many time.Duration
	for range 3 { // others may have the processor meanwhile
		few = min(took(large/10), took(large/10), took(large/10))
		many = took(large)
		if t.Logf("%d: %v, %d: %v", large/10, few, large, many); many <= 50*few {
			return
		}
	}
	t.Errorf("%d take %v, %d take %v: they cost more the more there are", large/10, few, large, many)
}
