package lru_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/lru"
)

var errOnPurpose = errors.New("failed on purpose")

// loader counts its calls, and returns the number of the call after a while.
type loader struct {
	calls atomic.Int64
	after time.Duration
	err   error
}

func (l *loader) load(context.Context, string) (int, error) {
	n := l.calls.Add(1)
	time.Sleep(l.after)
	return int(n), l.err
}

// nobody calls it, because somebody else loads the key already.
func nobody(_ context.Context, key string) (int, error) { panic("called for " + key) }

func wantLoaded(t testing.TB, what string, got int, err error, want int) {
	t.Helper()
	if err != nil || got != want {
		t.Errorf("%s: got %v, %v, want %v", what, got, err, want)
	}
}

func wantError(t testing.TB, what string, got int, err, want error) {
	t.Helper()
	if !errors.Is(err, want) || got != 0 {
		t.Errorf("%s: got %v, %v, want %v", what, got, err, want)
	}
}

// Weak point: no single flight, concurrent misses all run the factory, and losers
// return their own value instead of the stored one.
func TestConcurrentMissesLoadOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCache(t, lru.Options[string, int]{})
		l := loader{after: time.Second}
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				v, err := c.GetOrLoad(t.Context(), "a", l.load)
				wantLoaded(t, "GetOrLoad", v, err, 1)
			})
		}
		all.Wait()
		wantEqual(t, "calls", l.calls.Load(), 1)
		wantValue(t, c, "a", 1)
		v, err := c.GetOrLoad(t.Context(), "a", l.load)
		wantLoaded(t, "GetOrLoad of what is there", v, err, 1)
		s := c.Stats()
		wantEqual(t, "misses", s.Misses, 100)
		wantEqual(t, "hits", s.Hits, 2)
		wantEqual(t, "loads", s.Loads, 1)
		wantEqual(t, "load failures", s.LoadFailures, 0)
	})
}

func TestDifferentKeysLoadSideBySide(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCache(t, lru.Options[string, int]{})
		l := loader{after: time.Second}
		begun := time.Now()
		var all sync.WaitGroup
		for i := range 100 {
			all.Go(func() {
				_, err := c.GetOrLoad(t.Context(), fmt.Sprint(i), l.load)
				wantEqual(t, "error", err, nil)
			})
		}
		all.Wait()
		wantEqual(t, "took", time.Since(begun), time.Second)
		wantEqual(t, "calls", l.calls.Load(), 100)
	})
}

// Weak point: GetOrAdd serves and revives what has expired.
func TestGetOrLoadDoesNotServeWhatHasExpired(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var j journal
		c := newCache(t, lru.Options[string, int]{TTL: time.Minute, OnRemoved: j.add})
		var l loader
		for want := range 3 {
			v, err := c.GetOrLoad(t.Context(), "a", l.load)
			wantLoaded(t, "when expired", v, err, want+1)
			time.Sleep(time.Minute - 1)
			v, err = c.GetOrLoad(t.Context(), "a", l.load)
			wantLoaded(t, "just before", v, err, want+1)
			time.Sleep(time.Minute)
		}
		j.want(t, "a=1 expired", "a=2 expired")
	})
}

func TestTimeBeginsWhenTheLoadHasEnded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCache(t, lru.Options[string, int]{TTL: time.Minute, MaxAge: time.Minute})
		l := loader{after: time.Hour}
		_, err := c.GetOrLoad(t.Context(), "a", l.load)
		wantEqual(t, "error", err, nil)
		time.Sleep(time.Minute - 1)
		wantValue(t, c, "a", 1)
		time.Sleep(time.Nanosecond)
		wantNone(t, c, "a")
	})
}

func TestGetOrLoadFor(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCache(t, lru.Options[string, int]{TTL: time.Minute})
		var l loader
		_, err := c.GetOrLoadFor(t.Context(), "second", time.Second, l.load)
		wantEqual(t, "error", err, nil)
		_, err = c.GetOrLoadFor(t.Context(), "forever", -1, l.load)
		wantEqual(t, "error", err, nil)
		time.Sleep(time.Second)
		wantNone(t, c, "second")
		time.Sleep(time.Hour)
		wantValue(t, c, "forever", 2)
	})
}

