// Package slidingcache is a cache that loads what it does not have: once, however
// many ask, and where it can be seen.
//
//	users, err := slidingcache.New(db.LoadUser, slidingcache.Options[string]{MaxSize: 10_000})
//	if err != nil {
//		return err
//	}
//	defer users.Close()
//	...
//	user, err := users.Get(ctx, id)
//
// # Expiry
//
// A value expires when nobody has got it for Sliding, and in any case when it is
// older than Absolute. Both count from when the load has returned, so a slow load
// does not eat up the life of its value. That is exact: nobody gets an expired value,
// except as StaleOnError says. No goroutine looks for what has expired; it makes room
// when something else is stored, or goes with [Cache.Sweep].
//
// When the cache is full, a new key takes the place of another at once, chosen by how
// recently and how often it was asked for, with what was popular once cooling off.
// The store is [github.com/ephemeralgo/ephemeral/core/lru], whose documentation says
// more.
//
// # Loading
//
// Loads are operations of a coordinator: so many at once and no more; Loads, Lookup
// and Explain show which run, which wait, and why; Close cancels them. Who waits for a
// load leaves when the own context ends, and the load goes on as long as somebody
// waits. That makes a load cost some microseconds more than calling the function,
// which is little for what is worth caching.
//
// What was set or invalidated is never overwritten by a load that began before: its
// result goes to those who waited for it, and is not stored.
//
// Three things help when loads are slow or fail:
//
//   - RefreshAfter loads a value again in the background while the old one is still
//     served.
//   - StaleOnError serves an expired value when a load fails.
//   - NegativeTTL remembers that a key has no value: that the load returned
//     [ErrNotFound], or what else NotFound says.
//
// A load that finds that a key has no value has not failed: it is an answer, which
// takes the place of an older value.
//
// # Signals
//
// With InvalidateOn a cache heeds signals of others: who changes a product raises
// "product.changed" with its key, and need not know who caches products.
//
// A cache raises a signal for each load and what came of it. Reads are counted, and
// raise signals only when SampleEvery says so, so that a hit costs no more than
// looking it up: it takes no lock and allocates nothing. A busy cache soon fills the
// window of a sink, so by default it has one of its own; what others should see can
// be forwarded from there.
package slidingcache
