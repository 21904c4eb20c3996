// This file decides what all coordinators show: their methods, whatever their items are.

package core

import (
	"context"
	"iter"

	"github.com/ephemeralgo/ephemeral/core/signals"
)

// Inspector is any coordinator, or a type that is built on one, whatever its items are.
// Status pages use it, and programs that end many coordinators together.
type Inspector interface {
	Lifecycle
	Name() string
	Stats() Stats
	Operations(OperationQuery) iter.Seq[Snapshot]
	Lookup(OperationID) (Snapshot, bool)
	Explain(OperationID) (Explanation, bool)
}

// A Control has the methods that all coordinators share: counters, operations, why they
// wait, and how to pause, resize and end the coordinator. [Coordinator],
// [ResultCoordinator], [Dispatcher] and [Processor] embed one. Types of other modules
// embed the Control of their coordinator.
//
// A Control is a small value. All copies control the same coordinator. All methods are
// safe for concurrent use, also from bodies and handlers. The methods of the zero Control
// panic.
type Control struct {
	engine *engine // not embedded: each instance of a generic type with a Control would compile all its methods
}

var (
	_ Inspector      = Control{}
	_ signals.Sensor = Control{}
	_ signals.Sensor = (*signals.Sink)(nil)
)

// made is also how a recording finds the engine of a type with a Control.
func (c Control) made() *engine { return c.engine.made() }

// Inside reports whether the caller is an operation of this coordinator. It recognises the
// operation's context and goroutine, as [ErrWouldDeadlock] says.
func (c Control) Inside(ctx context.Context) bool { return c.made().isOwn(ctx) }

// raised reports whether an operation of this engine has raised s.
func (e *engine) raised(s signals.Signal) bool {
	if s.Operation == 0 || s.Source != e.name {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.index.Get(s.Operation) != nil
}
