package slidingcache_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/slidingcache"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// Ten callers want the same key at once, and it is loaded once.
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

// A load has the values of the first caller's context, but not its deadline. It goes on
// until the last caller leaves. Then it is cancelled with the cause of the last caller,
// and its result is not stored.
func TestLoadIsCancelledWhenNoCallerWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type key struct{}
		causes := make(chan error, 1)
		c := newCache(t, func(ctx context.Context, k string) (int, error) {
			_, limited := ctx.Deadline()
			assert.Equal(t, []any{0, false}, []any{ctx.Value(key{}), limited})
			<-ctx.Done()
			causes <- context.Cause(ctx)
			return 7, nil // all the same
		}, options{})
		raised := coretest.Watch(t, c.Sink(), "cache.*")
		callers := []error{errors.New("first"), errors.New("last")}
		var all sync.WaitGroup
		for i, cause := range callers {
			ctx, cancel := context.WithTimeoutCause(context.WithValue(t.Context(), key{}, i), time.Duration(i+1)*time.Minute, cause)
			defer cancel()
			all.Go(func() {
				_, err := c.Get(ctx, "a")
				assert.ErrorIs(t, err, cause)
			})
			synctest.Wait()
		}
		begun := time.Now()
		assert.Equal(t, callers[1], <-causes)
		assert.Equal(t, 2*time.Minute, time.Since(begun))
		all.Wait()
		synctest.Wait()
		assert.False(t, contains(c, "a"))
		assert.Equal(t, uint64(1), c.Stats().Discarded)
		raised.ExpectExactly(slidingcache.SignalLoading, slidingcache.SignalLoaded)
		ended, cancel := context.WithCancelCause(t.Context())
		cancel(errOnPurpose)
		_, err := c.Get(ended, "a")
		assert.ErrorIs(t, err, errOnPurpose, "no load for a context that has ended")
	})
}

// A load that fails, panics or ends its goroutine fails all callers that wait for it, and
// the next caller begins another one.
func TestFailuresGoToAllAndAreNotCached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ends := map[string]func() error{
			"error":  func() error { return errOnPurpose },
			"panic":  func() error { panic(errOnPurpose) },
			"goexit": func() error { runtime.Goexit(); return nil },
		}
		c := newCache(t, func(_ context.Context, key string) (int, error) {
			time.Sleep(time.Second)
			if end := ends[key]; end != nil {
				delete(ends, key)
				return 7, end()
			}
			return 1, nil
		}, options{MaxConcurrency: 1, StaleOnError: time.Hour, NegativeTTL: time.Hour})
		raised := coretest.Watch(t, c.Sink(), "cache.*, "+core.SignalPanicked)
		for key, expect := range map[string][]string{
			"error":  {slidingcache.SignalLoading, slidingcache.LoadFailed.Name()},
			"panic":  {slidingcache.SignalLoading, core.SignalPanicked, slidingcache.LoadFailed.Name()},
			"goexit": {slidingcache.SignalLoading, slidingcache.LoadFailed.Name()},
		} {
			var all sync.WaitGroup
			for range 3 {
				all.Go(func() {
					_, err := c.Get(t.Context(), key)
					var p *core.PanicError
					assert.Equal(t, key != "error", errors.As(err, &p), key)
					assert.Equal(t, key != "goexit", errors.Is(err, errOnPurpose), key)
					if p != nil {
						assert.Contains(t, string(p.Stack), "TestFailuresGoToAll")
					}
				})
			}
			all.Wait()
			raised.ExpectExactly(expect...)
			wantGet(t, c, key, 1)
			raised.Expect(slidingcache.SignalLoaded)
		}
		assert.Equal(t, uint64(3), c.Stats().Loads.Failed)
	})
}

// The late value goes to the callers that waited for it. Later callers do not get it.
func TestOvertakenLoads(t *testing.T) {
	for name, overtake := range map[string]func(*cache){
		"Remove":       func(c *cache) { assert.False(t, removed(c.Remove("a"))) },
		"Clear":        (*cache).Clear,
		"InvalidateOn": func(c *cache) { c.Sink().RaiseKey("changed", "a") },
		"Set":          func(c *cache) { c.Set("a", 2) },
	} {
		synctest.Test(t, func(t *testing.T) {
			s := source{takes: time.Minute}
			c := newCache(t, s.load, options{InvalidateOn: "changed"})
			go wantGet(t, c, "a", 1, name)
			time.Sleep(time.Second)
			overtake(c)
			wantGet(t, c, "a", 2, name)
			time.Sleep(time.Minute)
			synctest.Wait()
			wantGet(t, c, "a", 2, name)
			assert.Equal(t, uint64(1), c.Stats().Discarded)
		})
	}
}

