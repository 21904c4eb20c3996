package slidingcache_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/slidingcache"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
)

// Seed against code: every miss queues its own compute.
func TestTenConcurrentRequestsLoadOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := source{takes: time.Second}
		c := newCache(t, s.load, options{MaxConcurrency: 4, SampleEvery: 1})
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() { wantGet(t, c, "a", 1) })
		}
		all.Wait()
		assert.Equal(t, 1, s.calls)
		assert.Equal(t, uint64(10), c.Stats().Misses)
		assert.Equal(t, uint64(9), c.Stats().Shared)
		assert.Equal(t, 9, c.Sink().Count(slidingcache.SignalShared))
	})
}

// Weak point: the caller's ctx does not stop the factory, and the factory gets only
// the coordinator's ctx.
func TestLoadIsCancelledWhenNobodyWaitsAnyMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type key struct{}
		causes := make(chan error, 2)
		c := newCache(t, func(ctx context.Context, k string) (int, error) {
			assert.Equal(t, "of the first", ctx.Value(key{}))
			_, limited := ctx.Deadline()
			assert.False(t, limited)
			<-ctx.Done()
			causes <- context.Cause(ctx)
			return 7, nil // all the same
		}, options{})
		signals := coretest.Watch(t, c.Sink(), "cache.*")

		errFirst, errLast := errors.New("first"), errors.New("last")
		for i, cause := range []error{errFirst, errLast} {
			ctx := context.WithValue(t.Context(), key{}, "of the first")
			if i > 0 {
				ctx = context.WithValue(t.Context(), key{}, "of another")
			}
			ctx, cancel := context.WithTimeoutCause(ctx, time.Duration(i+1)*time.Minute, cause)
			defer cancel()
			go func() {
				begun := time.Now()
				_, err := c.Get(ctx, "a")
				assert.ErrorIs(t, err, cause)
				assert.Equal(t, time.Duration(i+1)*time.Minute, time.Since(begun))
			}()
			synctest.Wait()
		}
		time.Sleep(2*time.Minute - 1)
		synctest.Wait()
		assert.Empty(t, causes, "a caller leaving does not cancel the others")
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		require.Len(t, causes, 1)
		assert.Equal(t, errLast, <-causes)
		_, ok := c.GetIfPresent("a")
		assert.False(t, ok, "nobody waits, nothing is stored")
		assert.Equal(t, uint64(1), c.Stats().Discarded)
		signals.ExpectExactly(slidingcache.SignalLoading, slidingcache.SignalLoaded)
	})
}

func TestCallerLeavingDoesNotDisturbOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := source{takes: time.Minute}
		c := newCache(t, s.load, options{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		go c.Get(ctx, "a")
		synctest.Wait()
		wantGet(t, c, "a", 1)
		wantGet(t, c, "a", 1)
	})
}

// A context that has ended is no reason not to tell what is there, but one not to
// load.
func TestEndedContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s source
		c := newCache(t, s.load, options{})
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errOnPurpose)
		_, err := c.Get(ctx, "a")
		assert.ErrorIs(t, err, errOnPurpose)
		assert.Zero(t, s.calls)
		c.Set("a", 5)
		value, err := c.Get(ctx, "a")
		assert.NoError(t, err)
		assert.Equal(t, 5, value)
	})
}

func TestErrorsGoToAllAndAreNotCached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := source{takes: time.Second, fails: errOnPurpose}
		c := newCache(t, s.load, options{NegativeTTL: time.Hour})
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				_, err := c.Get(t.Context(), "a")
				assert.Equal(t, errOnPurpose, err)
			})
		}
		all.Wait()
		assert.Equal(t, 1, s.calls)
		s.fails = nil
		wantGet(t, c, "a", 2)
	})
}

func TestPanicGoesToAllAndIsNotCached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ends := map[string]func(){
			"panic":  func() { panic(errOnPurpose) },
			"goexit": runtime.Goexit,
		}
		c := newCache(t, func(_ context.Context, key string) (int, error) {
			time.Sleep(time.Second)
			if end := ends[key]; end != nil {
				delete(ends, key)
				end()
			}
			return 1, nil
		}, options{MaxConcurrency: 1, StaleOnError: time.Hour})
		signals := coretest.Watch(t, c.Sink(), "cache.*, "+core.SignalPanic)
		for _, key := range []string{"panic", "goexit"} {
			var all sync.WaitGroup
			for range 3 {
				all.Go(func() {
					_, err := c.Get(t.Context(), key)
					var p *core.PanicError
					if assert.ErrorAs(t, err, &p) {
						assert.Contains(t, string(p.Stack), "TestPanicGoesToAll")
						assert.Equal(t, key == "panic", errors.Is(err, errOnPurpose))
					}
				})
			}
			all.Wait()
			if key == "panic" {
				signals.ExpectExactly(slidingcache.SignalLoading, core.SignalPanic, slidingcache.SignalError)
			} else {
				signals.ExpectExactly(slidingcache.SignalLoading, slidingcache.SignalError)
			}
			wantGet(t, c, key, 1)
			signals.Expect(slidingcache.SignalLoaded)
		}
		assert.Equal(t, uint64(2), c.Stats().Loads.Failed)
	})
}

