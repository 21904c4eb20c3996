package registry

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/guard"
)

// Complete ends the intake of all coordinators at once, so upstream ones cannot pass on
// work any more: see Drain. No more coordinators are made.
func (r *Registry) Complete() {
	r.complete(false)
	for _, c := range slices.Backward(r.all()) {
		c.made.Complete()
	}
}

// Flush flushes the coordinators one after the other; the one that was made last comes
// first. So it also waits for the work that upstream coordinators pass on. When ctx
// ends, it stops waiting. It returns the errors joined, each with the name of its
// coordinator. Inside a body of one of the coordinators it returns
// [core.ErrWouldDeadlock].
func (r *Registry) Flush(ctx context.Context) error { return r.wait(ctx, core.Inspector.Flush, false) }

// Drain drains the coordinators one after the other; the one that was made last comes
// first. So downstream coordinators still accept and finish the work that upstream ones
// pass on. No more coordinators are made. When ctx ends, it stops waiting, and the intake
// of all coordinators is closed. It returns errors as Flush does.
func (r *Registry) Drain(ctx context.Context) error { return r.wait(ctx, core.Inspector.Drain, true) }

// Stop stops the coordinators one after the other; the one that was made last comes first.
// So work that runs upstream can still pass on items; downstream, these are cancelled if
// they have not started. No more coordinators are made. When ctx ends, it stops waiting,
// the intake of all coordinators is closed, and pending items are cancelled. It returns
// errors as Flush does.
func (r *Registry) Stop(ctx context.Context) error { return r.wait(ctx, core.Inspector.Stop, true) }

func (r *Registry) wait(ctx context.Context, one func(core.Inspector, context.Context) error, ends bool) error {
	if err := wouldDeadlock(ctx, r.all()); err != nil {
		return err
	}
	if ends {
		r.complete(false)
	}
	return backward(r.all(), func(c core.Inspector) error { return one(c, ctx) })
}

// Close closes the coordinators, the one that was made last first. No more coordinators
// are made; one that is being made is closed as soon as it is ready. It returns the
// errors joined, each with the name of its coordinator.
func (r *Registry) Close() error {
	r.complete(true)
	err := backward(r.all(), core.Inspector.Close)
	if r.parent != nil {
		r.tree.mu.Lock()
		delete(r.parent.below, r)
		r.tree.mu.Unlock()
	}
	return err
}

func (r *Registry) complete(closed bool) {
	r.tree.mu.Lock()
	defer r.tree.mu.Unlock()
	r.completed, r.closed = true, r.closed || closed
}

// backward calls the coordinators, the one that was made last first.
func backward(all []*creation, call func(core.Inspector) error) error {
	var errs []error
	for _, c := range slices.Backward(all) {
		if err := call(c.made); err != nil {
			errs = append(errs, fmt.Errorf("registry: %q: %w", c.name, err))
		}
	}
	return errors.Join(errs...)
}

// wouldDeadlock returns the errors of coordinators that would wait for the caller. It
// changes nothing: it calls Flush with a context that has ended.
func wouldDeadlock(ctx context.Context, all []*creation) error {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return backward(all, func(c core.Inspector) error {
		if err := c.Flush(ctx); guard.Is(err, core.ErrWouldDeadlock) {
			return err
		}
		return nil
	})
}
