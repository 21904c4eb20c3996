package core

import (
	"os"
	"runtime/debug"
	"slices"
	"testing"
)

// Often returns how often a random test tries. EPHEMERAL_LONG=1 in the environment selects the long form, as CI does
// in the step without the race detector. The short form takes about a second at most. With -short or the race
// detector it is a fifth of that.
func Often(long, short int) int {
	if os.Getenv("EPHEMERAL_LONG") == "1" {
		return long
	}
	if testing.Short() || races() {
		return min(short, max(1, short/5))
	}
	return short
}

// races reports whether the race detector is on.
func races() bool {
	info, _ := debug.ReadBuildInfo()
	return slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}