// Close cancels the loads that run, wait for their turn, or wait for another load, and
// waits for them. No load begins in the place of one that waits.
func TestCloseCancelsLoadsAndWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c *cache
		var begun atomic.Int32
		c = newCache(t, func(ctx context.Context, key string) (int, error) {
			begun.Add(1)
			if key == "a" {
				return c.Get(ctx, "b")
			}
			<-ctx.Done()
			time.Sleep(time.Minute)
			return 0, context.Cause(ctx)
		}, options{MaxConcurrency: 1})
		var all sync.WaitGroup
		for _, key := range []string{"a", "b", "c", "d"} {
			all.Go(func() {
				_, err := c.Get(t.Context(), key)
				assert.ErrorIs(t, err, core.ErrClosed)
			})
			synctest.Wait()
		}
		raised := coretest.Watch(t, c.Sink(), "cache.*")
		start := time.Now()
		require.NoError(t, c.Close())
		all.Wait()
		assert.Equal(t, time.Minute, time.Since(start))
		assert.EqualValues(t, 2, begun.Load())
		assert.Equal(t, uint64(4), c.Stats().Loads.Cancelled)
		raised.None() // the loads were cancelled, not failed
	})
}

// Stop lets running loads finish, and cancels loads that wait for their turn.
func TestStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c *cache
		c = newCache(t, func(ctx context.Context, key string) (int, error) {
			assert.ErrorIs(t, c.Stop(ctx), core.ErrWouldDeadlock)
			assert.ErrorIs(t, c.WaitIdle(ctx), core.ErrWouldDeadlock)
			time.Sleep(time.Minute)
			return 1, ctx.Err()
		}, options{MaxConcurrency: 1})
		c.Set("there", 9)
		begun := time.Now()
		go wantGet(t, c, "running", 1)
		synctest.Wait()
		go func() {
			_, err := c.Get(t.Context(), "pending")
			assert.ErrorIs(t, err, core.ErrStopped)
		}()
		synctest.Wait()
		impatient, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		assert.ErrorIs(t, c.Stop(impatient), context.DeadlineExceeded)
		wantGet(t, c, "there", 9)
		_, err := c.Get(t.Context(), "another")
		assert.ErrorIs(t, err, core.ErrClosed)
		require.NoError(t, c.WaitIdle(t.Context()))
		assert.Equal(t, time.Minute, time.Since(begun))
		require.NoError(t, c.Stop(t.Context()))
		c.Set("a", 1)
		assert.False(t, removed(c.Remove("a")))
	})
}

func TestCloseFromALoadAndFromAHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, signal := range []string{"", "changed", slidingcache.SignalLoaded} { // "": by the load itself
			var c *cache
			c = newCache(t, func(ctx context.Context, key string) (int, error) {
				if signal == "" {
					assert.NoError(t, c.Close())
				}
				c.Sink().Raise("changed")
				return 1, nil
			}, options{InvalidateOn: "changed"})
			c.Sink().Subscribe(signal, func(signals.Signal) { assert.NoError(t, c.Close()) })
			c.Get(t.Context(), "a")
			_, err := c.Get(t.Context(), "b")
			assert.ErrorIs(t, err, core.ErrClosed)
			assert.Zero(t, c.Len())
		}
	})
}

// A load for which other loads wait goes first. So few loads are under way at once, however
// many callers there are: here the loads of one key, and one that waits for its slot.
func TestLoadsThatAreNeededGoFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var active, most atomic.Int32
		var c *cache
		c = newCache(t, func(ctx context.Context, key string) (int, error) {
			most.Store(max(most.Load(), active.Add(1)))
			defer active.Add(-1)
			time.Sleep(time.Millisecond)
			if len(key) == 3 {
				return 3, nil
			}
			return c.Get(ctx, key+"'")
		}, options{MaxConcurrency: 1})
		var all sync.WaitGroup
		for _, key := range "abcdefgh" {
			all.Go(func() { wantGet(t, c, string(key), 3) })
		}
		all.Wait()
		assert.EqualValues(t, 4, most.Load())
	})
}

