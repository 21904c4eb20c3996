package core_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
)

// A group waits for its own items only and joins their errors.
func TestGroup(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := bodies(t, core.Options{MaxConcurrency: 3})
		g, others := newGate(), newGate()
		enqueue(t, c, others.body)
		group := c.Group(t.Context(), core.GroupOptions{})
		for _, body := range []coretest.Body{quick, g.body} {
			accepted(t)(group.Enqueue(t.Context(), body))
		}
		accepted(t)(group.Enqueue(t.Context(), func(context.Context) error { return errOnPurpose }))
		wait := call(t, func(context.Context) error { return group.Wait() })
		g.open()
		checkError(t, "Wait", wait(), errOnPurpose)
		checkWaits(t, c, 1, 0, 0)
		_, err := group.Enqueue(t.Context(), quick)
		checkError(t, "Enqueue after Wait", err, core.ErrClosed)
		checkError(t, "Wait once more", group.Wait(), errOnPurpose)
		checkError(t, "Wait of nothing", c.Group(t.Context(), core.GroupOptions{}).Wait(), nil)
		others.open()
	})
}

// The first error, or the end of the context, cancels the group's items and no others.
func TestGroupIsCancelledTogether(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := bodies(t, core.Options{MaxConcurrency: 2})
		others := newGate()
		enqueue(t, c, others.body)
		var causes []error
		cancelled := func(ctx context.Context) error {
			<-ctx.Done()
			causes = append(causes, context.Cause(ctx))
			return ctx.Err()
		}
		group := c.Group(t.Context(), core.GroupOptions{StopOnError: true})
		fail := newGate()
		group.Enqueue(t.Context(), func(ctx context.Context) error {
			c.SetMaxConcurrency(3)
			<-fail.opened
			return errOnPurpose
		})
		group.Enqueue(t.Context(), cancelled)
		synctest.Wait()
		group.Enqueue(t.Context(), func(context.Context) error { t.Error("it ran"); return nil })
		fail.open()
		synctest.Wait()
		_, err := group.Enqueue(t.Context(), quick)
		checkError(t, "Enqueue after the first error", err, errOnPurpose)
		checkEqual(t, "Wait", fmt.Sprint(group.Wait()), errOnPurpose.Error())

		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errors.New("too late"))
		defer cancel()
		group = c.Group(ctx, core.GroupOptions{})
		group.Enqueue(t.Context(), cancelled)
		checkEqual(t, "Wait", fmt.Sprint(group.Wait()), "too late")
		checkEqual(t, "causes", fmt.Sprint(causes), fmt.Sprint([]error{errOnPurpose, errors.New("too late")}))
		checkWaits(t, c, 1, 0, 0)
		others.open()
	})
}

// A body that waits for a group on its own coordinator is suspended.
func TestGroupFromBody(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := bodies(t, core.Options{Name: "pool", MaxConcurrency: 1})
		g := newGate()
		parent := call(t, do(c, func(ctx context.Context) error {
			group := c.Group(ctx, core.GroupOptions{})
			for range 2 {
				group.Enqueue(ctx, g.body)
			}
			foreign := c.Group(context.Background(), core.GroupOptions{})
			foreign.Enqueue(ctx, quick)
			checkError(t, "with another context", foreign.Wait(), core.ErrWouldDeadlock)
			return group.Wait()
		}))
		id := firstOf(c, core.StatusSuspended)
		checkExplained(t, c, id, `operation # is suspended: its body waits for 2 operations of "pool"`)
		g.open()
		checkError(t, "Do", parent(), nil)
		checkWaits(t, c, 0, 0, 0)
	})
}

// Stop cancels what is pending and waits for what runs; Abort cancels both and leaves the
// intake open.
func TestStopAndAbort(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := bodies(t, core.Options{MaxConcurrency: 2})
		g := newGate()
		var cause error
		enqueue(t, c, g.suspended(quick))
		enqueue(t, c, func(ctx context.Context) error { <-ctx.Done(); cause = context.Cause(ctx); return cause })
		stay := newGate()
		enqueue(t, c, stay.body)
		pending := enqueue(t, c, quick)
		synctest.Wait()
		c.Abort(errOnPurpose)
		checkError(t, "pending", c.Wait(t.Context(), pending), errOnPurpose)
		synctest.Wait()
		checkError(t, "running", cause, errOnPurpose)
		g.open()
		stay.open()
		checkError(t, "the intake is open", c.Do(t.Context(), quick), nil)

		g = newGate()
		enqueue(t, c, g.body)
		enqueue(t, c, g.body)
		synctest.Wait()
		pending = enqueue(t, c, quick)
		stop := call(t, c.Stop)
		checkError(t, "pending", c.Wait(t.Context(), pending), core.ErrStopped)
		g.open()
		checkError(t, "Stop", stop(), nil)
	})
}

