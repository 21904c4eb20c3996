//go:build !race

package filepipeline

const raceEnabled = false
