//go:build !race

package coretest

// Race says whether the race detector is on. It makes code slower and makes it allocate, so tests that count
// allocations or memory are skipped, and long tests do less.
const Race = false
