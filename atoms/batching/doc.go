// Package batching collects items into batches and hands each batch to one function,
// because one insert of a hundred rows costs less than a hundred inserts of one.
//
//	batcher, err := batching.New(insertRows, batching.Options[Row]{MaxSize: 100})
//	if err != nil {
//		return err
//	}
//	defer batcher.Close()
//	...
//	err = batcher.Enqueue(ctx, row) // returns when the row is accepted
//	...
//	err = batcher.Do(ctx, row)      // returns when the row is inserted, or not
//	...
//	return batcher.Drain(ctx)       // flushes the rest
//
// # When a batch is flushed
//
// A batch is flushed when it has [Options.MaxSize] items or [Options.MaxBytes] bytes,
// when [Options.MaxDelay] has passed since the first of its items came, and before
// the deadline of a Do that waits for one of them. [Batcher.Flush] flushes what there
// is, and so do Complete and Drain. A batch never has more items or bytes than these
// limits say.
//
// One batch is flushed at a time, and batches are flushed in the order in which their
// items came, unless [Options.MaxConcurrency] says otherwise. While one is being
// flushed the next goes on to be filled, so that a slow function gets fuller batches,
// not more of them. With [Options.Key] the items of each key, say of a table or a
// tenant, have batches of their own, which are flushed in order, side by side with
// those of other keys.
//
// # What becomes of an item
//
// At most [Options.MaxQueued] items wait. Then Enqueue and Do wait for room, so that
// a fast producer runs at the pace of the flushes; TryEnqueue refuses; and with
// [Options.DropOldest] the item that has waited longest makes room. Every item that
// was accepted is in exactly one of the counters of [Stats].
//
// A batch succeeds or fails as a whole, unless the function returns [ItemErrors],
// which say which items failed, or [Options.Bisect] lets the batcher find out. Do
// returns the error of its item. Those that came by Enqueue, for which nobody waits,
// are handed to [Options.OnError], whatever it was that kept them from being flushed.
// A [ResultBatcher], whose function returns a result for each item, is what a loader
// of single records needs that asks for many at once.
//
// A caller of Do may leave before its batch is flushed; its item is then taken out of
// the batch. When all callers of a batch that is being flushed have left, and nothing
// in it came by Enqueue, the context of the flush is cancelled. That context has the
// values of no caller, because it serves many.
//
// # Middleware
//
// The function is a [core.Work] of a batch, so what wraps work wraps it: retries of
// whole batches, a rate limit for them, a breaker. Do has the shape of a core.Work of
// an item, and that of a ResultBatcher that of a [core.ResultWork]: a coordinator can
// run it.
//
// # Shutting down
//
// Drain flushes all that was accepted. Close flushes nothing: it cancels the flushes
// that run, and what waits counts as cancelled, with [core.ErrClosed] for its callers
// and for OnError.
//
// Batches are operations of a coordinator: Operations, Lookup, Explain and Cancel
// work as they do there, and each that has been flushed shows its [Batch]. A batcher that holds no items owns no goroutine.
package batching
