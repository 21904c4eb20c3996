//go:build race

package filepipeline

// raceEnabled says that the race detector is on, with which everything takes ten times as long and as much memory.
const raceEnabled = true