// A load that would wait for itself, or for a load that waits for it, gets an error:
// through other keys, another cache, or without its context.
func TestLoadThatWouldWaitForItself(t *testing.T) {
	for name, load := range map[string]func(t *testing.T, get loader, opts options) loader{
		"itself": func(_ *testing.T, get loader, _ options) loader { return get },
		"without its context": func(_ *testing.T, get loader, _ options) loader {
			return func(context.Context, string) (int, error) { return get(context.Background(), "a") }
		},
		"a circle": func(_ *testing.T, get loader, _ options) loader {
			next := map[string]string{"a": "b", "b": "c", "c": "a"}
			return func(ctx context.Context, key string) (int, error) {
				time.Sleep(time.Second)
				return get(ctx, next[key])
			}
		},
		"another cache": func(t *testing.T, get loader, opts options) loader { return newCache(t, get, opts).Get },
	} {
		for _, limit := range []int{1, 4} {
			synctest.Test(t, func(t *testing.T) {
				var c *cache
				opts := options{MaxConcurrency: limit}
				get := func(ctx context.Context, key string) (int, error) { return c.Get(ctx, key) }
				c = newCache(t, load(t, get, opts), opts)
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				var all sync.WaitGroup
				for _, key := range []string{"a", "b"} {
					all.Go(func() {
						_, err := c.Get(ctx, key)
						assert.ErrorIs(t, err, core.ErrWouldDeadlock, "%s, limit %d", name, limit)
					})
				}
				all.Wait()
				assert.NoError(t, ctx.Err())
			})
		}
	}
}

// Loads are operations. A load that waits for another load is suspended, and Explain names
// the other.
func TestLoadsAreOperations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c *cache
		c = newCache(t, func(ctx context.Context, key string) (int, error) {
			if key == "b" {
				core.OperationFrom(ctx).Set("from", "db")
				time.Sleep(time.Minute)
				return 1, nil
			}
			value, err := c.Get(ctx, "b")
			return value + 1, err
		}, options{})
		var all sync.WaitGroup
		all.Go(func() { wantGet(t, c, "b", 1) })
		synctest.Wait()
		all.Go(func() { wantGet(t, c, "a", 2) })
		synctest.Wait()
		got := c.Stats().Loads
		assert.Equal(t, []int{1, 1}, []int{got.Running, got.Suspended})
		var ids []core.OperationID
		for op := range c.Loads(core.OperationQuery{}) {
			ids = append(ids, op.ID)
		}
		why, ok := c.Explain(ids[1])
		assert.True(t, ok)
		assert.Contains(t, why.String(), `the load of key "b" of "slidingcache"`)
		all.Wait()
		for op := range c.Loads(core.OperationQuery{Key: "b"}) {
			from, _ := core.Value[string](op, "from")
			assert.Equal(t, "db", from)
		}
		assert.Len(t, ids, 2)
	})
}

// A value that is stored, or removed, between the first look and the second one counts.
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
		meanwhile = func(key string) { c.Remove(key) }
		wantGet(t, c, "a", 7, "it was still there")
		synctest.Wait()
		assert.Zero(t, s.calls, "a refresh does not bring it back")
	})
}

// A caller never sees a value that is older than a set or removal before its call, in any
// order of reads, writes, removals, evictions and slow loads. The test uses fake time, so
// that many orders happen.
func TestNoCallerSeesWhatWasRemovedBefore(t *testing.T) {
	rounds := 15
	if long {
		rounds = 300
	}
	for round := range rounds {
		synctest.Test(t, func(t *testing.T) {
			n := dice(uint64(round))
			pause := func(most int) { time.Sleep(time.Duration(n(most))) }
			var stored, floor atomic.Int64 // the value of the source; the oldest value that a caller may see
			c := newCache(t, func(ctx context.Context, key string) (int, error) {
				pause(20)
				value := stored.Load()
				pause(20)
				return int(value), nil
			}, options{MaxConcurrency: 1 + n(4), RefreshAfter: 5, Sliding: 20, Absolute: 100, StaleOnError: 10, Capacity: 1})
			var all sync.WaitGroup
			all.Go(func() {
				for step := range int64(30) {
					pause(30)
					stored.Store(step)
					switch step % 3 {
					case 0:
						c.Set("a", int(step))
					case 1:
						c.Remove("a")
					default:
						c.Clear()
					}
					floor.Store(step)
				}
			})
			for i := range 4 {
				all.Go(func() {
					for range 50 {
						pause(10)
						c.Set("b", 0)
						get := []loader{c.Get, c.Get, c.Get, c.Refresh}[i]
						least := floor.Load()
						if got, err := get(t.Context(), "a"); err != nil || int64(got) < least {
							t.Errorf("round %d: it is %d (%v), but had been %d", round, got, err, least)
						}
					}
				})
			}
			all.Wait()
		})
	}
}