// The late value goes to those who waited, not to those who come after.
func TestInvalidateDuringALoad(t *testing.T) {
	for name, invalidate := range map[string]func(*cache){
		"Invalidate":   func(c *cache) { assert.False(t, c.Invalidate("a")) },
		"Clear":        (*cache).Clear,
		"InvalidateOn": func(c *cache) { c.Sink().RaiseKey("changed", "a") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := source{takes: time.Minute}
				c := newCache(t, s.load, options{InvalidateOn: "changed"})
				go wantGet(t, c, "a", 1, "who waited")
				time.Sleep(time.Second)
				invalidate(c)
				wantGet(t, c, "a", 2, "who comes after")
				wantGet(t, c, "a", 2)
				assert.Equal(t, uint64(1), c.Stats().Discarded)
			})
		})
	}
}

func TestSetDuringALoadWins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := source{takes: time.Minute}
		c := newCache(t, s.load, options{})
		go wantGet(t, c, "a", 1)
		time.Sleep(time.Second)
		c.Set("a", 10)
		wantGet(t, c, "a", 10)
		time.Sleep(time.Hour / 2)
		synctest.Wait()
		c.Set("b", 0)
		_, ok := c.GetIfPresent("a")
		assert.False(t, ok, "expired, and not there again")
	})
}

func TestCloseCancelsLoadsAndWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCache(t, func(ctx context.Context, key string) (int, error) {
			<-ctx.Done()
			time.Sleep(time.Minute)
			return 0, context.Cause(ctx)
		}, options{MaxConcurrency: 1})
		for i := range 3 { // one runs, two wait for their turn
			go func() {
				_, err := c.Get(t.Context(), fmt.Sprint(i))
				assert.ErrorIs(t, err, core.ErrClosed)
			}()
		}
		synctest.Wait()
		signals := coretest.Watch(t, c.Sink(), "cache.*")
		begun := time.Now()
		require.NoError(t, c.Close())
		assert.Equal(t, time.Minute, time.Since(begun))
		synctest.Wait()
		assert.Equal(t, uint64(3), c.Stats().Loads.Cancelled)
		signals.None() // it has not failed
	})
}

func TestCloseFromALoadAndFromAHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c *cache
		c = newCache(t, func(ctx context.Context, key string) (int, error) {
			assert.NoError(t, c.Close())
			return 1, nil
		}, options{InvalidateOn: "changed"})
		value, err := c.Get(t.Context(), "a")
		assert.NoError(t, err)
		assert.Equal(t, 1, value)
		assert.Zero(t, c.Len())

		var s source
		d := newCache(t, s.load, options{InvalidateOn: "changed"})
		d.Sink().Subscribe("changed, "+slidingcache.SignalLoaded, func(core.Signal) { assert.NoError(t, d.Close()) })
		d.Get(t.Context(), "a")
		d.Sink().Raise("changed")
		_, err = d.Get(t.Context(), "b")
		assert.ErrorIs(t, err, core.ErrClosed)
	})
}

// A handler that Close waits for may wait for a load.
func TestCloseWhileAHandlerWaitsForALoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCache(t, func(ctx context.Context, key string) (int, error) {
			<-ctx.Done()
			return 0, context.Cause(ctx)
		}, options{InvalidateOn: "changed", MaxConcurrency: 1})
		c.Set("a", 1)
		c.Sink().Subscribe(slidingcache.SignalInvalidate, func(s core.Signal) {
			_, err := c.Get(t.Context(), s.Key)
			assert.ErrorIs(t, err, core.ErrClosed)
		})
		for _, key := range []string{"a", "b"} {
			c.Set(key, 1)
			go c.Sink().RaiseKey("changed", key)
			synctest.Wait()
		}
		require.NoError(t, c.Close())
	})
}

// No load begins while the cache closes, in the place of one that is nested.
func TestNothingBeginsWhileClosing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c *cache
		var begun atomic.Int32
		c = newCache(t, func(ctx context.Context, key string) (int, error) {
			begun.Add(1)
			if key == "a" {
				return c.Get(ctx, "b")
			}
			<-ctx.Done()
			return 0, context.Cause(ctx)
		}, options{MaxConcurrency: 1})
		for _, key := range []string{"a", "c", "d", "e"} {
			go c.Get(t.Context(), key)
			synctest.Wait()
		}
		require.NoError(t, c.Close())
		assert.EqualValues(t, 2, begun.Load())
	})
}

