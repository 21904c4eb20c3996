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

// The error for an id that has left the window says how small the window is and what to do. An id that was never
// given out has another text.
func TestUnknownOperationSaysWhy(t *testing.T) {
	for _, test := range []struct {
		opts core.Options
		want string
	}{
		{core.Options{MaxFailed: -1}, "MaxTracked 200, MaxAge 5m"},
		{core.Options{MaxTracked: -1, MaxAge: -1}, "MaxTracked none, MaxAge no limit"},
		{core.Options{MaxTracked: 7, MaxAge: time.Hour}, "MaxTracked 7, MaxAge 1h"},
		{core.Options{MaxTracked: 7, MaxAge: 3630 * time.Second}, "MaxTracked 7, MaxAge 1h0m30s"},
		{core.Options{MaxTracked: 7, MaxAge: 10 * time.Second}, "MaxTracked 7, MaxAge 10s"},
	} {
		bubble(t, func(t *testing.T) {
			test.opts.Name = "orders"
			c := bodies(t, test.opts)
			f, err := c.Submit(t.Context(), quick)
			checkError(t, "Submit", err, nil)
			f.Wait(t.Context())
			c.Evict(f.ID())
			results := answers(t, test.opts)
			r, err := results.Submit(t.Context(), answering("r"))
			checkError(t, "Submit", err, nil)
			r.Wait(t.Context())
			results.Evict(r.ID())
			_, gone := results.Wait(t.Context(), r.ID())
			for id, err := range map[core.OperationID]error{f.ID(): c.Wait(t.Context(), f.ID()), r.ID(): gone} {
				checkError(t, "evicted", err, core.ErrUnknown)
				checkEqual(t, "text", errorText(err), fmt.Sprintf(`core: operation %d is not in the window of "orders" (%s): keep a Future or use a Group`, id, test.want))
			}
			for _, id := range []core.OperationID{0, 1 << 60} {
				err := c.Wait(t.Context(), id)
				checkError(t, "never", err, core.ErrUnknown)
				checkEqual(t, "text", errorText(err), fmt.Sprintf(`core: operation %d was never given out by "orders"`, id))
			}
		})
	}
}

// Submit goes the way of Enqueue: lanes, classes, keys and gates apply to it.
func TestSubmitInViews(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := keyedBodies(t, core.Options{Lanes: lanes(t, "hot, normal"), Classes: []core.Class{{Name: "mail"}}, MaxTracked: -1, CancelOn: "stop"})
		c.Pause()
		f := core.Must(c.Class("mail").Lane("hot").Submit(t.Context(), keyedBody{"k", quick}))
		got := lookup(t, c, f.ID())
		checkEqual(t, "Lane, Class, Key", words(got.Lane, got.Class, got.Key), "hot mail k")
		for view, want := range map[*core.Coordinator[keyedBody]]error{c.Lane("cold"): core.ErrUnknownLane, c.Class("cold"): core.ErrUnknownClass} {
			if f, err := view.Submit(t.Context(), keyedBody{"k", quick}); f != nil || !errors.Is(err, want) {
				t.Errorf("got %v, %v, want %v", f, err, want)
			}
		}
		c.Sink().Raise("stop")
		late, err := c.Submit(t.Context(), keyedBody{"k", quick})
		coretest.Check(t, late == nil, "got a Future of what was not accepted")
		checkRefusal(t, err, "stop")
		c.Resume()
		_, err = f.Wait(t.Context())
		checkRefusal(t, err, "stop")
		checkEqual(t, "rejected", c.Stats().Rejected, 3)
	})
}

// A body that waits for a Future of its own coordinator is suspended, also if the window keeps nothing. Close ends
// the wait of others.
func TestSubmitInsideABodyAndClose(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := bodies(t, core.Options{MaxConcurrency: 1, MaxQueued: -1, MaxTracked: -1})
		outer, err := c.Submit(t.Context(), func(ctx context.Context) error {
			op := core.OperationFrom(ctx)
			inner, err := c.Submit(ctx, func(context.Context) error { return errOnPurpose })
			checkError(t, "Submit inside", err, nil)
			_, err = inner.Wait(context.Background()) // the body is the goroutine belongs to the body
			checkError(t, "with another context", err, core.ErrWouldDeadlock)
			_, err = inner.Wait(ctx)
			checkError(t, "the child's error", err, errOnPurpose)
			again, err := c.Submit(ctx, quick)
			checkError(t, "Submit inside", err, nil)
			return op.Suspend(ctx, "its child", func(ctx context.Context) error {
				_, err := again.Wait(ctx)
				return err
			})
		})
		checkError(t, "Submit", err, nil)
		_, err = outer.Wait(t.Context())
		checkError(t, "Wait", err, nil)

		var self *core.Future[struct{}]
		made := newGate()
		self, err = c.Submit(t.Context(), func(ctx context.Context) error {
			made.body(ctx)
			_, err := self.Wait(ctx)
			return err
		})
		checkError(t, "Submit", err, nil)
		made.open()
		_, err = self.Wait(t.Context())
		checkError(t, "waits for itself", err, core.ErrWouldDeadlock)

		c = bodies(t, core.Options{MaxConcurrency: 1, MaxTracked: -1})
		var ends [2]error
		for i, body := range []func(context.Context) error{untilCancelled, quick} {
			f, err := c.Submit(t.Context(), body)
			checkError(t, "Submit", err, nil)
			go func() { _, ends[i] = f.Wait(t.Context()) }()
		}
		synctest.Wait()
		checkError(t, "Close", c.Close(), nil)
		synctest.Wait()
		checkError(t, "running at Close", ends[0], core.ErrClosed)
		checkError(t, "pending at Close", ends[1], core.ErrClosed)
		f, err := c.Submit(t.Context(), quick)
		checkError(t, "after Close", err, core.ErrClosed)
		checkEqual(t, "its Future", f, nil)
	})
}
