package graph

import (
	"fmt"
	"time"
)

// A Report has the results of all nodes of a graph in one run.
type Report struct {
	Nodes []Result // in the order in which they were added

	index map[string]int
}

// Node returns the result of the node of that name, and whether there is one.
func (r Report) Node(name string) (Result, bool) {
	i, ok := r.index[name]
	if !ok {
		return Result{}, false
	}
	return r.Nodes[i], true
}

// A Result says how a node ended.
type Result struct {
	Name   string
	Status Status
	// Err is why the node failed or was cancelled; nil for others. A panic of
	// the work is a [core.PanicError].
	Err error
	// FailedDependency is the failed node because of which this node was skipped: the first
	// one, if several dependencies failed.
	FailedDependency string
	Started          time.Time // start of the work; zero if it did not start
	Finished         time.Time
}

// A Status says how a node ended.
type Status uint8

const (
	StatusSucceeded Status = iota + 1 // the work returned nil
	StatusFailed                      // the work failed or panicked, or [core.Options] refused the node
	StatusSkipped                     // a direct or indirect dependency has failed
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
