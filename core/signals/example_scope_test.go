package signals_test

import (
	"fmt"

	"github.com/ephemeralgo/ephemeral/core/signals"
)

// connection is an owner without a coordinator.
type connection struct {
	owner signals.Owner
}

// Connections raise signals, and what one has raised leaves with it.
func ExampleScope() {
	sink := signals.NewSink(signals.SinkOptions{})
	pool := signals.NewScope(sink, "pool", signals.ScopeOptions{})
	slow := pool.Gate("connection.slow", nil)

	a := &connection{signals.Owner{ID: 1, Key: "10.0.0.1"}}
	b := &connection{signals.Owner{ID: 2, Key: "10.0.0.2"}}
	pool.Raise(&a.owner, signals.Note{Name: "connection.open"})
	pool.Raise(&b.owner, signals.Note{Name: "connection.open"})
	release := pool.Hold(&b.owner, signals.Note{Name: "connection.slow"}, 0)

	signal, _, shut := slow.Look()
	fmt.Println("slow:", shut, signal.Key)
	fmt.Println("open:", pool.Count("connection.open"), sink.Count("connection.open"))

	release()
	pool.Evict(&a.owner)
	fmt.Println("slow:", slow.Shut())
	fmt.Println("open:", pool.Count("connection.open"), sink.Count("connection.open"))
	// Output:
	// slow: true 10.0.0.2
	// open: 2 2
	// slow: false
	// open: 1 1
}
