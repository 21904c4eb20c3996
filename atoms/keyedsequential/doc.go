// Package keyedsequential works on items that have keys: those of one key one after the
// other, in the order in which they came, and different keys side by side, a bounded
// number at once.
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
// So two orders of one customer never meet, and no customer waits for another. What
// runs next is decided when something ends, among the keys that are not busy: a key
// whose items are slow or many takes no more than its turn, and an item that waits for
// its key takes no place from others. Nobody need declare keys; one without items costs
// nothing, so there may be as many as there are users.
//
// The key is a text, or of a type that is one. It is the identity: items whose keys are
// the same text are of one key, so a key made of several parts must tell them apart, as
// "a/b" does and "ab" does not. It is asked for once, by Enqueue, on the goroutine of
// its caller; operations carry it, for Lookup and Operations, and so do the signals they
// raise.
//
// An item is an operation, which can be looked up, waited for and cancelled by the id
// that Enqueue returns. It is accepted, waits its turn, runs and is finished, and is
// shown for a while afterwards. What waits is bounded, for all keys together: when
// there is no room, Enqueue waits for some and TryEnqueue refuses.
//
// The sequencer is a coordinator of package core, with a key: use
// [core.NewKeyedCoordinator] itself for lanes, limits that change and signals that hold
// items back, and [core.NewKeyedResultCoordinator] for results.
package keyedsequential
