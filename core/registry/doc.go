// Package registry holds a program's coordinators by name, makes each when it is first
// needed, and ends all of them in order. The code that configures them and the code that
// uses them need not know each other. It is not a container, and injects nothing.
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
// The function that makes a coordinator runs with the first Get of its name. It may Get
// the coordinators to which its own coordinator passes work. So downstream coordinators
// are made first, and [Registry.Drain] and the others begin with the one that was made
// last.
//
// A [Registry.Scope] is a registry below another, for one tenant or one request. It shares
// the coordinators of the registry above. For names registered with [RegisterScoped], it
// has its own coordinators, which are closed with it.
package registry
