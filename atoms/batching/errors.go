package batching

import (
	"errors"
	"fmt"
	"slices"
)

// ErrTooLarge is returned by Enqueue, TryEnqueue and Do for an item that alone has more
// than [Options.MaxBytes] or [Options.MaxQueuedBytes] bytes. Use errors.Is.
var ErrTooLarge = errors.New("batching: item is too large for any batch")

// ItemErrors is the error of a flush that failed for some of its items only. It has an
// error for each item, in their order, nil for items that were flushed. The function of a
// batcher may return it, wrapped or not, and [Options.OnError] may get it. A nil ItemErrors
// means that all items were flushed. Any other wrong length is an error of all items.
type ItemErrors []error

// Error says how many items failed, and why the first one did.
func (e ItemErrors) Error() string {
	failed := e.Unwrap()
	if len(failed) == 0 {
		return fmt.Sprintf("batching: 0 of %d items failed", len(e))
	}
	return fmt.Sprintf("batching: %d of %d items failed, the first because: %v", len(failed), len(e), failed[0])
}

// Unwrap returns the errors of the items that failed.
func (e ItemErrors) Unwrap() []error {
	return slices.DeleteFunc(slices.Clone(e), func(err error) bool { return err == nil })
}