// The load has the values of the first caller's context, but neither its deadline
// nor its cancellation.
func TestLoadIsDetachedFromItsFirstCaller(t *testing.T) {
	bubble(t, func(t *testing.T) {
		type key struct{}
		c := newCache(t, lru.Options[string, int]{})
		first, cancel := context.WithDeadlineCause(context.WithValue(t.Context(), key{}, "first"), time.Now().Add(time.Second), errOnPurpose)
		defer cancel()
		load := func(ctx context.Context, _ string) (int, error) {
			if _, ok := ctx.Deadline(); ok || ctx.Value(key{}) != "first" {
				t.Errorf("context of the load: %v", ctx)
			}
			time.Sleep(time.Minute)
			return 1, ctx.Err()
		}
		var all sync.WaitGroup
		all.Go(func() {
			begun := time.Now()
			v, err := c.GetOrLoad(first, "a", load)
			wantError(t, "the first", v, err, errOnPurpose)
			wantEqual(t, "the first waited", time.Since(begun), time.Second)
		})
		synctest.Wait()
		all.Go(func() {
			v, err := c.GetOrLoad(t.Context(), "a", load)
			wantLoaded(t, "the second", v, err, 1)
		})
		all.Wait()
		wantValue(t, c, "a", 1)
	})
}

func TestLoadIsCancelledWhenNobodyWaits(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCache(t, lru.Options[string, int]{TTL: -1})
		causes := make(chan error, 1)
		abandoned := func(ctx context.Context, _ string) (int, error) {
			<-ctx.Done()
			time.Sleep(time.Hour) // takes its time
			causes <- context.Cause(ctx)
			return 1, nil
		}
		var all sync.WaitGroup
		errs := []error{errors.New("a"), errors.New("b"), errors.New("c")}
		for i, want := range errs {
			ctx, cancel := context.WithTimeoutCause(t.Context(), time.Duration(i+1)*time.Second, want)
			defer cancel()
			all.Go(func() {
				v, err := c.GetOrLoad(ctx, "a", abandoned)
				wantError(t, "who left", v, err, want)
			})
		}
		all.Wait()
		var l loader
		l.calls.Store(7)
		v, err := c.GetOrLoad(t.Context(), "a", l.load) // does not join what was cancelled
		wantLoaded(t, "who came then", v, err, 8)
		wantEqual(t, "cause: the last one's", <-causes, errs[2])
		synctest.Wait()
		wantValue(t, c, "a", 8) // not 1
		wantEqual(t, "loads", c.Stats().Loads, 2)
	})
}

func TestGetOrLoadWhenTheContextHasEnded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCache(t, lru.Options[string, int]{})
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errOnPurpose)
		var l loader
		v, err := c.GetOrLoad(ctx, "a", l.load)
		wantError(t, "a miss", v, err, errOnPurpose)
		wantEqual(t, "calls", l.calls.Load(), 0)
		c.Set("a", 5)
		v, err = c.GetOrLoad(ctx, "a", l.load)
		wantLoaded(t, "a hit", v, err, 5)
	})
}

// Factory failure propagates, nothing is stored.
func TestFailedLoadStoresNothing(t *testing.T) {
	for name, fail := range map[string]func(context.Context, string) (int, error){
		"error": func(context.Context, string) (int, error) { time.Sleep(time.Second); return 9, errOnPurpose },
		"panic": func(context.Context, string) (int, error) { time.Sleep(time.Second); panic(errOnPurpose) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				c := newCache(t, lru.Options[string, int]{})
				var all sync.WaitGroup
				for range 10 {
					all.Go(func() {
						v, err := c.GetOrLoad(t.Context(), "a", fail)
						wantError(t, "GetOrLoad", v, err, errOnPurpose)
						var p *core.PanicError
						if errors.As(err, &p) != (name == "panic") {
							t.Errorf("got %T", err)
						}
						if p != nil && !strings.Contains(string(p.Stack), "load_test.go") {
							t.Errorf("the stack does not show where: %s", p.Stack)
						}
					})
				}
				all.Wait()
				wantNone(t, c, "a")
				wantEqual(t, "loads", c.Stats().Loads, 1)
				wantEqual(t, "load failures", c.Stats().LoadFailures, 1)
				var l loader
				v, err := c.GetOrLoad(t.Context(), "a", l.load)
				wantLoaded(t, "the next load", v, err, 1)
			})
		})
	}
}