// Loads are operations: bounded, in order, and it can be seen why they wait.
func TestLoadsAreOperations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running, most atomic.Int32
		c := newCache(t, func(ctx context.Context, key string) (int, error) {
			if now := running.Add(1); now > most.Load() {
				most.Store(now)
			}
			core.OperationFrom(ctx).Set("from", "db")
			time.Sleep(time.Minute)
			running.Add(-1)
			return 1, nil
		}, options{Name: "users", MaxConcurrency: 2})
		var all sync.WaitGroup
		for i := range 5 {
			all.Go(func() { c.Get(t.Context(), fmt.Sprint(i)) })
			synctest.Wait()
		}
		var seen []string
		var last core.OperationID
		for op := range c.Loads(core.OperationQuery{}) {
			seen = append(seen, op.Key+" "+op.Status.String())
			last = op.ID
		}
		assert.Equal(t, []string{"0 running", "1 running", "2 pending", "3 pending", "4 pending"}, seen)
		why, ok := c.Explain(last)
		assert.True(t, ok)
		assert.Equal(t, core.ReasonLimit, why.Reasons[0].Kind)
		all.Wait()
		assert.EqualValues(t, 2, most.Load())
		op, ok := c.Lookup(last)
		assert.True(t, ok)
		from, _ := core.Value[string](op, "from")
		assert.Equal(t, "db", from)
	})
}

func TestNoLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := source{takes: time.Second}
		c := newCache(t, s.load, options{MaxConcurrency: -1})
		begun := time.Now()
		var all sync.WaitGroup
		for i := range 500 {
			all.Go(func() { c.Get(t.Context(), fmt.Sprint(i)) })
		}
		all.Wait()
		assert.Equal(t, time.Second, time.Since(begun))
	})
}

// Who waits for a load that has no turn yet leaves like any other, and the load is
// never run.
func TestLeavingBeforeTheLoadHasATurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := source{takes: time.Minute}
		c := newCache(t, s.load, options{MaxConcurrency: 1})
		go c.Get(t.Context(), "slow")
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := c.Get(ctx, "a")
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		time.Sleep(time.Hour)
		synctest.Wait()
		assert.Equal(t, 1, s.calls)
		wantGet(t, c, "a", 2)
	})
}

// family is a load function of keys that need others.
func family(t testing.TB, needs map[string][]string, get func() func(context.Context, string) (int, error)) loader {
	return func(ctx context.Context, key string) (int, error) {
		time.Sleep(time.Second)
		sum := 1
		for _, other := range needs[key] {
			value, err := get()(ctx, other)
			if err != nil {
				return 0, fmt.Errorf("%s: %w", key, err)
			}
			sum += value
		}
		return sum, nil
	}
}

// A load may get other keys, whatever the limit.
func TestLoadsThatNeedOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, limit := range []int{1, 2, 8} {
			var c *cache
			needs := map[string][]string{"a": {"b", "c"}, "b": {"c", "d"}, "c": {"d"}}
			c = newCache(t, family(t, needs, func() func(context.Context, string) (int, error) { return c.Get }), options{MaxConcurrency: limit})
			signals := coretest.Watch(t, c.Sink(), slidingcache.SignalLoaded)
			wantGet(t, c, "a", 1+4+2)
			var keys []string
			for _, s := range signals.ExpectExactly("*", "*", "*", "*") {
				keys = append(keys, s.Key)
			}
			assert.Equal(t, []string{"d", "c", "b", "a"}, keys)
			got := c.Stats()
			assert.Equal(t, uint64(1), got.Loads.Enqueued)
			assert.Equal(t, uint64(3), got.Nested, "as part of it")
		}
	})
}

// A load that another one needs, and that waits for its turn behind that one, is
// run by it; who waits for it has it at once.
func TestLoadThatIsNeededDoesNotWaitForItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c *cache
		c = newCache(t, func(ctx context.Context, key string) (int, error) {
			time.Sleep(time.Minute)
			if key == "a" {
				value, err := c.Get(ctx, "b")
				time.Sleep(time.Hour / 2)
				return value + 1, err
			}
			return 1, nil
		}, options{MaxConcurrency: 1})
		var all sync.WaitGroup
		begun := time.Now()
		all.Go(func() { wantGet(t, c, "a", 2) })
		synctest.Wait()
		all.Go(func() {
			wantGet(t, c, "b", 1)
			assert.Equal(t, 2*time.Minute, time.Since(begun))
		})
		all.Wait()
		got := c.Stats()
		assert.NoError(t, coretest.CheckBooks(got.Loads))
		assert.Equal(t, uint64(1), got.Nested)
		assert.Equal(t, uint64(1), got.Loads.Cancelled)
	})
}

// The same with a place for it while it is run by another: it needs none.
func TestLoadThatIsNeededAndGetsItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c *cache
		c = newCache(t, func(ctx context.Context, key string) (int, error) {
			switch key {
			case "a":
				time.Sleep(time.Second)
				return c.Get(ctx, "b")
			case "b":
				time.Sleep(time.Hour / 2)
				return 7, nil
			}
			time.Sleep(time.Minute)
			return 1, nil
		}, options{MaxConcurrency: 2})
		go c.Get(t.Context(), "a")
		go c.Get(t.Context(), "other")
		synctest.Wait()
		go wantGet(t, c, "b", 7)
		wantGet(t, c, "a", 7)
		synctest.Wait()
		got := c.Stats()
		assert.NoError(t, coretest.CheckBooks(got.Loads))
		assert.Equal(t, uint64(2), got.Loads.Succeeded)
		assert.Equal(t, uint64(1), got.Nested)
		assert.Equal(t, uint64(1), got.Loads.Cancelled)
	})
}

