package core_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// A Future says how its operation has ended, whatever the window has forgotten. The id alone does not.
func TestSubmitSurvivesTheWindow(t *testing.T) {
	for _, opts := range []core.Options{{MaxTracked: 1}, {MaxTracked: -1}, {MaxAge: time.Nanosecond}} {
		bubble(t, func(t *testing.T) {
			opts.MaxFailed = -1
			c := coordinator(t, func(_ context.Context, n int) error {
				if n%3 == 0 {
					return fmt.Errorf("%d: %w", n, errOnPurpose)
				}
				return nil
			}, opts)
			var futures []*core.Future[struct{}]
			for n := range 1000 {
				f, err := c.Submit(t.Context(), n)
				checkError(t, "Submit", err, nil)
				futures = append(futures, f)
			}
			checkError(t, "Flush", c.Flush(t.Context()), nil)
			time.Sleep(time.Second)
			for n, f := range futures {
				var want error
				if n%3 == 0 {
					want = fmt.Errorf("%d: %w", n, errOnPurpose)
				}
				<-f.Done()
				_, err := f.Wait(t.Context())
				checkEqual(t, fmt.Sprint("item ", n), errorText(err), errorText(want))
			}
			checkError(t, "by id", c.Wait(t.Context(), futures[0].ID()), core.ErrUnknown)
		})
	}
}

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
		sink := core.NewSink(core.SinkOptions{})
		var order journal
		var start time.Time
		c := core.Must(core.NewKeyedCoordinator(func(item string) string { return item[:1] }, func(_ context.Context, item string) error {
			order.note(fmt.Sprint(time.Since(start), " ", item))
			time.Sleep(time.Second)
			return nil
		}, core.Options{
			Lanes: core.Must(core.ParseLanes("hot, normal")), Classes: []core.Class{{Name: "mail", Limit: 1}},
			MaxConcurrency: 2, MaxTracked: -1, Sink: sink, CancelOn: "stop", DeferOn: "night",
		}))
		release := sink.Hold("night", "", 0)
		submit := func(view *core.Coordinator[string], item string) *core.Future[struct{}] {
			t.Helper()
			f, err := view.Submit(t.Context(), item)
			checkError(t, "Submit", err, nil)
			return f
		}
		mail := c.Class("mail")
		submit(c, "a1")
		submit(c, "a2") // waits for its key
		submit(mail, "b1")
		last := submit(mail, "c1") // waits for its class
		submit(c.Lane("hot"), "h1")
		late := lookup(t, c, submit(mail.Lane("hot"), "i1").ID())
		checkEqual(t, "lane", late.Lane, "hot")
		checkEqual(t, "class", late.Class, "mail")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Hour, errOnPurpose)
		defer cancel()
		_, err := last.Wait(ctx)
		checkError(t, "deferred", err, errOnPurpose)
		order.check(t)
		start = time.Now()
		release()
		_, err = last.Wait(t.Context())
		checkError(t, "Wait", err, nil)
		order.checkAnyOrder(t, "0s h1", "0s i1", "1s a1", "1s b1", "2s a2", "2s c1")

		for view, want := range map[*core.Coordinator[string]]error{c.Lane("cold"): core.ErrUnknownLane, c.Class("cold"): core.ErrUnknownClass} {
			if f, err := view.Submit(t.Context(), "x"); f != nil || !errors.Is(err, want) {
				t.Errorf("got %v, %v, want %v", f, err, want)
			}
		}
		release = sink.Hold("night", "", 0)
		accepted := submit(c, "x")
		sink.Raise("stop")
		if f, err := c.Submit(t.Context(), "y"); f != nil {
			t.Errorf("got %v, want none", f)
		} else {
			checkRefusal(t, err, "stop")
		}
		release()
		_, err = accepted.Wait(t.Context())
		checkRefusal(t, err, "stop")
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
