package registry

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ephemeralgo/ephemeral/core"
)

// Complete ends the intake of all coordinators at once, also for what upstream ones
// would still pass on: see Drain. No more coordinators are made.
func (r *Registry) Complete() {
	r.complete()
	for _, in := range slices.Backward(r.all()) {
		in.coordinator.Complete()
	}
}

// Flush flushes the coordinators one after the other, the one that was made last
// first, so that it also waits for what upstream ones pass on. When ctx ends it stops
// waiting. It returns the errors joined, each with the name of its coordinator; from
// inside a body of one of them [core.ErrWouldDeadlock].
func (r *Registry) Flush(ctx context.Context) error {
	all := r.all()
	if err := wouldDeadlock(ctx, all); err != nil {
		return err
	}
	return backward(all, func(c core.Inspector) error { return c.Flush(ctx) })
}

// Drain drains the coordinators one after the other, the one that was made last
// first, so that what upstream ones pass on is still accepted downstream, and
// finished. No more coordinators are made. When ctx ends it stops waiting; the intake
// of all is closed then, too. It returns what Flush does.
func (r *Registry) Drain(ctx context.Context) error {
	if err := wouldDeadlock(ctx, r.all()); err != nil {
		return err
	}
	r.complete()
	return backward(r.all(), func(c core.Inspector) error { return c.Drain(ctx) })
}

// Close closes the coordinators, the one that was made last first. No more are made:
// one that is being made is closed as soon as it has been. It returns the errors
// joined, each with the name of its coordinator.
func (r *Registry) Close() error {
	r.tree.mu.Lock()
	r.completed, r.closed = true, true
	r.tree.mu.Unlock()
	err := backward(r.all(), core.Inspector.Close)
	if r.parent != nil {
		r.tree.mu.Lock()
		delete(r.parent.below, r)
		r.tree.mu.Unlock()
	}
	return err
}

func (r *Registry) complete() {
	r.tree.mu.Lock()
	defer r.tree.mu.Unlock()
	r.completed = true
}

func backward(all []instance, call func(core.Inspector) error) error {
	var errs []error
	for _, in := range slices.Backward(all) {
		if err := call(in.coordinator); err != nil {
			errs = append(errs, fmt.Errorf("registry: %q: %w", in.name, err))
		}
	}
	return errors.Join(errs...)
}

// wouldDeadlock returns the error of whoever would wait for the caller. It asks by
// a Flush that does not wait for anybody, before anything is changed.
func wouldDeadlock(ctx context.Context, all []instance) error {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return backward(all, func(c core.Inspector) error {
		if err := c.Flush(ctx); errors.Is(err, core.ErrWouldDeadlock) {
			return err
		}
		return nil
	})
}
