// Package keyedsequential works on items that have keys: items of one key one after the
// other, in the order in which they came, and items of different keys side by side, a
// bounded number at once.
//
//	orders, err := keyedsequential.New(Order.Customer, process, keyedsequential.Options{MaxConcurrency: 16})
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
// So two orders of one customer never run at once, and no customer waits for another. When
// something ends, the next item is chosen among the keys that are not busy, in turns: a
// key whose items are slow or many takes no more than its turn, and an item that waits for
// its key takes no slot from others. Keys need no declaration; a key without items costs
// nothing, so there may be as many keys as there are users.
//
// The key is a text, or of a type that is one. It is the identity: items whose keys are
// the same text are of one key, so a key made of several parts must tell them apart, as
// "a/b" does and "ab" does not. The key function is called once, by Enqueue, on the
// goroutine of its caller; operations carry the key, for Lookup and Operations, and so do
// the signals they raise.
//
// An item is an operation, which can be looked up, waited for and cancelled by the id
// that Enqueue returns. It is accepted, waits its turn, runs and is finished, and is
// shown for a while afterwards. The number of items that wait is bounded, for all keys
// together: when there is no room, Enqueue waits for room and TryEnqueue refuses.
//
// The sequencer is a coordinator of package core, with a key: use
// [core.NewKeyedCoordinator] itself for lanes, groups and signals that hold items back,
// and [core.NewKeyedResultCoordinator] for results.
package keyedsequential
