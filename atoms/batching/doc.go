// Package batching collects items into batches and hands each batch to one function. One insert
// of a hundred rows costs less than a hundred inserts of one row.
//
//	batcher, err := batching.New(insertRows, batching.Options[Row]{MaxSize: 100})
//	if err != nil {
//		return err
//	}
//	defer batcher.Close()
//	...
//	err = batcher.Enqueue(ctx, row) // returns when the row is accepted
//	...
//	err = batcher.Do(ctx, row)      // returns when the row is inserted, or could not be
//	...
//	return batcher.Drain(ctx)       // flushes the rest, by the deadline of ctx
//
// # When a batch is flushed
//
// To flush a batch is to call the function with its items. A batch is flushed
//
//   - when it has [Options.MaxSize] items or [Options.MaxBytes] bytes,
//   - when [Options.MaxDelay] has passed since its first item came,
//   - halfway to the deadline of the context of a Do,
//   - when there is no room for a new item and the batch has the oldest item,
//   - and by [Batcher.Flush], Complete, Drain and WaitIdle.
//
// A batch never has more items or bytes than these limits allow.
//
// By default one batch is flushed at a time, in the order in which the items came:
// [Options.MaxConcurrency] allows more. While a batch waits for its turn, it takes more items
// until it is full. So a slow function gets fuller batches, not more of them. With
// [Options.Key] the items of each key, such as a table or a tenant, have separate batches.
// The batches of one key are flushed in order, one at a time. Batches of different keys may
// be flushed side by side.
//
// # What becomes of an item
//
// At most [Options.MaxQueued] items wait to be flushed. When the queue is full, Enqueue and
// Do wait for room, so that a fast producer runs at the pace of the flushes. TryEnqueue
// returns [core.ErrFull]. With [Options.DropOldest] the oldest item makes room. Every item
// that was accepted is counted once in the [Counters].
//
// All items of a batch succeed or fail together, with two exceptions. The function may return
// [ItemErrors], with an error for each item. And with [Options.Bisect] the batcher finds the
// bad items. Do returns the error of its item. Items that came by Enqueue have no caller that
// waits: if they are not flushed, [Options.OnError] gets them. A [ResultBatcher] has a
// function that returns a result for each item. Use it to load single records from a store
// that can return many at once.
//
// If the context of a Do ends before the flush, its item leaves the batch. If the contexts of
// all callers of a batch end during its flush, and no item of it came by Enqueue, the context
// of the flush is cancelled. That context has no values of callers, because it serves many.
//
// # Middleware
//
// The function is a [core.Work] of a batch. So middleware can wrap it: retries of whole
// batches, a rate limit, a circuit breaker. Do is a core.Work of an item, and the Do of a
// ResultBatcher is a [core.ResultWork]: a coordinator can run both.
//
// # Shutting down
//
// Drain flushes all items that were accepted. Stop cancels the items that wait, and lets the
// running flushes finish. The callers of cancelled items, and OnError, get [core.ErrStopped].
// Close also cancels the running flushes; there the error is [core.ErrClosed]. At the end
// call Drain with a deadline, then Close.
//
// # Batches are operations
//
// A batcher implements [core.Inspector] and [inspect.Actions], for example for a status page. Its
// operations are batches: Operations, Lookup, Explain, Stats, Cancel, Pause and
// SetMaxConcurrency work as they do in a coordinator. A batch becomes an operation when it is
// full or due. Before that, Stats does not count it, but [Batcher.Counters] counts its items.
// If one item of a batch failed, Stats counts the batch as Failed; Counters counts each item
// by itself. An operation that has ended shows its [Batch]. Abort and WaitIdle include items
// whose batch is not an operation yet.
//
// A batcher that holds no items owns no goroutine and no timer.
package batching
