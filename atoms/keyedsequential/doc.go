// Package keyedsequential runs items of one key one after the other, and items of different keys at
// the same time, up to a limit. The items of a key run in the order of the calls of Enqueue.
//
//	orders, err := keyedsequential.New(Order.Customer, process, core.Options{MaxConcurrency: 16})
//	if err != nil {
//		return err
//	}
//	defer orders.Close()
//	for _, order := range incoming {
//		if _, err := orders.Enqueue(ctx, order); err != nil {
//			return err
//		}
//	}
//	return orders.Drain(ctx)
//
// So two orders of one customer never run at once. Orders of different customers wait only for a
// free slot. As long as the queue has room, a key with many items does not delay the others,
// because keys take turns. An item that waits for its key occupies no slot. Keys need no
// declaration, and a key without items costs nothing.
//
// A key is a string, or a value of a string type. Items whose keys are equal strings have the
// same key. If a key has several parts, put a separator between them: "a/b", not "ab". Enqueue
// calls the key function once, on the goroutine of its caller. Operations and their signals
// carry the key.
//
// Each item is an operation. The id that Enqueue returns is for Lookup, Wait and Cancel. An
// operation is shown while it waits and runs, and for a while after its end. The number of items
// that wait is limited, for all keys together: if there is no room, Enqueue waits for room, and
// TryEnqueue refuses.
//
// A sequencer is a [core.Coordinator], and New takes all of its options, such as lanes, classes, and
// signals that defer or refuse items. For results, use [core.NewKeyedResultCoordinator].
package keyedsequential