// busy is a context whose methods first call a function.
type busy struct {
	context.Context
	do func()
}

func (b busy) Value(key any) any     { b.do(); return b.Context.Value(key) }
func (b busy) Err() error            { b.do(); return b.Context.Err() }
func (b busy) Done() <-chan struct{} { b.do(); return b.Context.Done() }

// No function of the user is called while a lock is held: all of them may use the cache.
func TestForeignCodeMayUseTheCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c *cache
		var inside atomic.Bool
		use := func() {
			if inside.Swap(true) {
				return
			}
			defer inside.Store(false)
			for _, key := range []string{"a", "b", "c"} {
				c.GetIfPresent(key)
				c.Set("other", 1)
				c.Remove("other")
			}
			c.Len()
			c.Stats()
			for s := range c.Loads(core.OperationQuery{}) {
				c.Explain(s.ID)
			}
		}
		c = newCache(t, func(ctx context.Context, key string) (int, error) {
			use()
			time.Sleep(time.Second)
			switch key {
			case "a":
				return c.Get(busy{ctx, use}, "b")
			case "c":
				return 0, errOnPurpose
			}
			return 1, nil
		}, options{
			RefreshAfter: time.Minute, StaleOnError: time.Minute, NegativeTTL: time.Minute, SampleEvery: 1, Capacity: 4, MaxConcurrency: 1,
			InvalidateOn: "changed",
			KeyText:      func(key string) string { use(); return key },
			KeyOf:        func(s signals.Signal) (string, bool) { use(); return s.Key, s.Key != "" },
		})
		c.Sink().Subscribe("*", func(signals.Signal) { use() })
		for range 4 {
			var all sync.WaitGroup
			for i := range 9 {
				all.Go(func() {
					ctx, cancel := context.WithTimeout(t.Context(), time.Second*3/2)
					defer cancel()
					c.Get(busy{ctx, use}, []string{"a", "b", "c"}[i%3])
				})
			}
			all.Wait()
			time.Sleep(time.Minute)
			c.Sink().RaiseKey("changed", "b")
			for i := range 10 {
				c.Set(fmt.Sprint(i), i)
			}
		}
		c.Clear()
		require.NoError(t, c.Close())
	})
}

// dice returns random numbers less than n; any goroutine may call it.
func dice(seed uint64) func(n int) int {
	r := newRandom(seed)
	var mu sync.Mutex
	return func(n int) int {
		mu.Lock()
		defer mu.Unlock()
		return r.IntN(n)
	}
}

