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

// An unreachable error says that too many contributors have failed: fewer than required can
// complete.
type unreachable struct {
	required, expected int
	failures           map[string]error
}

func (e *unreachable) Error() string {
	var failed []string
	for _, name := range e.names() {
		failed = append(failed, fmt.Sprintf("%s: %v", name, e.failures[name]))
	}
	return fmt.Sprintf("contributors: %d of %d cannot complete any more because %d failed: %s",
		e.required, e.expected, len(failed), strings.Join(failed, "; "))
}

// Unwrap returns ErrUnreachable and the errors, in the order of the names.
func (e *unreachable) Unwrap() []error {
	errs := []error{ErrUnreachable}
	for _, name := range e.names() {
		errs = append(errs, e.failures[name])
	}
	return errs
}

func (e *unreachable) names() []string { return slices.Sorted(maps.Keys(e.failures)) }
