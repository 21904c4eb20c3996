// Package slidingcache is a cache that loads missing values, once for all callers that want
// the same value. A load is an operation: you can see and limit it.
//
//	users, err := slidingcache.New(db.LoadUser, slidingcache.Options[string]{Capacity: 10_000})
//	if err != nil {
//		return err
//	}
//	defer users.Close()
//	...
//	user, err := users.Get(ctx, id)
//
// Use package [lru] of core when nothing is loaded, or when loads need no limit and need not
// be seen: it is cheaper. Use package [flight] of core when nothing should be kept.
//
// # Expiry
//
// A value expires when there was no access for the time Sliding, and in any case at the age
// Absolute. An access is a call of Get or GetIfPresent; Peek is not.
// Both times begin when the load has returned. Expiry is exact: without StaleOnError,
// no caller gets an expired value. No goroutine searches for expired values. They are the
// first to make room for other values; [Cache.Sweep] removes all of them. If StaleOnError is
// set, an expired value takes up room until that time is over, too.
//
// The load function of [NewWithLife] returns how long its value lives. That replaces Sliding
// and Absolute, and no access extends it.
//
// When the cache is full, a new key takes the place of another one at once. The choice
// depends on how recently and how often keys were used. The store is an [lru.LRU]; its
// documentation has the details.
//
// # Loading
//
// Loads are operations of a coordinator. At most MaxConcurrency run at once. A load that waits
// for another load does not count. Loads, Lookup and Explain show which loads run, which
// wait, and why. A cache is no [core.Inspector], so a status page does not show it. If the
// context of a caller ends, the caller stops waiting; the load goes on while another caller
// waits for it. Close cancels the loads. Stop lets the running loads finish first.
//
// As an operation, a load costs some microseconds and ten allocations more than a call of
// the function.
//
// If a key was set or removed after its load began, the waiting callers get the result of the
// load, but it is not stored.
//
// Refresh loads a value again and waits for it. Until the load ends, other callers get the
// old value; if the load fails, they keep getting it. Three options help when loads
// are slow or fail:
//
//   - RefreshAfter loads a value again in the background while callers still get the old one.
//   - StaleOnError returns an expired value when a load fails.
//   - NegativeTTL remembers that a key has no value. The load says so with an error that is or
//     wraps [ErrNotFound].
//
// A load that finds no value for a key has not failed. Its answer replaces an older value.
//
// # Signals
//
// With InvalidateOn a cache removes keys when other parts of the program raise signals. The
// code that changes a product raises "product.changed" with the product's key. It does not
// know which caches hold products.
//
// A cache raises signals when a load begins and ends. Reads raise signals only with
// SampleEvery. Without it, a hit takes no lock and allocates nothing. A busy cache soon fills
// the window of a sink. So by default a cache makes its own sink. Forward the signals that
// others should see.
package slidingcache