func TestLoadThatEndsItsGoroutine(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCache(t, lru.Options[string, int]{})
		v, err := c.GetOrLoad(t.Context(), "a", func(context.Context, string) (int, error) {
			runtime.Goexit()
			return 1, nil
		})
		var p *core.PanicError
		if !errors.As(err, &p) || p.Value != nil || v != 0 {
			t.Errorf("got %v, %v, want a PanicError without a value", v, err)
		}
		wantNone(t, c, "a")
	})
}

// What was set or invalidated while a load ran is not overwritten by its result,
// which is older. Who waits for it gets it all the same; who comes later does not.
func TestResultOfAnOvertakenLoadIsNotStored(t *testing.T) {
	for name, overtake := range map[string]func(c *lru.LRU[string, int]){
		"Set":        func(c *lru.LRU[string, int]) { c.Set("a", 100) },
		"Invalidate": func(c *lru.LRU[string, int]) { c.Invalidate("a") },
		"Clear":      func(c *lru.LRU[string, int]) { c.Clear() },
		"Set and Invalidate": func(c *lru.LRU[string, int]) {
			c.Set("a", 100)
			c.Invalidate("a")
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				c := newCache(t, lru.Options[string, int]{})
				l := loader{after: time.Second}
				var all sync.WaitGroup
				all.Go(func() {
					v, err := c.GetOrLoad(t.Context(), "a", l.load)
					wantLoaded(t, "who waited before", v, err, 1)
				})
				synctest.Wait()
				overtake(c)
				want := 2
				if name == "Set" {
					want = 100
				}
				time.Sleep(time.Second / 2)
				all.Go(func() {
					v, err := c.GetOrLoad(t.Context(), "a", l.load)
					wantLoaded(t, "who came after", v, err, want)
				})
				all.Wait()
				wantValue(t, c, "a", want)
			})
		})
	}
}

// An overtaken load is cancelled as well when nobody waits for it, and what replaced
// it is not.
func TestOvertakenLoadIsCancelledAlone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCache(t, lru.Options[string, int]{})
		untilCancelled := func(ctx context.Context, _ string) (int, error) {
			<-ctx.Done()
			return 0, context.Cause(ctx)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		var all sync.WaitGroup
		all.Go(func() {
			v, err := c.GetOrLoad(ctx, "a", untilCancelled)
			wantError(t, "the old load", v, err, errOnPurpose)
		})
		synctest.Wait()
		c.Invalidate("a")
		l := loader{after: time.Second}
		all.Go(func() {
			v, err := c.GetOrLoad(t.Context(), "a", l.load)
			wantLoaded(t, "the new load", v, err, 1)
		})
		synctest.Wait()
		cancel(errOnPurpose)
		all.Wait()
		wantValue(t, c, "a", 1)
	})
}

func TestLoadThatAsksForItsOwnKey(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCache(t, lru.Options[string, int]{})
		var self func(ctx context.Context, key string) (int, error)
		self = func(ctx context.Context, key string) (int, error) { return c.GetOrLoad(ctx, key, self) }
		v, err := c.GetOrLoad(t.Context(), "a", self)
		wantError(t, "GetOrLoad", v, err, core.ErrWouldDeadlock)

		// It may store it, though.
		v, err = c.GetOrLoad(t.Context(), "a", func(ctx context.Context, key string) (int, error) {
			c.Set(key, 5)
			return c.GetOrLoad(ctx, key, self)
		})
		wantLoaded(t, "after Set", v, err, 5)
	})
}

