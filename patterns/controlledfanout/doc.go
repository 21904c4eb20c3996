// Package controlledfanout runs work for many tenants, users or hosts with two limits: one
// for all work together, and one for each key.
//
//	tenants, err := controlledfanout.New(Order.Tenant, process, core.Options{MaxConcurrency: 100, MaxPerKey: 5})
//
// If the key of an item is at its limit, the item waits, and items of other keys go first. So
// a key with many or slow items does not delay the others. Keys take turns.
//
// [New] is [core.NewKeyedCoordinator] under the usual name of this pattern.
package controlledfanout
