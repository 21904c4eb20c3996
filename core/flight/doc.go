// Package flight loads a value once, however many callers want it at the same time. It is
// a single-flight loader whose callers can leave.
//
//	var users flight.Group[string, *User]
//	...
//	user, err := users.Do(ctx, id, db.LoadUser)
//
// While the load of a key runs, other callers that want the key wait for the same load. A
// caller leaves when its own context ends. The load goes on as long as a caller waits for
// it. When the last caller leaves, the load is cancelled with the cause of that caller.
//
// A load may need the value of another key. If it would wait for itself, or for a load
// that waits for it, it gets [core.ErrWouldDeadlock]. Such circles are found across all
// groups and all caches that use this package:
// [github.com/ephemeralgo/ephemeral/core/lru] does, and the module atoms/slidingcache.
//
// A group stores nothing. Use [github.com/ephemeralgo/ephemeral/core/lru] to keep values.
// Use this package to write your own cache: [Group.Join], [Table.Remove] and
// [Call.Finish] are the steps of a load. A cache that runs its loads elsewhere, for
// example as operations of a coordinator, needs only [Load] and [Table].
//
// A load costs a goroutine and seven allocations. Waiting for a load that is under way costs
// a lock and no allocation.
package flight
