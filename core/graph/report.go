package graph

import (
	"fmt"
	"time"
)

// A Report is what became of the nodes of a graph in one run.
type Report struct {
	Nodes []Result // in the order in which they were added

	index map[string]int
}

// Node returns what became of the node of that name, and whether there was one.
func (r Report) Node(name string) (Result, bool) {
	i, ok := r.index[name]
	if !ok {
		return Result{}, false
	}
	return r.Nodes[i], true
}

// A Result is what became of a node.
type Result struct {
	Name   string
	Status Status
	// Err is why the node failed or was cancelled; nil for others. A panic of
	// the work is a [core.PanicError].
	Err error
	// FailedDependency is the node for whose failure this one was skipped; if
	// it depends on several that failed, the first.
	FailedDependency string
	Started          time.Time // of the work; zero if it did not start
	Finished         time.Time
}

// A Status says how a node ended.
type Status uint8

const (
	StatusSucceeded Status = iota + 1 // the work returned nil
	StatusFailed                      // it returned another error than its cancellation, panicked, or was kept from starting by [core.Options]
	StatusSkipped                     // a node it depends on, over however many steps, has failed
	StatusCancelled                   // the run was cancelled before the node was done
)

var statusNames = [...]string{"", "succeeded", "failed", "skipped", "cancelled"}

// String is the status in lower case.
func (s Status) String() string {
	if s == 0 || int(s) >= len(statusNames) {
		return fmt.Sprintf("Status(%d)", uint8(s))
	}
	return statusNames[s]
}

// MarshalText is String, for JSON.
func (s Status) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
