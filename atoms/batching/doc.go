// Package batching collects items into batches and hands each batch to one function,
// because one insert of a hundred rows costs less than a hundred inserts of one row.
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
//   - when half of the time has passed that the context of a Do in it allows,
//   - when an item finds no room in the queue and the batch has the oldest item,
//   - and by [Batcher.Flush], Complete, Drain and WaitIdle.
//
// A batch never has more items or bytes than these limits allow.
//
// One batch is flushed at a time, in the order in which the items came, unless
// [Options.MaxConcurrency] allows more. A batch that waits for its turn goes on taking
// items until it is full. So a slow function gets fuller batches, not more of them. With
// [Options.Key] the items of each key, such as a table or a tenant, have batches of their
// own. The batches of one key are flushed in order; different keys are flushed side by side.
//
// # What becomes of an item
//
// At most [Options.MaxQueued] items wait to be flushed. When the queue is full, Enqueue and
// Do wait for room, so that a fast producer runs at the pace of the flushes. TryEnqueue
// returns [core.ErrFull]. With [Options.DropOldest] the oldest item makes room. Every item
// that was accepted is in exactly one of the [Counters].
//
// A batch succeeds or fails as a whole, unless the function returns [ItemErrors], which
// say which items failed, or [Options.Bisect] lets the batcher find out. Do returns the
// error of its item. Items that came by Enqueue have no caller that waits: if they are not
// flushed, for any reason, [Options.OnError] gets them. A [ResultBatcher] has a function
// that returns a result for each item. Use it to load single records when the store can
// return many at once.
//
// A caller of Do may leave before its batch is flushed: when its context ends, the item is
// taken out of the batch. When all callers of a batch leave during its flush, and no item
// of it came by Enqueue, the context of the flush is cancelled. That context has the values
// of no caller, because it serves many.
//
// # Middleware
//
// The function is a [core.Work] of a batch, so what wraps work wraps it: retries of
// whole batches, a rate limit, a circuit breaker. Do is a core.Work of an item, and the Do
// of a ResultBatcher is a [core.ResultWork]: a coordinator can run it.
//
// # Shutting down
//
// Drain flushes all items that were accepted. Stop drops the items that wait, and lets the
// flushes that run finish. The dropped items count as Cancelled; their callers and OnError
// get [core.ErrStopped]. Close cancels the running flushes as well, with [core.ErrClosed].
// So at the end call Drain with a deadline, then Close.
//
// # Batches are operations
//
// A batcher is a [core.Inspector] and a [core.Controller], for example for a status page. Its
// operations are batches: Operations, Lookup, Explain, Stats, Cancel, Pause and
// SetMaxConcurrency work as they do in a coordinator. A batch becomes an operation when it is
// full or due. Until then Stats does not count it, but [Batcher.Counters] counts its items.
// When the operation has ended it shows its [Batch]. Abort and WaitIdle include items whose
// batch is not an operation yet. Call these methods on the batcher, not on its Control field,
// which knows nothing of items.
//
// A batcher that holds no items owns no goroutine and no timer.
package batching
