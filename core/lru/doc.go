// Package lru is a cache in memory: bounded, with entries that expire when they are
// not used, and with loads that run once however many ask.
//
//	users, err := lru.New(lru.Options[string, *User]{Capacity: 10_000})
//	...
//	user, err := users.GetOrLoad(ctx, id, db.LoadUser)
//
// # Expiry
//
// An entry expires when it has not been accessed for its TTL. That is exact: an
// expired entry is never returned, by any method, and neither an access that comes
// too late nor a slow one gives it a new life. An access makes no life shorter.
// MaxAge bounds the life of a value that is always in use.
//
// An entry that is accessed often becomes hot, and then lives for HotTTL after an
// access, unless its own TTL is longer. Its accesses are counted, up to twice
// HotAfter; a new value of the key takes the count over, and every time that
// eviction considers the entry and lets it stay, the count is halved. So what is not
// popular any more cools down when others need the place.
//
// No goroutine looks for what has expired. An expired entry is removed when its key
// is asked for, when eviction meets it, or by one of the next insertions, each of
// which looks at a few places; [LRU.Sweep] removes all at once. Until then it takes
// up a place and is counted by [LRU.Len].
//
// # Eviction
//
// When the cache is full, a new entry takes the place of another at once, so that
// there are never more than Capacity. The name is that of the family: what is
// evicted is not exactly the least recently used entry, but chosen by a policy that
// has more hits and changes nothing in a read but a mark.
//
// It is S3-FIFO (Yang, Zhang, Qiu, Yue and Rashmi, "FIFO queues are all you need for
// cache eviction", SOSP 2023), with an admission to the main queue in the spirit of
// TinyLFU (Einziger, Friedman and Manes, ACM Transactions on Storage, 2017). New
// entries pass through a small queue, a sixteenth of the capacity. Those that were
// used there, or whose key comes again not long after it was evicted, are candidates
// for the main queue, which is a clock (Corbató, 1968). For each candidate its hand
// moves by one: if the entry there was not used since the hand passed last, it is
// evicted and the candidate takes its place; otherwise it stays, and the candidate
// is turned away. So a scan of keys that do not come again passes by, a loop over
// more keys than there is room for keeps hitting a part of them, and what was
// popular once leaves when it has not been used for a turn of the hand. That is slower
// than with exact LRU, which has more hits where everything is popular for a moment
// only. What eviction costs does not depend on the capacity.
//
// A cache of 2048 entries and more is divided into shards, up to 64 of them, each
// with its share of the capacity and a policy of its own.
//
// # Loading
//
// [LRU.GetOrLoad] runs the load function once for all who want the same key. The
// load belongs to nobody in particular: who waits leaves when the own context ends,
// and the load goes on as long as somebody waits.
//
// # Signals
//
// With [Options.Sink], a cache raises signals about its entries, such as [SignalMiss]
// and [SignalEvict], with the entry's key as the signal's key. Those of reads can be
// sampled. Without a sink they cost nothing.
//
// # Cost
//
// Get of what is there takes no lock and allocates nothing: it reads the clock and
// makes three notes, that the entry was used, when it expires now, and that it was a
// hit. Storing takes the lock of a shard and allocates the entry. Memory grows with
// what is stored.
package lru
