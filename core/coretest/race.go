//go:build race

package coretest

// Race says whether the race detector is on. It makes code slower and makes it allocate, so a test that counts
// allocations or memory skips, and a test that tries a lot tries less.
const Race = true
