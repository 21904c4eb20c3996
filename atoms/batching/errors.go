package batching

import (
	"errors"
	"fmt"
	"slices"
)

// ErrTooLarge is returned by Enqueue, TryEnqueue and Do if one item has more bytes than
// [Options.MaxBytes] or [Options.MaxQueuedBytes]. Compare it with errors.Is.
var ErrTooLarge = errors.New("batching: item is too large for any batch")

// ItemErrors is the error of a flush that failed for some items only. It has one error for
// each item, in their order; nil means that the item was flushed. The function of a batcher
// may return it, wrapped or not. A nil ItemErrors means that all items were flushed. If it has
// any other length than the batch, all items fail. [Options.OnError] may get ItemErrors, too.
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
