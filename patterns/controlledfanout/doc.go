// Package controlledfanout runs work for many tenants, users or hosts with two limits: one
// for all work together, and one for each key.
//
//	tenants, err := controlledfanout.New(Order.Tenant, process, core.Options{MaxConcurrency: 100, MaxPerKey: 5})
//
// An item whose key is at its limit waits, and items of other keys go first. So a key with
// many items, or with slow ones, takes its own share and no more. Keys take turns.
//
// All this is [core.NewKeyedCoordinator]; this package gives it the name under which people
// look for it. What it returns is a [core.Coordinator], with all its methods.
package controlledfanout
