package contributors

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A Snapshot has the outcomes of the contributors at one instant. Each contributor is in
// exactly one of the three fields. It is a copy: the caller may change it.
type Snapshot[R any] struct {
	Results  map[string]R     // results of the contributors that have completed
	Failures map[string]error // errors of the contributors that have failed
	Pending  []string         // in the order in which New was given them
}

// An UnreachableError is returned by [Tracker.Wait] when too many contributors have
// failed: fewer than Required of Expected can complete. It wraps the errors of all that
// failed.
type UnreachableError struct {
	Required, Expected int
	Failures           map[string]error
}

func (e *UnreachableError) Error() string {
	var failed []string
	for _, name := range e.names() {
		failed = append(failed, fmt.Sprintf("%s: %v", name, e.Failures[name]))
	}
	return fmt.Sprintf("contributors: %d of %d cannot complete any more because %d failed: %s",
		e.Required, e.Expected, len(failed), strings.Join(failed, "; "))
}

// Unwrap returns the errors, in the order of the names.
func (e *UnreachableError) Unwrap() []error {
	var errs []error
	for _, name := range e.names() {
		errs = append(errs, e.Failures[name])
	}
	return errs
}

func (e *UnreachableError) names() []string { return slices.Sorted(maps.Keys(e.Failures)) }
