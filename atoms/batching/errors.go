package batching

import (
	"errors"
	"fmt"
)

// ErrTooLarge is what the error of Enqueue, TryEnqueue and Do for an item is that
// alone has more than [Options.MaxBytes] or [Options.MaxQueuedBytes] bytes. Use
// errors.Is.
var ErrTooLarge = errors.New("batching: item is too large for any batch")

// ItemErrors is the error of a flush that failed for some of its items only: as many
// errors as there are items, in their order, nil for those that were flushed. The
// function of a batcher may return it, wrapped or not, and [Options.OnError] may get
// it.
type ItemErrors []error

// Error says how many items failed, and why the first of them did.
func (e ItemErrors) Error() string {
	failed, first := e.failed()
	return fmt.Sprintf("batching: %d of %d items failed, the first because: %v", failed, len(e), first)
}

// Unwrap returns the errors of the items that failed.
func (e ItemErrors) Unwrap() []error {
	var errs []error
	for _, err := range e {
		if err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

func (e ItemErrors) failed() (n int, first error) {
	for _, err := range e {
		if err != nil {
			if n++; n == 1 {
				first = err
			}
		}
	}
	return n, first
}