// The one who runs a load for others may leave: it goes on for them; and if there
// are none, it is cancelled.
func TestNestedLoadOfOneWhoLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c *cache
		var cause error
		c = newCache(t, func(ctx context.Context, key string) (int, error) {
			if key == "a" {
				return c.Get(ctx, "b")
			}
			select {
			case <-time.After(time.Minute):
				return 1, nil
			case <-ctx.Done():
				cause = context.Cause(ctx)
				return 0, cause
			}
		}, options{})
		for _, others := range []bool{true, false} {
			ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errOnPurpose)
			defer cancel()
			if others {
				go func() {
					time.Sleep(time.Millisecond)
					wantGet(t, c, "b", 1)
				}()
			}
			_, err := c.Get(ctx, "a")
			assert.ErrorIs(t, err, errOnPurpose)
			synctest.Wait()
			if others {
				assert.NoError(t, cause)
			} else {
				assert.ErrorIs(t, cause, errOnPurpose)
			}
			time.Sleep(time.Hour)
		}
	})
}

func TestNestedLoadIsCancelledByClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c *cache
		c = newCache(t, func(ctx context.Context, key string) (int, error) {
			if key == "a" {
				return c.Get(ctx, "b")
			}
			<-ctx.Done()
			return 0, context.Cause(ctx)
		}, options{})
		go func() {
			_, err := c.Get(t.Context(), "b's other friend")
			assert.ErrorIs(t, err, core.ErrClosed)
		}()
		go func() {
			_, err := c.Get(t.Context(), "a")
			assert.ErrorIs(t, err, core.ErrClosed)
		}()
		synctest.Wait()
		go func() {
			_, err := c.Get(t.Context(), "b")
			assert.ErrorIs(t, err, core.ErrClosed)
		}()
		synctest.Wait()
		require.NoError(t, c.Close())
	})
}

// A nested load that panics fails as a load of its own; one that ends its goroutine
// takes those with it in which it runs.
func TestNestedLoadThatPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c *cache
		c = newCache(t, func(ctx context.Context, key string) (int, error) {
			switch key {
			case "a", "b":
				value, err := c.Get(ctx, key+"'s")
				assert.ErrorAs(t, err, new(*core.PanicError))
				return value, err
			case "a's":
				time.Sleep(time.Minute)
				panic("on purpose")
			}
			time.Sleep(time.Minute)
			runtime.Goexit()
			return 0, nil
		}, options{MaxConcurrency: 1})
		for _, key := range []string{"a", "b"} {
			var all sync.WaitGroup
			all.Go(func() {
				_, err := c.Get(t.Context(), key)
				assert.ErrorAs(t, err, new(*core.PanicError))
			})
			synctest.Wait()
			all.Go(func() {
				_, err := c.Get(t.Context(), key+"'s")
				assert.ErrorAs(t, err, new(*core.PanicError))
			})
			all.Wait()
		}
		assert.Equal(t, uint64(2), c.Stats().Loads.Failed)
	})
}

// Who has been kept from waiting, by a handler that ended the goroutine, does not keep
// a load going that nobody else waits for.
func TestHandlerThatEndsTheGoroutineOfWhoAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCache(t, func(ctx context.Context, key string) (int, error) {
			<-ctx.Done()
			return 0, ctx.Err()
		}, options{SampleEvery: 1})
		c.Sink().Subscribe(slidingcache.SignalShared, func(core.Signal) { runtime.Goexit() })
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() { c.Get(ctx, "a") })
			synctest.Wait()
		}
		all.Wait()
		synctest.Wait()
		assert.Zero(t, c.Stats().Loads.Running)
	})
}

