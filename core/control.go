package core

import (
	"context"
	"iter"
)

// A Control is what every coordinator shows, whatever its items are: its counters and
// operations, why they wait, and how it is paused, resized and brought to an end.
// [Coordinator], [ResultCoordinator], [Dispatcher] and [Processor] embed one, and so do
// the types of other modules that are coordinators: their Control is the coordinator's.
//
// A Control is a small value. Copies are the same coordinator. All methods are safe for
// concurrent use, from bodies and from handlers as well; those of the zero Control panic.
type Control struct{ *engine }

var (
	_ Inspector  = Control{}
	_ Controller = Control{}
	_ Sensor     = Control{}
)

// Inside reports whether the caller is an operation of this coordinator: by its context,
// or by its goroutine.
func (c Control) Inside(ctx context.Context) bool { return c.made().isOwn(ctx) }

// Raised reports whether an operation of this coordinator that is still known has raised
// the signal.
func (c Control) Raised(s Signal) bool { return c.made().raised(s) }

// made panics if there is no engine.
func (e *engine) made() *engine {
	if e == nil {
		panic("core: the zero value is no coordinator: use NewCoordinator, NewResultCoordinator, NewDispatcher or NewProcessor")
	}
	return e
}

// Controller is what an operator does to a coordinator: on a status page, for example.
// Every [Control] is one, and so is a type that embeds it.
type Controller interface {
	Cancel(id OperationID, cause error) bool
	Evict(id OperationID) bool
	Pause()
	Resume()
	SetMaxConcurrency(n int) error
}

// Inspector is any coordinator, or what is built on one, whatever it carries: for
// status pages, and for programs that end many of them together.
type Inspector interface {
	Lifecycle
	Name() string
	Stats() Stats
	Operations(OperationQuery) iter.Seq[Snapshot]
	Lookup(OperationID) (Snapshot, bool)
	Explain(OperationID) (Explanation, bool)
}
