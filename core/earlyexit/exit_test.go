package earlyexit_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/earlyexit"
)

// ending makes a coordinator that a verdict ends.
func ending(t *testing.T, work core.Work[int], opts core.Options) (*core.Coordinator[int], *earlyexit.Exit) {
	opts.Sink = core.NewSink(core.SinkOptions{})
	c := core.Must(core.NewCoordinator(work, opts))
	return c, earlyexit.On(c.Control, "verdict, atom.*")
}

func TestExitCancelsWhatRunsAndDiscardsWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var began atomic.Int64
		c, exit := ending(t, func(ctx context.Context, n int) error {
			began.Add(1)
			if n == 0 {
				return nil
			}
			<-ctx.Done()
			return context.Cause(ctx)
		}, core.Options{MaxConcurrency: 3})
		signals := coretest.Watch(t, c.Sink(), earlyexit.SignalExited)
		check(t, "error", c.Do(t.Context(), 0), nil) // its lifecycle signals match, and do not count
		for n := range 10 {
			_, err := c.TryEnqueue(t.Context(), n+1)
			check(t, "error", err, nil)
		}
		synctest.Wait()
		_, ok := exit.Signal()
		check(t, "exited", ok, false)
		c.Sink().RaiseKey("verdict", "the key")
		c.Sink().Raise("verdict") // one counts
		_, err := c.TryEnqueue(t.Context(), 1)
		check(t, "intake", err, core.ErrClosed)
		s, ok := exit.Signal()
		check(t, "exited", s.Name+s.Key, "verdictthe key")
		raised := signals.ExpectExactly(earlyexit.SignalExited)[0]
		check(t, "key", raised.Key, "the key")
		check(t, "cause", strings.Join(raised.Path(), ">"), "verdict>"+earlyexit.SignalExited)
		check(t, "Flush", c.Flush(t.Context()), nil)
		check(t, "began", began.Load(), int64(4))
		check(t, "cancelled", c.Stats().Cancelled, uint64(10))
		for op := range c.Operations(core.OperationQuery{Status: core.StatusCancelled}) {
			checkExited(t, op.Err, "verdict")
		}
	})
}

// A signal has no effect before On, after Close has begun, or after everything is done.
func TestSignalsBeforeAndAfterDoNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, end := range map[string]func(c *core.Coordinator[int]) error{
			"Complete": func(c *core.Coordinator[int]) error { c.Complete(); return nil },
			"Drain":    func(c *core.Coordinator[int]) error { return c.Drain(t.Context()) },
			"Close":    func(c *core.Coordinator[int]) error { return c.Close() },
		} {
			c, exit := ending(t, func(context.Context, int) error { return nil }, core.Options{})
			c.Sink().Hold("verdict.before", "", 0)
			late := earlyexit.On(c.Control, "verdict.*")
			check(t, name, c.Do(t.Context(), 1), nil)
			check(t, name, end(c), nil)
			for _, x := range []*earlyexit.Exit{exit, late, earlyexit.On(c.Control, "verdict")} {
				c.Sink().Raise("verdict")
				_, ok := x.Signal()
				check(t, name, ok, false)
			}
			check(t, name, c.Sink().Has(earlyexit.SignalExited), false)
		}
	})
}

// After Complete the signal still ends what has not ended. A handler of SignalExited may
// wait for the work while the work closes the coordinator.
func TestCloseFromTheWorkWhileAHandlerOfTheExitWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c *core.Coordinator[int]
		c, exit := ending(t, func(ctx context.Context, _ int) error {
			<-ctx.Done()
			time.Sleep(time.Second)
			return c.Close()
		}, core.Options{})
		defer c.Sink().Subscribe(earlyexit.SignalExited, func(core.Signal) { check(t, "Flush", c.Flush(t.Context()), nil) })()
		_, _ = c.TryEnqueue(t.Context(), 1)
		c.Complete()
		synctest.Wait()
		c.Sink().Raise("verdict")
		_, ok := exit.Signal()
		check(t, "exited", ok, true)
	})
}
