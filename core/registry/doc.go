// Package registry holds a program's coordinators by name, so that the place where
// they are configured and the places where they are used need not know each other.
// It is a map that makes what it is asked for, once, and shuts all of it down in
// order. It is not a container, and injects nothing.
//
//	r := registry.New()
//	defer r.Close()
//	err := registry.Register(r, "priority", func() (*core.Coordinator[Order], error) {
//		return core.NewCoordinator(ship, core.Options{Name: "priority", MaxConcurrency: 4})
//	})
//
//	// elsewhere
//	orders, err := registry.Get[*core.Coordinator[Order]](r, "priority")
//	if err != nil {
//		return err
//	}
//	id, err := orders.Enqueue(ctx, order)
//
// A program with one coordinator may call it "".
//
// The function that makes a coordinator runs when it is first asked for, and may ask
// for others. What it passes its work on to was thus made before it, and the last
// made is the furthest upstream: so [Registry.Drain] and the others go backwards.
//
// A [Registry.Scope] is a registry below another, for one tenant or one request. It
// shares what is registered above, except what was registered with [RegisterScoped]:
// of that it has its own, which is closed with it.
package registry
