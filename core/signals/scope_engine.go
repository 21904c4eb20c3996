package signals

import (
	"context"
	"iter"
	"slices"
	"sync/atomic"
	"time"

	"github.com/ephemeralgo/ephemeral/core/internal/clock"
	"github.com/ephemeralgo/ephemeral/core/internal/glob"
	"github.com/ephemeralgo/ephemeral/core/internal/hook"
)

// forEngine is a Scope with the methods that only coordinators need: the same memory with other
// methods. The type has no exported name, so that the documentation does not show it.
type forEngine Scope

// Engine is for the coordinators of this library. What it returns changes without notice.
func (sc *Scope) Engine() *forEngine { return (*forEngine)(sc) }

func (e *forEngine) scope() *Scope { return (*Scope)(e) }

// Init makes the scope ready, before anything else is called. It counts no names until Tabulate.
func (e *forEngine) Init(on *Sink, source string, opts ScopeOptions) {
	on.prepareZero()
	e.sink, e.source = on, source
	e.names.base, e.names.facts = on.names.base, e.scope()
	if opts.OnSignal != nil {
		e.onSignal = []*subscription{hook.New(glob.Pattern{}, opts.OnSignal)}
	}
	if opts.OnRetract != nil {
		e.onRetract = []*hook.Hook[Retraction]{hook.New(glob.Compile("*"), opts.OnRetract)}
	}
}

// Clock is the clock of the sink. Times are compared with those of gates.
func (e *forEngine) Clock() clock.Clock { return e.names.clock }

// Raise is Scope.Raise. The cause of ctx is the cause of n, unless n has one. It may change n.
func (e *forEngine) Raise(o *Owner, n *Note, ctx context.Context) bool {
	if n.cause == nil && ctx != context.Background() {
		n.cause = causeIn(ctx)
	}
	return e.scope().raise(o, n)
}

// Hold is Scope.Hold, with the cause of ctx.
func (e *forEngine) Hold(o *Owner, n *Note, lease time.Duration, ctx context.Context) (release func()) {
	if n.cause == nil && ctx != context.Background() {
		n.cause = causeIn(ctx)
	}
	return e.scope().hold(o, n, lease)
}

// Release is Scope.Release that leaves the effects to its caller, because that holds locks.
func (e *forEngine) Release(o *Owner, after *hook.Effects) { e.scope().release(o, after) }

// Leave evicts an owner that has raised nothing. It returns false if there is something to evict.
func (e *forEngine) Leave(o *Owner) bool { return o.leave() }

// Evict is Scope.Evict for an owner that holds nothing. It leaves the effects to the caller, who
// holds locks. With stay set, the signals stay on the sink, as if they had been raised directly.
// Last gets what o was. The memory of what last was before is used again.
func (e *forEngine) Evict(o *Owner, stay bool, last *Past, after *hook.Effects) {
	e.scope().evict(o, stay, last, after)
}

// Key is the key of an owner that SetKey may change.
func (e *forEngine) Key(o *Owner) string {
	e.sink.mu.Lock()
	defer e.sink.mu.Unlock()
	return o.Key
}

// SetKey changes the key of an owner, unless it was evicted.
func (e *forEngine) SetKey(o *Owner, key string) {
	e.sink.mu.Lock()
	defer e.sink.mu.Unlock()
	if o.more() != evicted {
		o.Key = key
	}
}

// Look returns Key and Signals of one moment.
func (e *forEngine) Look(o *Owner) (key string, all []Signal) {
	e.sink.mu.Lock()
	defer e.sink.mu.Unlock()
	return o.Key, e.scope().signals(Past{ID: o.ID, first: o.first, rest: o.rest.Load()})
}

// Tabulate makes the scope count names from now on, with those of all owners. Count needs it.
func (e *forEngine) Tabulate(owners iter.Seq[*Owner]) {
	e.sink.mu.Lock()
	defer e.sink.mu.Unlock()
	if e.asked {
		return
	}
	e.asked = true
	for o := range owners {
		e.scope().eachOf(o, func(_ uint64, f *fact) bool {
			e.present.add(f.name)
			return true
		})
	}
}

// Sense lists the signals of owners that q selects, oldest first. Signals that come after the
// call of owners may be missing.
func (e *forEngine) Sense(q Query, owners func() []*Owner) (found []Signal) {
	f := q.compile()
	cutoff := e.names.clock.Wall(e.names.clock.Now()).Add(-max(0, q.Within))
	e.sink.mu.Lock()
	end := e.sink.ring.head
	e.sink.mu.Unlock()
	for _, o := range owners() {
		for _, signal := range e.scope().Signals(o) {
			if signal.Seq < end && f.accepts(&signal) && (q.Within <= 0 || !signal.Time.Before(cutoff)) {
				found = append(found, signal)
			}
		}
	}
	slices.SortFunc(found, asRaised)
	return found
}

// Monitor counts the signals of owners that match pattern. Owners, which is called without a
// lock, lists those that are there.
func (e *forEngine) Monitor(pattern string, span time.Duration, owners func() []*Owner) *Monitor {
	p := glob.Compile(pattern)
	e.sink.mu.Lock()
	m := e.names.addMonitor(p, span, nil, e.sink.ring.head)
	e.sink.mu.Unlock()
	present := owners()
	e.sink.mu.Lock()
	defer e.sink.mu.Unlock()
	var known []seqFact
	for _, o := range present {
		e.scope().eachOf(o, func(seq uint64, f *fact) bool {
			if p.Matches(f.name) {
				known = append(known, seqFact{seq, *f})
			}
			return true
		})
	}
	m.backfill(known)
	return m
}

// Announces reports whether somebody listens to lifecycle signals: see SignalStarted.
func (e *forEngine) Announces() bool { return e.sink.names.listening.Load() }

// Panics counts the panics of the functions of the scope's owner.
func (e *forEngine) Panics() *atomic.Uint64 { return &e.panics }

// Dropped is how many signals were beyond those that an owner shows.
func (e *forEngine) Dropped() uint64 {
	e.sink.mu.Lock()
	defer e.sink.mu.Unlock()
	return e.dropped
}