// Loads of several caches need smaller keys of each other, one after the other and at once,
// with few slots. No cache exceeds its limit, and no load is left over. If no load fails or
// panics and no caller leaves, all loads succeed.
func TestCachesThatNeedEachOther(t *testing.T) {
	rounds := 30
	if long {
		rounds = 600
	}
	for round := range rounds {
		synctest.Test(t, func(t *testing.T) {
			n, fails := dice(uint64(round)), round%2 == 0
			pause := func(most int) { time.Sleep(time.Duration(n(most))) }
			caches := make([]*cache, 1+n(5))
			limits, running := make([]int32, len(caches)), make([]atomic.Int32, len(caches))
			get := func(ctx context.Context, key, patience int) error {
				if patience > 0 && fails {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, time.Duration(patience))
					defer cancel()
				}
				value, err := caches[n(len(caches))].Get(ctx, fmt.Sprint(key))
				if !fails && (err != nil || value != key) {
					t.Errorf("round %d: key %d is %d, %v", round, key, value, err)
				}
				return err
			}
			load := func(ctx context.Context, i int, text string) (int, error) {
				if now := running[i].Add(1); now > limits[i] {
					t.Errorf("round %d: %d loads run, but only %d may", round, now, limits[i])
				}
				defer running[i].Add(-1)
				key, err := strconv.Atoi(text)
				for range min(key, n(3)) {
					pause(10)
					switch how := n(40); {
					case how == 0 && fails:
						panic("on purpose")
					case how < 4 && fails:
						err = errOnPurpose
					default:
						running[i].Add(-1)
						var others sync.WaitGroup
						for range n(2) * n(3) {
							others.Go(func() { get(ctx, n(key), 0) })
						}
						failed := get(ctx, n(key), (how%4/3)*(1+n(9)))
						others.Wait()
						running[i].Add(1)
						err = cmp.Or(err, failed)
					}
				}
				pause(10)
				return key, err
			}
			for i := range caches {
				limits[i] = int32(1 + n(3))
				caches[i] = newCache(t, func(ctx context.Context, text string) (int, error) { return load(ctx, i, text) }, options{
					MaxConcurrency: int(limits[i]), Sliding: 40, Absolute: 100,
					RefreshAfter: time.Duration(n(30)), StaleOnError: time.Duration(n(20)), NegativeTTL: time.Duration(n(2) * 200),
				})
			}
			var all sync.WaitGroup
			for range 8 {
				all.Go(func() {
					for range 30 {
						pause(10)
						c, key := caches[n(len(caches))], n(10)
						if n(10) == 0 && fails { // this cancels a refresh
							c.Remove(fmt.Sprint(key))
						} else {
							get(t.Context(), key, 10+n(300))
						}
					}
				})
			}
			all.Wait()
			time.Sleep(time.Millisecond)
			synctest.Wait()
			for _, c := range caches {
				got := c.Stats()
				if got.Loads.Pending+got.Loads.Running+got.Loads.Suspended > 0 || got.RefreshFailures > got.Refreshes {
					t.Errorf("round %d: %v", round, got)
				}
			}
		})
	}
}

// If a handler ends its goroutine, the load of that goroutine ends as by a panic, or the
// wait of its caller ends. No caller hangs, and no load goes on without a caller.
func TestHandlersThatEndTheirGoroutine(t *testing.T) {
	for _, name := range []string{slidingcache.SignalShared, slidingcache.SignalLoading, slidingcache.SignalLoaded, slidingcache.LoadFailed.Name()} {
		synctest.Test(t, func(t *testing.T) {
			s := source{takes: time.Second}
			c := newCache(t, s.load, options{MaxConcurrency: 1, Capacity: 1, SampleEvery: 1})
			c.Set("b", 1)
			var once sync.Once
			c.Sink().Subscribe(name, func(signals.Signal) { once.Do(runtime.Goexit) })
			var all sync.WaitGroup
			for i := range 2 {
				all.Go(func() {
					value, err := c.Get(t.Context(), "a")
					if name == slidingcache.SignalLoading && i == 0 {
						assert.ErrorAs(t, err, new(*core.PanicError))
						return
					}
					assert.Equal(t, []any{1, nil}, []any{value, err})
				})
				synctest.Wait()
			}
			all.Wait()
			s.fails = errOnPurpose
			_, err := c.Get(t.Context(), "c")
			assert.ErrorIs(t, err, errOnPurpose)
			s.fails = nil
			_, err = c.Get(t.Context(), "d")
			assert.NoError(t, err)
			synctest.Wait()
			assert.Zero(t, c.Stats().Loads.Running)
		})
	}
}

// A cache without references is garbage-collected after its loads are no longer shown. A timer
// ends that.
func TestForgottenCacheIsGarbage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		forget := func() weak.Pointer[cache] {
			var c *cache
			c, err := slidingcache.New(func(ctx context.Context, key string) (int, error) {
				c.Set("other "+key, 2)
				return 1, nil
			}, options{RefreshAfter: time.Minute, StaleOnError: time.Hour})
			require.NoError(t, err)
			c.Sink().Subscribe("cache.*", func(signals.Signal) { c.Len() })
			wantGet(t, c, "a", 1)
			return weak.Make(c)
		}
		gone := forget()
		time.Sleep(time.Hour)
		synctest.Wait()
		for range 3 {
			runtime.GC()
		}
		assert.Nil(t, gone.Value())
	})
}