// Nothing hangs: a load that asks for its own key, directly, over others, over
// another cache, over a coordinator, or without its context.
func TestLoadThatWouldWaitForItself(t *testing.T) {
	within := func(t *testing.T, c *cache, key string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		_, err := c.Get(ctx, key)
		assert.ErrorIs(t, err, core.ErrWouldDeadlock)
		assert.NoError(t, ctx.Err())
	}
	for _, limit := range []int{1, 4} {
		opts := options{MaxConcurrency: limit}
		t.Run(fmt.Sprint("limit ", limit), func(t *testing.T) {
			t.Run("itself", func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var c *cache
					c = newCache(t, func(ctx context.Context, key string) (int, error) { return c.Get(ctx, key) }, opts)
					within(t, c, "a")
				})
			})
			t.Run("without its context", func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var c *cache
					c = newCache(t, func(context.Context, string) (int, error) { return c.Get(context.Background(), "a") }, opts)
					within(t, c, "a")
					within(t, c, "b")
				})
			})
			t.Run("a circle", func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var c *cache
					needs := map[string][]string{"a": {"b"}, "b": {"c"}, "c": {"a"}}
					c = newCache(t, family(t, needs, func() func(context.Context, string) (int, error) { return c.Get }), opts)
					within(t, c, "a")
				})
			})
			t.Run("crosswise", func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var c *cache
					needs := map[string][]string{"a": {"b"}, "b": {"a"}}
					c = newCache(t, family(t, needs, func() func(context.Context, string) (int, error) { return c.Get }), opts)
					var other sync.WaitGroup
					other.Go(func() { within(t, c, "b") })
					within(t, c, "a")
					other.Wait()
				})
			})
			t.Run("another cache", func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var c, d *cache
					c = newCache(t, func(ctx context.Context, key string) (int, error) { return d.Get(ctx, key) }, opts)
					d = newCache(t, func(ctx context.Context, key string) (int, error) { return c.Get(ctx, key) }, opts)
					within(t, c, "a")
				})
			})
			t.Run("a coordinator", func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var c *cache
					pool, err := core.NewResultCoordinator(func(ctx context.Context, key string) (int, error) { return c.Get(ctx, key) }, core.Options{MaxConcurrency: 1})
					require.NoError(t, err)
					c = newCache(t, pool.Do, opts)
					within(t, c, "a")
					_, err = pool.Do(t.Context(), "b")
					assert.ErrorIs(t, err, core.ErrWouldDeadlock)
				})
			})
		})
	}
}

// A load that another one needs and that runs already is waited for.
func TestNestedLoadWaitsForOneThatRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c *cache
		c = newCache(t, func(ctx context.Context, key string) (int, error) {
			if key == "b" {
				time.Sleep(time.Minute)
				return 1, nil
			}
			value, err := c.Get(ctx, "b")
			return value + 1, err
		}, options{})
		var all sync.WaitGroup
		all.Go(func() { wantGet(t, c, "b", 1) })
		synctest.Wait()
		all.Go(func() { wantGet(t, c, "x", 2) })
		all.Go(func() { wantGet(t, c, "a", 2) })
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errOnPurpose)
		defer cancel()
		_, err := c.Get(ctx, "impatient")
		assert.ErrorIs(t, err, errOnPurpose)
		synctest.Wait()
		assert.Equal(t, 3, c.Stats().Loads.Running, "its load has left as well")
		all.Wait()
		assert.Equal(t, uint64(4), c.Stats().Loads.Enqueued)
		assert.Zero(t, c.Stats().Nested)
	})
}

// A context of a load that has ended is like any other.
func TestContextThatOutlivesItsLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var kept context.Context
		var c *cache
		c = newCache(t, func(ctx context.Context, key string) (int, error) {
			if key == "a" {
				if kept = ctx; true {
					return c.Get(ctx, "b")
				}
			}
			return 1, nil
		}, options{})
		wantGet(t, c, "a", 1)
		_, err := c.Get(context.WithoutCancel(kept), "c")
		assert.NoError(t, err)
		assert.Equal(t, uint64(2), c.Stats().Loads.Enqueued)
	})
}

func TestKeysThatAreNotEqualToThemselves(t *testing.T) {
	calls := 0
	c, err := slidingcache.New(func(context.Context, float64) (int, error) { calls++; return calls, nil }, slidingcache.Options[float64]{MaxSize: 3})
	require.NoError(t, err)
	nan := func() float64 { zero := 0.0; return zero / zero }()
	for i := range 10 {
		value, err := c.Get(t.Context(), nan)
		assert.NoError(t, err)
		assert.Equal(t, i+1, value)
	}
	assert.LessOrEqual(t, c.Len(), 3)
	assert.NoError(t, c.Close())
}

// A panic of KeyText, on the caller's goroutine, leaves nothing locked.
func TestPanickingKeyText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s source
		var bad atomic.Bool
		c := newCache(t, s.load, options{KeyText: func(key string) string {
			if bad.Load() {
				panic("on purpose")
			}
			return key
		}})
		c.Set("a", 1)
		bad.Store(true)
		assert.Panics(t, func() { c.Get(t.Context(), "b") })
		assert.Panics(t, func() { c.Invalidate("a") })
		bad.Store(false)
		wantGet(t, c, "b", 1)
		wantGet(t, c, "a", 2)
	})
}

// What is stored, or removed, between the first look and the second counts.
func TestSecondLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s source
		var c *cache
		meanwhile := func(string) {}
		c = newCache(t, s.load, options{RefreshAfter: time.Minute, KeyText: func(key string) string {
			do := meanwhile
			meanwhile = func(string) {} // once
			do(key)
			return key
		}})
		meanwhile = func(key string) { c.Set(key, 7) }
		wantGet(t, c, "a", 7, "stored meanwhile")
		assert.Zero(t, s.calls)
		assert.Equal(t, uint64(1), c.Stats().Hits)
		assert.Zero(t, c.Stats().Misses)

		time.Sleep(time.Minute)
		meanwhile = func(key string) { c.Invalidate(key) }
		wantGet(t, c, "a", 7, "it was still there")
		synctest.Wait()
		assert.Zero(t, s.calls, "a refresh does not bring it back")
	})
}