func TestLoadThatLoadsOtherKeys(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCache(t, lru.Options[int, int]{})
		var fibonacci func(ctx context.Context, n int) (int, error)
		fibonacci = func(ctx context.Context, n int) (int, error) {
			if n < 2 {
				return n, nil
			}
			var sum atomic.Int64
			var both sync.WaitGroup
			for _, k := range []int{n - 1, n - 2} {
				both.Go(func() {
					v, err := c.GetOrLoad(ctx, k, fibonacci)
					wantEqual(t, "error", err, nil)
					sum.Add(int64(v))
				})
			}
			both.Wait()
			return int(sum.Load()), nil
		}
		v, err := c.GetOrLoad(t.Context(), 40, fibonacci)
		wantLoaded(t, "fibonacci(40)", v, err, 102334155)
		wantEqual(t, "loads", c.Stats().Loads, 41)
	})
}

// Loads that wait for each other, begun by different callers.
func TestLoadsThatWaitInACircle(t *testing.T) {
	bubble(t, func(t *testing.T) {
		numbers := newCache(t, lru.Options[int, int]{})
		texts := newCache(t, lru.Options[string, int]{})
		const n = 6
		var loadText func(ctx context.Context, key string) (int, error)
		loadNumber := func(ctx context.Context, key int) (int, error) {
			time.Sleep(time.Second)
			return texts.GetOrLoad(ctx, fmt.Sprint(key), loadText)
		}
		loadText = func(ctx context.Context, key string) (int, error) {
			time.Sleep(time.Second)
			var number int
			fmt.Sscan(key, &number)
			return numbers.GetOrLoad(ctx, (number+1)%n, loadNumber)
		}
		var all sync.WaitGroup
		for i := range n {
			all.Go(func() {
				v, err := numbers.GetOrLoad(t.Context(), i, loadNumber)
				wantError(t, "GetOrLoad", v, err, core.ErrWouldDeadlock)
			})
		}
		all.Wait()
		wantEqual(t, "stored", numbers.Len()+texts.Len(), 0)
	})
}

// Who gave up waiting does not wait.
func TestLoadThatGaveUpWaiting(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCache(t, lru.Options[string, int]{})
		var all sync.WaitGroup
		all.Go(func() {
			v, err := c.GetOrLoad(t.Context(), "slow", func(ctx context.Context, _ string) (int, error) {
				time.Sleep(time.Minute)
				return c.GetOrLoad(ctx, "impatient", nobody)
			})
			wantLoaded(t, "slow", v, err, 1)
		})
		synctest.Wait()
		all.Go(func() {
			v, err := c.GetOrLoad(t.Context(), "impatient", func(ctx context.Context, _ string) (int, error) {
				short, cancel := context.WithTimeout(ctx, time.Second)
				defer cancel()
				v, err := c.GetOrLoad(short, "slow", nobody)
				wantError(t, "slow, within a second", v, err, context.DeadlineExceeded)
				time.Sleep(time.Hour)
				return 1, nil
			})
			wantLoaded(t, "impatient", v, err, 1)
		})
		all.Wait()
	})
}

// The context of a load that has ended is nobody's any more.
func TestContextOfALoadThatHasEnded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCache(t, lru.Options[string, int]{})
		var leaked context.Context
		_, err := c.GetOrLoad(t.Context(), "a", func(ctx context.Context, _ string) (int, error) {
			leaked = context.WithoutCancel(ctx)
			return 1, nil
		})
		wantEqual(t, "error", err, nil)
		if ctx := leaked; ctx.Err() != nil {
			t.Errorf("%v", ctx.Err())
		}
		c.Invalidate("a")
		l := loader{after: time.Second}
		v, err := c.GetOrLoad(leaked, "a", l.load)
		wantLoaded(t, "GetOrLoad", v, err, 1)
	})
}

func TestContextOfALoadIsReleased(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCache(t, lru.Options[string, int]{})
		var ctx context.Context
		_, err := c.GetOrLoad(t.Context(), "a", func(own context.Context, _ string) (int, error) {
			ctx = own
			return 1, nil
		})
		wantEqual(t, "error", err, nil)
		wantEqual(t, "context after the load", ctx.Err(), context.Canceled)
	})
}

