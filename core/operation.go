// This file decides what a body can do through its operation.

package core

import (
	"cmp"
	"context"
	"runtime/trace"
	"slices"
	"time"

	"github.com/ephemeralgo/ephemeral/core/internal/glob"
	"github.com/ephemeralgo/ephemeral/core/internal/lists"
	"github.com/ephemeralgo/ephemeral/core/internal/meters"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// ID is the operation's id, or 0 for a nil Operation.
func (o *Operation) ID() OperationID { return cmp.Or(o, nobody).owner.ID }

// Source is the name of its coordinator, or "".
func (o *Operation) Source() string { return cmp.Or(o, nobody).engine.name }

// Sink is the sink that the operation raises its signals on, or nil.
func (o *Operation) Sink() *signals.Sink { return cmp.Or(o, nobody).engine.sink }

// Key says what the operation is about.
func (o *Operation) Key() string {
	if o == nil {
		return ""
	}
	return o.engine.scope.Engine().Key(&o.owner)
}

// Lane is the name of its lane, or "" without one.
func (o *Operation) Lane() string {
	if o == nil {
		return ""
	}
	return o.engine.lanes[o.sched.Lane].Name
}

// SetKey changes what the operation is about, for its snapshots and for the signals it
// raises from now on. A keyed coordinator still orders the operation by its first key.
//
//ephemeral:none
func (o *Operation) SetKey(key string) {
	if o != nil {
		o.engine.scope.Engine().SetKey(&o.owner, key)
	}
}

// Set stores a value under a name. Others read it from a snapshot of the operation, with
// [Value]. The value is shared, not copied: do not change it after Set.
//
//ephemeral:none
func (o *Operation) Set(name string, v any) {
	if o == nil {
		return
	}
	e := o.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.index.Get(o.owner.ID) == o {
		lists.Put(&o.details().values, name, v)
	}
}

// Raise raises a signal of this operation, with its key; see [signals.Raiser]. The operation and
// its coordinator show it until the operation leaves the window. They show at most the
// newest 1,000 raised signals of an operation, and all its held ones. Older ones leave the
// sink as well, unless they match a gate. A signal may leave the sink earlier: see [signals.Sink].
// Raise returns false where [signals.Sink.Raise] does, and after the operation has left the
// window.
//
//ephemeral:raises {name}
func (o *Operation) Raise(name string) bool { return o.raise(&signals.Note{Name: name}) }

// RaiseKey is Raise with a key in place of the operation's key.
//
//ephemeral:raises {name}
func (o *Operation) RaiseKey(name, key string) bool {
	return o.raise(&signals.Note{Name: name, Key: key})
}

// Because returns a view of the operation. The signals that are raised on the view have
// the given cause.
//
//ephemeral:is
func (o *Operation) Because(cause signals.Signal) signals.Raiser { return signals.Because(o, cause) }

// Scoped returns a view of the operation. The view puts "sink.coordinator.atom." before
// every name that it raises.
//
//ephemeral:is {sink}.{coordinator}.{atom}.
func (o *Operation) Scoped(sink, coordinator, atom string) signals.Raiser {
	return signals.Scoped(o, sink, coordinator, atom)
}

// RaiseNote is Raise with all that a raiser says.
//
//ephemeral:none
func (o *Operation) RaiseNote(n signals.Note) bool { return o.raise(&n) }

func (o *Operation) raise(n *signals.Note) bool {
	if o == nil {
		return false
	}
	return o.engine.scope.Engine().Raise(&o.owner, n, o.base)
}

// Hold raises a held signal. It stays until release is called, the operation finishes,
// or, if lease is positive, the lease ends; see [signals.Sink.Hold].
//
//ephemeral:raises {name}
func (o *Operation) Hold(name string, lease time.Duration) (release func()) {
	if o == nil {
		return func() {}
	}
	e := o.engine
	e.mu.Lock()
	holds := o.status()&(StatusRunning|StatusSuspended) != 0
	if holds {
		o.sched.Flags |= holding
	}
	e.mu.Unlock()
	if !holds {
		return func() {}
	}
	return e.scope.Engine().Hold(&o.owner, &signals.Note{Name: name}, lease, o.base)
}

// Retract takes back the newest signal with exactly that name that the operation raised.
// It reports whether there was one. It also finds signals that the operation no
// longer shows, if the sink still keeps them for a gate: see [signals.Sink].
//
//ephemeral:pattern {name}
func (o *Operation) Retract(name string) bool {
	if o == nil {
		return false
	}
	return o.engine.scope.Retract(&o.owner, name)
}

// RetractMatching takes back all signals that match pattern and that the operation
// raised. It returns how many there were.
//
//ephemeral:pattern {pattern}
func (o *Operation) RetractMatching(pattern string) int {
	if o == nil {
		return 0
	}
	return o.engine.scope.RetractMatching(&o.owner, pattern)
}

// Has reports whether the operation has raised a signal that matches pattern, and has not
// retracted it.
//
//ephemeral:pattern {pattern}
func (o *Operation) Has(pattern string) bool {
	p := glob.Compile(pattern)
	return slices.ContainsFunc(o.Signals(), func(s signals.Signal) bool { return p.Matches(s.Name) })
}

// Signals lists the signals the operation has raised and not taken back, oldest
// first.
func (o *Operation) Signals() []signals.Signal {
	if o == nil {
		return nil
	}
	return o.engine.scope.Signals(&o.owner)
}

// WaitsFor says that the body waits for something that its coordinator does not know of,
// such as a timer, a lock or an answer. Until done is called, Explain shows the wait as a
// [ReasonBody]. The parameter what completes the sentence "it waits for", for example "a
// token of limiter api". The parameter until is the latest end of the wait; zero means
// that no end is known. The operation keeps its slot; [Operation.Suspend] gives it up.
// Several waits may be under way at once; done may be called many times. Wait, Do, Drain
// and Flush need no WaitsFor.
//
// It costs a lock and two allocations. Call it only when there is something to wait for.
func (o *Operation) WaitsFor(what string, until time.Time) (done func()) {
	if o == nil {
		return func() {}
	}
	return bodyWait{by: o, what: what, since: time.Now(), until: until}.start().end
}

// Suspend calls wait with ctx and returns its error. Meanwhile the operation gives up its
// slot, also in its lane and class, so that others can run. It keeps its key: the next item
// of the key does not start. Explain and [Snapshot.WaitsFor] show the parameter what. It
// completes the sentence "it waits for", for example "approval of order 7". If ctx has a
// deadline, Explain shows it as the latest end of the wait.
//
// Suspend returns when the operation has a slot again. If all slots are taken after wait has returned, Suspend
// waits until a running operation ends. Pending operations of higher lanes go before it. Pending operations of its
// own lane and of lower lanes come after it. [Options.Ageing] limits how long it waits for higher lanes. A
// cancellation or Close does not shorten this. If wait panics or calls runtime.Goexit, the operation first gets a
// slot again; then the panic or the exit continues.
//
// If several goroutines of a body wait, the operation is suspended from the start of the
// first wait to the end of the last one. Goroutines whose waits end earlier go on without
// a slot. Inside another Suspend, after the end of the operation, and on a nil Operation,
// Suspend only calls wait. [Options.MaxSuspended] bounds how many slots are given up at
// once.
//
// During Suspend, do not hold a mutex that other bodies lock. While they wait for the
// mutex, they keep the slot that its holder needs.
func (o *Operation) Suspend(ctx context.Context, what string, wait func(context.Context) error) error {
	need(wait != nil, "Suspend needs a function")
	if o == nil {
		return wait(ctx)
	}
	until, _ := ctx.Deadline()
	w := bodyWait{by: o, what: what, since: time.Now(), until: until, gives: true}
	if trace.IsEnabled() {
		defer trace.StartRegion(ctx, o.engine.name+": suspended").End()
	}
	defer w.start().end()
	return wait(ctx)
}

// Charge takes further calls and cost from the rates of the operation's class ([Class].Rate and CostRate)
// and key ([Options.KeyRate] and KeyCostRate). Use it when the body knows more than its Enqueue, for
// example how many bytes an answer had, or that it has made a second call. Charge does not wait: a bucket
// without enough tokens gets a debt, which its next tokens pay. Negative numbers give tokens back. A
// bucket never has more than its burst. Charge does nothing where there is no rate, before the start and
// after the end of the operation.
func (o *Operation) Charge(calls, cost int) {
	if o == nil {
		return
	}
	e := o.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	if o.status()&(StatusRunning|StatusSuspended) == 0 {
		return
	}
	if e.tape.Load() != nil {
		t := o.onTape()
		t.calls, t.more = t.calls+clampTokens(calls), t.more+clampTokens(cost)
	}
	e.scheduler.Charge(&o.sched, o.status() == StatusSuspended, meters.Tokens{clampTokens(calls), clampTokens(cost)}, e.clock.Now())
	if e.scheduler.Len() > 0 && min(calls, cost) < 0 {
		e.wakeLocked() // some operations may get their tokens earlier
	}
}