// No order of reads, writes and invalidations, with loads that take their time, lets
// somebody see a value that is older than one that was set, or invalidated, before
// they asked. In fake time, so that many orders happen.
func TestNobodySeesWhatWasInvalidatedBefore(t *testing.T) {
	rounds := 300
	if testing.Short() || raceEnabled {
		rounds = 30
	}
	for round := range rounds {
		synctest.Test(t, func(t *testing.T) {
			r := newRandom(uint64(round))
			var mu sync.Mutex
			pause := func(most int) {
				mu.Lock()
				d := time.Duration(r.IntN(most))
				mu.Unlock()
				time.Sleep(d)
			}
			var stored, floor [2]atomic.Int64 // what the source has; what nobody may be behind
			keys := []string{"a", "b"}
			c := newCache(t, func(ctx context.Context, key string) (int, error) {
				i := slices.Index(keys, key)
				pause(20)
				value := stored[i].Load()
				pause(20)
				return int(value), nil
			}, options{MaxConcurrency: 1 + r.IntN(4), RefreshAfter: 5, Sliding: 20, Absolute: 100, StaleOnError: 10, MaxSize: 1 + r.IntN(2)})
			var all sync.WaitGroup
			for i, key := range keys {
				all.Go(func() {
					for step := range int64(30) {
						pause(30)
						stored[i].Store(step)
						if step%3 == 0 {
							c.Set(key, int(step))
						} else {
							c.Invalidate(key)
						}
						floor[i].Store(step)
					}
				})
				for range 3 {
					all.Go(func() {
						for range 50 {
							pause(10)
							least := floor[i].Load()
							got, err := c.Get(t.Context(), key)
							if err != nil || int64(got) < least {
								t.Errorf("round %d: %s is %d (%v), but had been %d", round, key, got, err, least)
							}
						}
					})
				}
			}
			all.Wait()
		})
	}
}

// The same with real goroutines and nothing that takes its time.
func TestNobodySeesWhatWasInvalidatedBeforeInParallel(t *testing.T) {
	steps := int64(20_000)
	if testing.Short() || raceEnabled {
		steps = 2000
	}
	var stored, floor atomic.Int64
	c := newCache(t, func(context.Context, string) (int, error) { return int(stored.Load()), nil }, options{RefreshAfter: 1})
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for least := int64(0); least < steps-1; {
				least = floor.Load()
				if got, err := c.Get(t.Context(), "a"); err != nil || int64(got) < least {
					t.Errorf("it is %d (%v), but had been %d", got, err, least)
					return
				}
			}
		})
	}
	for step := range steps {
		stored.Store(step)
		if step%2 == 0 {
			c.Set("a", int(step))
		} else {
			c.Invalidate("a")
		}
		floor.Store(step)
	}
	all.Wait()
}

// busy is a context whose methods do something first.
type busy struct {
	context.Context
	do func()
}

func (b busy) Value(key any) any           { b.do(); return b.Context.Value(key) }
func (b busy) Err() error                  { b.do(); return b.Context.Err() }
func (b busy) Done() <-chan struct{}       { b.do(); return b.Context.Done() }
func (b busy) Deadline() (time.Time, bool) { b.do(); return b.Context.Deadline() }

func TestForeignCodeMayUseTheCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c *cache
		deep := false
		var mu sync.Mutex
		use := func() {
			mu.Lock()
			again := deep
			deep = true
			mu.Unlock()
			if again {
				return
			}
			for _, key := range []string{"a", "b", "c"} {
				c.GetIfPresent(key)
				c.Set("other", 1)
				c.Invalidate("other")
			}
			c.Len()
			c.Stats()
			for s := range c.Loads(core.OperationQuery{}) {
				c.Lookup(s.ID)
				c.Explain(s.ID)
			}
			c.Sweep()
			mu.Lock()
			deep = false
			mu.Unlock()
		}
		c = newCache(t, func(ctx context.Context, key string) (int, error) {
			use()
			ctx.Value("x")
			switch key {
			case "a":
				time.Sleep(time.Second)
				return c.Get(busy{ctx, use}, "b")
			case "c":
				return 0, errOnPurpose
			}
			time.Sleep(time.Second)
			return 1, nil
		}, options{
			RefreshAfter: time.Minute, StaleOnError: time.Minute, NegativeTTL: time.Minute, SampleEvery: 1, RaiseEvictions: true, MaxSize: 4, MaxConcurrency: 1,
			InvalidateOn: "changed",
			KeyText:      func(key string) string { use(); return key },
			NotFound:     func(err error) bool { use(); return err == errOnPurpose },
			KeyOf:        func(s core.Signal) (string, bool) { use(); return s.Key, s.Key != "" },
		})
		c.Sink().Subscribe("*", func(core.Signal) { use() })
		for range 4 {
			var all sync.WaitGroup
			for _, key := range []string{"a", "b", "c"} {
				for range 3 {
					all.Go(func() {
						ctx, cancel := context.WithTimeout(t.Context(), time.Second*3/2)
						defer cancel()
						c.Get(busy{ctx, use}, key)
					})
				}
			}
			all.Wait()
			synctest.Wait()
			time.Sleep(time.Minute)
			c.Sink().RaiseKey("changed", "b")
			time.Sleep(time.Second)
			for i := range 10 {
				c.Set(fmt.Sprint(i), i)
			}
		}
		c.Clear()
		require.NoError(t, c.Close())
	})
}