// What a load pushes out has been told of when GetOrLoad returns.
func TestOnRemovedBeforeGetOrLoadReturns(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var j journal
		sink := core.NewSink(core.SinkOptions{})
		w := coretest.Watch(t, sink, "cache.*")
		c := newCache(t, lru.Options[string, int]{Capacity: 1, OnRemoved: j.add, Sink: sink})
		var l loader
		for _, key := range []string{"a", "b", "b"} {
			_, err := c.GetOrLoad(t.Context(), key, l.load)
			wantEqual(t, "error", err, nil)
		}
		j.want(t, "a=1 evicted")
		got := w.ExpectExactly(lru.SignalMiss, lru.SignalMiss, lru.SignalEvict, lru.SignalHit)
		wantEqual(t, "key evicted", got[2].Key, "a")
	})
}

// A handler that ends the goroutine of a caller ends that caller only.
func TestHandlerThatEndsAGoroutine(t *testing.T) {
	bubble(t, func(t *testing.T) {
		sink := core.NewSink(core.SinkOptions{})
		c := newCache(t, lru.Options[string, int]{Sink: sink})
		var once sync.Once
		sink.Subscribe(lru.SignalMiss, func(core.Signal) { once.Do(runtime.Goexit) })
		l := loader{after: time.Second}
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				v, err := c.GetOrLoad(t.Context(), "a", l.load)
				wantLoaded(t, "GetOrLoad", v, err, 1)
			})
		}
		all.Wait()
		synctest.Wait()
		wantValue(t, c, "a", 1)
	})
}

func TestGetOrLoadNeedsAFunction(t *testing.T) {
	c := newCache(t, lru.Options[string, int]{})
	defer func() { wantEqual(t, "panic", recover(), any("lru: GetOrLoad needs a function")) }()
	_, _ = c.GetOrLoad(t.Context(), "a", nil)
}

// Callers that come, leave, set and invalidate at random: nobody hangs, everybody
// gets the cause of the own context or a value that was loaded or set, and nothing
// is left under way.
func TestManyCallers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCache(t, lru.Options[int, int]{Capacity: 8, TTL: 20 * time.Millisecond})
		rounds := 2000
		if testing.Short() {
			rounds = 300
		}
		load := func(ctx context.Context, key int) (int, error) {
			select {
			case <-time.After(time.Duration(key) * time.Millisecond):
			case <-ctx.Done():
				return 0, context.Cause(ctx)
			}
			switch key % 5 {
			case 3:
				return 0, errOnPurpose
			case 4:
				panic(errOnPurpose)
			}
			return key, nil
		}
		var all sync.WaitGroup
		for g := range 8 {
			all.Go(func() {
				for i := range rounds {
					key := (i*13 + g*7) % 16
					switch (i + g) % 9 {
					case 7:
						c.Set(key, key)
					case 8:
						c.Invalidate(key)
					default:
						ctx, cancel := context.WithTimeoutCause(t.Context(), time.Duration(i%11)*time.Millisecond, context.DeadlineExceeded)
						v, err := c.GetOrLoad(ctx, key, load)
						cancel()
						if err == nil && v != key || err != nil && !errors.Is(err, errOnPurpose) && !errors.Is(err, context.DeadlineExceeded) {
							t.Errorf("GetOrLoad(%d): %v, %v", key, v, err)
						}
					}
				}
			})
		}
		all.Wait()
	})
}

// A key that is not equal to itself is loaded for each caller, and not stored.
func TestLoadOfNaN(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCache(t, lru.Options[float64, int]{})
		for range 2 {
			v, err := c.GetOrLoad(t.Context(), math.NaN(), func(context.Context, float64) (int, error) { return 1, nil })
			wantLoaded(t, "NaN", v, err, 1)
		}
		wantEqual(t, "loads", c.Stats().Loads, 2)
		wantEqual(t, "Len", c.Len(), 0)
	})
}
