package earlyexit_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/earlyexit"
)

// ending makes a coordinator that a verdict ends.
func ending(work core.Work[int], opts core.Options) (*core.Coordinator[int], *earlyexit.Exit) {
	opts.Sink = core.NewSink(core.SinkOptions{})
	c := core.Must(core.NewCoordinator(work, opts))
	return c, earlyexit.On(c, "verdict, operation.*")
}

func TestExitCancelsWhatRunsAndDiscardsWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var began atomic.Int64
		c, exit := ending(func(ctx context.Context, n int) error {
			began.Add(1)
			for range n {
				<-ctx.Done()
			}
			return context.Cause(ctx)
		}, core.Options{MaxConcurrency: 3})
		signals := coretest.Watch(t, c.Sink(), earlyexit.SignalExited)
		check(t, "Do", c.Do(t.Context(), 0), nil) // its lifecycle signals match, but do not count
		for range 10 {
			_, err := c.TryEnqueue(t.Context(), 1)
			check(t, "TryEnqueue", err, nil)
		}
		synctest.Wait()
		for _, key := range []string{"the first", "counts"} {
			c.Sink().RaiseKey("verdict", key)
		}
		_, err := c.TryEnqueue(t.Context(), 1)
		check(t, "intake", err, core.ErrClosed)
		s, exited := exit.Signal()
		check(t, "exit", fmt.Sprint(s.Name, s.Key, exited), "verdictthe firsttrue")
		raised := signals.ExpectExactly(earlyexit.SignalExited)[0]
		check(t, "key and path", raised.Key+" "+strings.Join(raised.Path(), ">"), "the first verdict>"+earlyexit.SignalExited)
		check(t, "Flush", c.Flush(t.Context()), nil)
		check(t, "began", began.Load(), int64(4))
		cancelled := 0
		for op := range c.Operations(core.OperationQuery{Status: core.StatusCancelled}) {
			checkExited(t, op.Err, "verdict")
			cancelled++
		}
		check(t, "cancelled", cancelled, 10)
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
			c, exit := ending(func(context.Context, int) error { return nil }, core.Options{})
			c.Sink().Hold("verdict.before", "", 0)
			late := earlyexit.On(c, "verdict.*")
			check(t, name, c.Do(t.Context(), 1), nil)
			check(t, name, end(c), nil)
			for _, x := range []*earlyexit.Exit{exit, late, earlyexit.On(c, "verdict")} {
				c.Sink().Raise("verdict")
				_, ok := x.Signal()
				check(t, name, ok, false)
			}
			check(t, name, c.Sink().Has(earlyexit.SignalExited), false)
		}
	})
}