func TestLoadsThatNeedOthersOverSomethingElse(t *testing.T) {
	for _, limit := range []int{1, 4} {
		synctest.Test(t, func(t *testing.T) {
			var c *cache
			detour := func(ctx context.Context, key string) (int, error) {
				time.Sleep(time.Second)
				return c.Get(ctx, "base of "+key)
			}
			d := newCache(t, detour, options{MaxConcurrency: limit})
			pool, err := core.NewResultCoordinator(detour, core.Options{MaxConcurrency: limit})
			require.NoError(t, err)
			c = newCache(t, func(ctx context.Context, key string) (int, error) {
				time.Sleep(time.Second)
				switch key[0] {
				case 'd':
					return d.Get(ctx, key)
				case 'p':
					return pool.Do(ctx, key)
				}
				return len(key), nil
			}, options{MaxConcurrency: limit})
			var all sync.WaitGroup
			for i := range 8 {
				for _, key := range []string{fmt.Sprint("d", i), fmt.Sprint("p", i)} {
					all.Go(func() { wantGet(t, c, key, len("base of ")+2) })
				}
			}
			all.Wait()
			synctest.Wait()
			got := c.Stats()
			assert.GreaterOrEqual(t, got.Nested, uint64(8))
			assert.EqualValues(t, 32, c.Sink().Count(slidingcache.SignalLoading))
			assert.EqualValues(t, 32, c.Sink().Count(slidingcache.SignalLoaded))
			assert.EqualValues(t, 8, d.Sink().Count(slidingcache.SignalLoaded))
			assert.Zero(t, pool.Sink().Count(slidingcache.SignalLoaded))
		})
	}
}

func TestContextThatEndsWhenTheLoadDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got, gone := 0, 0
		for i := range 200 {
			s := source{takes: time.Second}
			c := newCache(t, s.load, options{})
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if i%2 == 0 {
				cancel()
				ctx, cancel = context.WithCancel(t.Context())
				time.AfterFunc(time.Second, cancel)
			}
			v, err := c.Get(ctx, "a")
			if err == nil {
				assert.Equal(t, 1, v)
				got++
			} else {
				assert.ErrorIs(t, err, ctx.Err())
				gone++
			}
			cancel()
			synctest.Wait()
			st := c.Stats().Loads
			assert.Equal(t, uint64(1), st.Succeeded+st.Cancelled+st.Failed)
			c.Close()
		}
		assert.Equal(t, 200, got+gone)
	})
}

// dice returns random numbers less than n, to any goroutine.
func dice(seed uint64) func(n int) int {
	r := newRandom(seed)
	var mu sync.Mutex
	return func(n int) int {
		mu.Lock()
		defer mu.Unlock()
		return r.IntN(n)
	}
}

// Loads of some caches need each other's keys, smaller ones only, with few places, and
// some fail, panic, leave early or are overtaken: in the end none is left over.
func TestCachesThatNeedEachOther(t *testing.T) {
	rounds := 300
	if testing.Short() || raceEnabled {
		rounds = 60
	}
	for round := range rounds {
		synctest.Test(t, func(t *testing.T) {
			n := dice(uint64(round))
			pause := func(most int) { time.Sleep(time.Duration(n(most))) }
			caches := make([]*cache, 2+n(3))
			get := func(ctx context.Context, key, patience int) error {
				if patience > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, time.Duration(patience))
					defer cancel()
				}
				_, err := caches[n(len(caches))].Get(ctx, fmt.Sprint(key))
				return err
			}
			load := func(ctx context.Context, text string) (int, error) {
				key, err := strconv.Atoi(text)
				for range n(3) {
					pause(10)
					switch how := n(40); {
					case key == 0 || err != nil:
					case how < 2:
						panic("on purpose")
					case how < 4:
						err = errOnPurpose
					case how < 10:
						err = get(ctx, n(key), 1+n(9))
					default:
						err = get(ctx, n(key), 0)
					}
				}
				pause(10)
				return key, err
			}
			for i := range caches {
				caches[i] = newCache(t, load, options{
					MaxConcurrency: 1 + n(3), Sliding: 40, Absolute: 100,
					RefreshAfter: time.Duration(n(30)), StaleOnError: time.Duration(n(20)), NegativeTTL: time.Duration(n(2) * 200),
				})
			}
			var all sync.WaitGroup
			for range 8 {
				all.Go(func() {
					for range 40 {
						pause(10)
						c, key := caches[n(len(caches))], n(10)
						switch n(10) {
						case 0:
							c.Invalidate(fmt.Sprint(key))
						case 1:
							c.Set(fmt.Sprint(key), key)
						default:
							get(t.Context(), key, 10+n(300))
						}
					}
				})
			}
			all.Wait()
			time.Sleep(10_000)
			synctest.Wait()
			for _, c := range caches {
				got := c.Stats()
				if got.Loads.Pending+got.Loads.Running > 0 || got.RefreshFailures > got.Refreshes {
					t.Errorf("round %d: %v", round, got)
				}
			}
		})
	}
}

