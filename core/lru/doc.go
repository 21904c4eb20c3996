// Package lru is a bounded cache in memory: entries expire when they are not used, and
// callers of one key share a load.
//
//	users, err := lru.New(lru.Options[string, *User]{Capacity: 10_000})
//	...
//	user, err := users.GetOrLoad(ctx, id, db.LoadUser)
//
// Use the module atoms/slidingcache when loads should be bounded and visible as operations,
// or when values should be refreshed in the background. Use package [flight] when nothing
// should be kept.
//
// # Expiry
//
// An entry expires when it has not been accessed for its TTL. Expiry is exact: no method
// returns an expired entry, and no late access revives one. No access shortens a life.
// MaxAge bounds the life of a value that is always in use.
//
// A value stored with [LRU.SetWithLife] expires at the end of its life. No access extends
// the life, and TTL, HotTTL and MaxAge do not count.
//
// An entry with 5 accesses ([Options.HotAfter]) is hot; storing it is the first access. A
// hot entry lives for 30 minutes ([Options.HotTTL]) after an access, unless its own TTL is
// longer. [Stats] shows how many entries are hot. Accesses are counted up to twice
// HotAfter. A new value of the key inherits the count. The count is halved each time
// eviction considers the entry and keeps it. So entries that are no longer popular cool
// down when other entries need the room.
//
// No goroutine searches for expired entries. An expired entry is removed when its key is
// asked for, or by one of the next insertions; [LRU.Sweep] removes all of them at once.
// Until then it takes up room, and [LRU.Len] counts it. But it is the first to make room:
// no live entry is evicted while another entry of its shard has expired. Shards are
// explained below.
//
// # Eviction
//
// When the cache is full, a new entry takes the place of another one at once. There are
// never more than Capacity entries. The package is named after the family of policies: the
// policy does not evict exactly the least recently used entry. It has more hits than that,
// and a read changes only a mark.
//
// The policy is S3-FIFO (Yang, Zhang, Qiu, Yue and Rashmi, "FIFO queues are all you need for
// cache eviction", SOSP 2023), with an admission to the main queue in the spirit of
// TinyLFU (Einziger, Friedman and Manes, ACM Transactions on Storage, 2017). New entries
// pass through a small queue, a sixteenth of the capacity. An entry that is used there is a
// candidate for the main queue; so is a key that comes again soon after its eviction. The
// main queue is a clock (Corbató, 1968). Each candidate moves its hand by one entry. If that
// entry was not used since the hand passed it, it is evicted and the candidate takes its
// place. Otherwise the entry stays, and the candidate is evicted. Of 32 entries in a row
// that leave the small queue, at least one is a candidate, so the hand always moves on.
//
// As a result, a scan of keys that do not come again does little harm. A loop over more
// keys than there is room for has some hits. Entries that were popular once leave when
// they were not used for one turn of the hand. That is later than with exact LRU, which has
// more hits where every key is popular for a short time only. The cost of eviction does not
// depend on the capacity.
//
// A cache of 2048 entries or more is divided into shards, up to 64. Each has a part of the
// capacity and its own policy.
//
// # Loading
//
// [LRU.GetOrLoad] runs the load function once for all callers that want the same key. A
// caller leaves when its own context ends; the load goes on as long as a caller waits.
// [LRU.Refresh] loads a value again, and keeps the old one until the new one is there.
// Loads that wait for each other in a circle get an error, see package [flight].
//
// # Signals
//
// With [Options.Sink], a cache raises signals about its entries, such as [SignalMiss] and
// [SignalEvicted], with the entry's key as the signal's key. Signals of reads can be sampled.
// Without a sink they cost nothing.
//
// # Cost
//
// A Get that finds a value takes no lock and allocates nothing: it reads the clock and
// writes three words, for the use, the expiry and the hit. Storing a value takes the lock of
// a shard and allocates the entry. A heap orders the entries of a shard by expiry: a new
// entry costs at most the logarithm of their number, and as much again for each entry that
// was accessed after it got its place in the heap. A load costs a goroutine and six
// allocations. Memory grows with what is stored. A cache needs no Close.
package lru
