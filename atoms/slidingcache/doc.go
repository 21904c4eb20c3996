// Package slidingcache is a cache that loads the values it does not have. A load runs once,
// however many callers want its value, and it is an operation that can be seen.
//
//	users, err := slidingcache.New(db.LoadUser, slidingcache.Options[string]{Capacity: 10_000})
//	if err != nil {
//		return err
//	}
//	defer users.Close()
//	...
//	user, err := users.Get(ctx, id)
//
// Use [github.com/ephemeralgo/ephemeral/core/lru] when nothing is loaded, or when loads need
// no limit and need not be seen: it is cheaper. Use
// [github.com/ephemeralgo/ephemeral/core/flight] when nothing should be kept.
//
// # Expiry
//
// A value expires when it was not got for Sliding, and in any case at the age Absolute. Both
// begin when the load has returned, so a slow load does not shorten the life of its value.
// Expiry is exact: no caller gets an expired value, except as StaleOnError says. No
// goroutine searches for expired values. They are the first to make room for other values;
// [Cache.Sweep] removes all of them. A value that is kept for StaleOnError takes up room
// until that time is over.
//
// A load function for [NewWithLife] says how long its value lives. That replaces Sliding and
// Absolute, and no Get prolongs it.
//
// When the cache is full, a new key takes the place of another one at once. The choice
// depends on how recently and how often keys were used, and keys that were popular once cool
// down. The store is [github.com/ephemeralgo/ephemeral/core/lru], whose documentation says
// more.
//
// # Loading
//
// Loads are operations of a coordinator. Only so many run at once. A load that waits for
// another load is suspended and does not count. Loads, Lookup and Explain show which loads
// run, which wait, and why. A caller that waits for a load leaves when its own context ends;
// the load goes on as long as a caller waits for it. Close cancels the loads, and Stop lets
// the loads that run finish first.
//
// As an operation, a load costs some microseconds and ten allocations more than a call of
// the function. That is little for values that are worth a cache.
//
// A load never overwrites a value that was set, or restores one that was removed, after the
// load began. The result goes to the callers that wait for it, and is not stored.
//
// Refresh loads a value again and waits for it. Other callers get the old value until the
// new one is there; if the load fails, the old value stays. Three options help when loads
// are slow or fail:
//
//   - RefreshAfter loads a value again in the background while callers still get the old one.
//   - StaleOnError returns an expired value when a load fails.
//   - NegativeTTL remembers that a key has no value. The load says so with [ErrNotFound], or
//     with an error that NotFound accepts.
//
// A load that finds that a key has no value has not failed. This is an answer: it replaces an
// older value.
//
// # Signals
//
// With InvalidateOn a cache removes keys when other parts of the program raise signals. The
// code that changes a product raises "product.changed" with its key, and need not know which
// caches hold products.
//
// A cache raises signals when a load begins and ends. Reads are counted; they raise signals
// only with SampleEvery, so that a hit costs no more than the look-up: it takes no lock and
// allocates nothing. A busy cache soon fills the window of a sink, so by default it has a
// sink of its own; forward from there what others should see.
package slidingcache