// What runs within another load of the cache, over another cache, waits for a load
// that has its own place.
func TestLoadOverAnotherCacheWaitsForOneThatRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c, d *cache
		c = newCache(t, func(ctx context.Context, key string) (int, error) {
			if key == "b" {
				time.Sleep(time.Minute)
				return 7, nil
			}
			time.Sleep(time.Second)
			return d.Get(ctx, "x")
		}, options{MaxConcurrency: 2})
		d = newCache(t, func(ctx context.Context, key string) (int, error) {
			if key == "h" {
				return c.Get(ctx, "a")
			}
			return c.Get(ctx, "b")
		}, options{MaxConcurrency: 1})
		var all sync.WaitGroup
		all.Go(func() { wantGet(t, c, "b", 7) })
		all.Go(func() { wantGet(t, d, "h", 7) })
		all.Wait()
		assert.Equal(t, uint64(1), d.Stats().Nested)
	})
}

// A circle through the places of two caches is opened where it does not close another
// one: c's load would need what would run it.
func TestPlacesInACircle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c, d, e *cache
		c = newCache(t, func(ctx context.Context, key string) (int, error) {
			time.Sleep(time.Second)
			return e.Get(ctx, "z")
		}, options{MaxConcurrency: 1})
		d = newCache(t, func(ctx context.Context, key string) (int, error) {
			if key == "h" {
				time.Sleep(2 * time.Second)
				return c.Get(ctx, "b")
			}
			return 7, nil
		}, options{MaxConcurrency: 1})
		e = newCache(t, func(ctx context.Context, key string) (int, error) {
			time.Sleep(2 * time.Second)
			return d.Get(ctx, "f")
		}, options{})
		var all sync.WaitGroup
		all.Go(func() { wantGet(t, c, "a", 7) })
		all.Go(func() { wantGet(t, d, "h", 7) })
		all.Wait()
	})
}

// Loads of some caches, with few places, need smaller keys only, one after the other or
// at once: whatever waits for whatever place, none fails.
func TestLoadsOfCachesThatNeedEachOtherSucceed(t *testing.T) {
	rounds := 300
	if testing.Short() || raceEnabled {
		rounds = 60
	}
	for round := range rounds {
		synctest.Test(t, func(t *testing.T) {
			n := dice(uint64(round))
			caches := make([]*cache, 1+n(5))
			get := func(ctx context.Context, key int) {
				time.Sleep(time.Duration(n(10)))
				value, err := caches[n(len(caches))].Get(ctx, fmt.Sprint(key))
				assert.NoError(t, err)
				assert.Equal(t, key, value)
			}
			load := func(ctx context.Context, text string) (int, error) {
				key, err := strconv.Atoi(text)
				for range min(key, n(3)) {
					var all sync.WaitGroup
					for range n(2) * n(4) {
						all.Go(func() { get(ctx, n(key)) })
					}
					get(ctx, n(key))
					all.Wait()
				}
				time.Sleep(time.Duration(n(10)))
				return key, err
			}
			for i := range caches {
				caches[i] = newCache(t, load, options{MaxConcurrency: 1 + n(3), Sliding: 40, Absolute: 100, RefreshAfter: time.Duration(n(30))})
			}
			begun := time.Now()
			var all sync.WaitGroup
			for range 8 {
				all.Go(func() {
					for range 30 {
						get(t.Context(), n(10))
					}
				})
			}
			all.Wait()
			assert.Less(t, time.Since(begun), 100*time.Microsecond)
			time.Sleep(time.Millisecond) // until refreshes are over
		})
	}
}

// Who leaves, leaves all that is loaded for it, also what runs in another's place.
func TestLeavingALoadOverAnotherCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c, d *cache
		c = newCache(t, func(ctx context.Context, key string) (int, error) {
			if key == "a" {
				return d.Get(ctx, "x")
			}
			select {
			case <-ctx.Done():
				return 0, ctx.Err()
			case <-time.After(time.Hour):
				return 1, nil
			}
		}, options{MaxConcurrency: 1})
		d = newCache(t, func(ctx context.Context, key string) (int, error) { return c.Get(ctx, "b") }, options{})
		begun := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := c.Get(ctx, "a")
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		synctest.Wait()
		assert.Zero(t, c.Stats().Loads.Running+d.Stats().Loads.Running)
		assert.Equal(t, time.Minute, time.Since(begun))
	})
}