// While OnDone is called for the last operation of a group, a body that waits for the group does not wait for itself.
func TestGroupWaitDuringOnDone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var c *core.Coordinator[int]
		told, waited := make(chan struct{}), make(chan error, 1)
		work := func(ctx context.Context, item int) error {
			if item == 0 {
				g := c.Group(ctx, core.GroupOptions{})
				g.Enqueue(ctx, 1)
				waited <- g.Wait()
			}
			return nil
		}
		c = coordinator(t, work, core.Options{MaxConcurrency: 1, OnDone: func(s core.Snapshot) {
			if s.Item == 1 {
				<-told
			}
		}})
		c.Enqueue(t.Context(), 0)
		synctest.Wait()
		c.Enqueue(t.Context(), 2) // whose worker finds nothing more
		synctest.Wait()
		close(told)
		checkError(t, "Wait", <-waited, nil)
	})
}

// A producer that waits for room in a group that ends gets the cause, and its item is not accepted.
func TestEndOfGroupReleasesProducers(t *testing.T) {
	shapes := map[string]core.Options{
		"no queue":      {MaxQueued: -1},
		"queue":         {MaxQueued: 1},
		"lane":          {MaxQueued: -1, Lanes: []core.Lane{{Name: "high"}, {Name: "normal", Limit: 1}}},
		"class":         {MaxQueued: 1, Classes: []core.Class{{Name: "api", Limit: 1}}},
		"key":           {MaxQueued: 1, MaxPerKey: 1},
		"two keys":      {MaxQueued: -1, MaxPerKey: 2, Lanes: []core.Lane{{Name: "high", Limit: 1}}},
		"class of lane": {MaxQueued: -1, Classes: []core.Class{{Name: "api", Rate: core.Rate{PerSecond: 1, Burst: 1}}}},
	}
	for name, opts := range shapes {
		for _, stops := range []bool{false, true} { // in this order: the second changes opts
			t.Run(fmt.Sprint(name, stops), func(t *testing.T) {
				bubble(t, func(t *testing.T) { endOfGroupReleases(t, opts, stops) })
			})
		}
	}
}

func endOfGroupReleases(t *testing.T, opts core.Options, stops bool) {
	opts.MaxConcurrency = 1
	if stops { // one more runs, which fails
		opts.MaxConcurrency++
		for i := range opts.Lanes {
			opts.Lanes[i].Limit *= 2
		}
		for i := range opts.Classes {
			opts.Classes[i].Limit *= 2
			opts.Classes[i].Rate.Burst *= 2
		}
		opts.MaxPerKey *= 2
	}
	make := core.NewCoordinator[coretest.Body]
	if opts.MaxPerKey > 0 {
		make = func(work core.Work[coretest.Body], opts core.Options) (*core.Coordinator[coretest.Body], error) {
			return core.NewKeyedCoordinator(func(coretest.Body) string { return "k" }, work, opts)
		}
	}
	c := core.Must(make(coretest.Run, opts))
	defer closeDown(t, c)
	in := c
	if len(opts.Classes) > 0 {
		in = c.Class("api")
	}
	blocker, fails := newGate(), newGate()
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	g := in.Group(ctx, core.GroupOptions{StopOnError: stops})
	if stops {
		accepted(t)(g.Enqueue(t.Context(), func(context.Context) error { <-fails.opened; return errOnPurpose }))
	}
	enqueue(t, in, blocker.body)
	synctest.Wait()
	for in.Stats().Pending < opts.MaxQueued {
		enqueue(t, in, blocker.body)
	}
	before := c.Stats()
	var ran bool
	body := func(context.Context) error { ran = true; return nil }
	enter := func(context.Context) error { _, err := g.Enqueue(context.Background(), body); return err }
	waits := []func() error{call(t, enter), call(t, enter)}
	other := call(t, func(ctx context.Context) error { _, err := in.Enqueue(ctx, quick); return err })
	checkEqual(t, "accepted", c.Stats().Enqueued, before.Enqueued)
	if stops {
		fails.open()
	} else {
		cancel(errOnPurpose)
	}
	for _, wait := range waits {
		checkError(t, "Enqueue", wait(), errOnPurpose)
	}
	if err := g.Wait(); stops != (err != nil) { // without operations, the end of the context has cut nothing
		t.Errorf("Wait: got %v", err)
	}
	checkEqual(t, "rejected", c.Stats().Rejected, before.Rejected+2)
	blocker.open()
	checkError(t, "another producer", other(), nil)
	checkError(t, "WaitIdle", c.WaitIdle(t.Context()), nil)
	checkEqual(t, "accepted", c.Stats().Enqueued, before.Enqueued+1)
	coretest.Check(t, !ran, "an item of an ended group ran")
	if err := coretest.CheckBooks(c.Stats()); err != nil {
		t.Error(err)
	}
	checkError(t, "the next", in.Do(t.Context(), quick), nil)
}
