package flight

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// A Load stands for one run of a load function. The context of the load function is made
// from it. It has the values of the first caller's context, but neither its deadline nor
// its end, because other callers may wait for the same load.
type Load struct {
	caller context.Context
	on     []*Load // the loads that this one waits for; guarded by waits
}

// NewLoad makes a load for a first caller with that context.
func NewLoad(caller context.Context) *Load { return &Load{caller: caller} }

type loadKey struct{}

// From returns the load whose function has got ctx, or a context made from it, or nil. If a
// load was begun inside another load, From returns the inner one.
func From(ctx context.Context) *Load {
	l, _ := ctx.Value(loadKey{}).(*Load)
	return l
}

// Deadline is none.
func (*Load) Deadline() (deadline time.Time, ok bool) { return time.Time{}, false }

// Done is nil: the context that is made from the load decides when the load is cancelled.
func (*Load) Done() <-chan struct{} { return nil }

// Err is nil.
func (*Load) Err() error { return nil }

// Value returns the value of the first caller's context.
func (l *Load) Value(key any) any {
	if key == (loadKey{}) {
		return l
	}
	return context.WithoutCancel(l.caller).Value(key) // context.Cause must not find the caller's context
}

// Await calls wait, which waits for the end of the load, and returns its error. Ctx is the
// caller's context. If it belongs to this load, or to a load for which this load waits,
// directly or through other loads and caches, Await does not call wait and returns
// [core.ErrWouldDeadlock].
func (l *Load) Await(ctx context.Context, wait func() error) error {
	by := From(ctx)
	if by == nil {
		return wait()
	}
	waits.Lock()
	circle := l.waitsFor(by)
	if !circle {
		by.on = append(by.on, l)
	}
	waits.Unlock()
	if circle {
		return core.ErrWouldDeadlock
	}
	defer func() {
		waits.Lock()
		defer waits.Unlock()
		i := slices.Index(by.on, l)
		by.on = slices.Delete(by.on, i, i+1)
	}()
	return wait()
}

// waits guards the field on of all loads in all caches. Only a load that waits for another
// load takes it.
var waits sync.Mutex

// waitsFor reports whether l is other, or waits for other, directly or through other loads.
func (l *Load) waitsFor(other *Load) bool {
	all := []*Load{l}
	for i := 0; i < len(all); i++ {
		if all[i] == other {
			return true
		}
		for _, next := range all[i].on {
			if !slices.Contains(all, next) {
				all = append(all, next)
			}
		}
	}
	return false
}
