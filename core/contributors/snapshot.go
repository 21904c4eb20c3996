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
	Results  map[string]R     // of the contributors that have completed
	Failures map[string]error // of the contributors that have failed
	Pending  []string         // in the order in which New was given them
}

// An UnreachableError is returned by [Tracker.Wait] when so many contributors have
// failed that fewer than Required of those Expected can complete. It wraps the errors of
// all that failed.
type UnreachableError struct {
	Required, Expected int
	Failures           map[string]error
}

func (e *UnreachableError) Error() string {
	var text strings.Builder
	fmt.Fprintf(&text, "contributors: %d of %d cannot complete any more because %d failed", e.Required, e.Expected, len(e.Failures))
	separator := ": "
	for _, name := range e.names() {
		fmt.Fprintf(&text, "%s%s: %v", separator, name, e.Failures[name])
		separator = "; "
	}
	return text.String()
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
