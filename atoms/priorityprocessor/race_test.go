//go:build race

package priorityprocessor_test

const raceEnabled = true
