package lru_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/internal/long"
	"github.com/ephemeralgo/ephemeral/core/lru"
	"github.com/ephemeralgo/ephemeral/core/signals"
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

// neverCalled is for keys that another caller loads already.
func neverCalled(_ context.Context, key string) (int, error) { panic("called for " + key) }

func wantLoaded(t testing.TB, what string, got int, err error, want int) {
	t.Helper()
	coretest.Check(t, err == nil, "%s: got error %v, want none", what, err)
	coretest.Check(t, got == want, "%s: got %v, want %v", what, got, want)
}

func wantError(t testing.TB, what string, got int, err, want error) {
	t.Helper()
	coretest.Check(t, errors.Is(err, want) && got == 0, "%s: got %v, %v, want %v", what, got, err, want)
}

// Misses at the same time run one load, and all callers get the value that is stored.
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

func TestRefresh(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCache(t, lru.Options[string, int]{TTL: -1})
		c.Set("a", 10)
		l := loader{after: time.Second}
		var all sync.WaitGroup
		refresh := func(want int) {
			all.Go(func() {
				v, err := c.Refresh(t.Context(), "a", l.load)
				wantLoaded(t, "Refresh", v, err, want)
			})
			synctest.Wait()
		}
		refresh(1)
		refresh(1) // this refresh waits for the same load
		wantValue(t, c, "a", 10)
		all.Wait()
		wantValue(t, c, "a", 1)

		refresh(2)
		c.Set("a", 11) // is not overwritten
		all.Wait()
		wantValue(t, c, "a", 11)

		c.Remove("a")
		refresh(3)
		v, err := c.GetOrLoad(t.Context(), "a", neverCalled)
		wantLoaded(t, "GetOrLoad beside Refresh", v, err, 3)
		all.Wait()
		wantEqual(t, "misses", c.Stats().Misses, 1)
	})
}

// A load that fails, or panics, stores nothing. Package flight tests what its callers get.
func TestFailedLoadStoresNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCache(t, lru.Options[string, int]{})
		for key, load := range map[string]func(context.Context, string) (int, error){
			"fails":  func(context.Context, string) (int, error) { return 9, errOnPurpose },
			"panics": func(context.Context, string) (int, error) { panic(errOnPurpose) },
		} {
			v, err := c.GetOrLoad(t.Context(), key, load)
			wantError(t, key, v, err, errOnPurpose)
			wantNone(t, c, key)
		}
		wantEqual(t, "loads", c.Stats().Loads, 2)
		wantEqual(t, "load failures", c.Stats().LoadFailures, 2)
	})
}

// If a key was set or removed while a load ran, the older result of the load is not stored.
// Callers that wait for the load get the result; later callers do not.
func TestResultOfAnOvertakenLoadIsNotStored(t *testing.T) {
	for name, overtake := range map[string]func(c *lru.LRU[string, int]){
		"Set":            func(c *lru.LRU[string, int]) { c.Set("a", 2) },
		"Remove":         func(c *lru.LRU[string, int]) { c.Remove("a") },
		"Clear":          func(c *lru.LRU[string, int]) { c.Clear() },
		"Set and Remove": func(c *lru.LRU[string, int]) { c.Set("a", 100); c.Remove("a") },
	} {
		bubble(t, func(t *testing.T) {
			c := newCache(t, lru.Options[string, int]{})
			l := loader{after: time.Second}
			var all sync.WaitGroup
			all.Go(func() {
				v, err := c.GetOrLoad(t.Context(), "a", l.load)
				wantLoaded(t, name+": a caller that waited before", v, err, 1)
			})
			synctest.Wait()
			overtake(c)
			time.Sleep(time.Second / 2)
			v, err := c.GetOrLoad(t.Context(), "a", l.load)
			wantLoaded(t, name+": a caller that came after", v, err, 2)
			all.Wait()
			wantValue(t, c, "a", 2)
		})
	}
}

// A load may store its own key, and then read it. It cannot wait for itself.
func TestLoadThatAsksForItsOwnKey(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCache(t, lru.Options[string, int]{})
		v, err := c.GetOrLoad(t.Context(), "a", func(ctx context.Context, key string) (int, error) {
			v, err := c.Refresh(ctx, key, neverCalled)
			wantError(t, "Refresh", v, err, core.ErrWouldDeadlock)
			v, err = c.GetOrLoad(ctx, key, neverCalled)
			wantError(t, "GetOrLoad", v, err, core.ErrWouldDeadlock)
			c.Set(key, 5)
			return c.GetOrLoad(ctx, key, neverCalled)
		})
		wantLoaded(t, "after Set", v, err, 5)
	})
}

// When GetOrLoad returns, OnRemoved was called for the entry that made room, and its signal
// was raised.
func TestOnRemovedBeforeGetOrLoadReturns(t *testing.T) {
	bubble(t, func(t *testing.T) {
		removed := ""
		sink := signals.NewSink(signals.SinkOptions{})
		w := coretest.Watch(t, sink, "cache.*")
		c := newCache(t, lru.Options[string, int]{Capacity: 1, Sink: sink, OnRemoved: func(key string, value int, reason lru.Reason) {
			removed += fmt.Sprintf("%s=%d %v", key, value, reason)
		}})
		var l loader
		for _, key := range []string{"a", "b", "b"} {
			_, err := c.GetOrLoad(t.Context(), key, l.load)
			wantEqual(t, "error", err, nil)
		}
		wantEqual(t, "removed", removed, "a=1 evicted")
		got := w.ExpectExactly(lru.SignalMiss, lru.SignalMiss, lru.SignalEvicted, lru.SignalHit)
		wantEqual(t, "key evicted", got[2].Key, "a")
	})
}

func TestGetOrLoadNeedsAFunction(t *testing.T) {
	c := newCache(t, lru.Options[string, int]{})
	c.Set("a", 1)
	for name, call := range map[string]func(){
		"GetOrLoad": func() { _, _ = c.GetOrLoad(t.Context(), "a", nil) },
		"Refresh":   func() { _, _ = c.Refresh(t.Context(), "a", nil) },
	} {
		func() {
			defer func() { wantEqual(t, name, recover(), any("lru: "+name+" needs a function")) }()
			call()
		}()
	}
}

// Callers come, leave, refresh, set and remove at random. Each of them gets the cause of its
// own context or a value that was loaded or set, and no load is left over.
func TestManyCallers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCache(t, lru.Options[int, int]{Capacity: 8, TTL: 20 * time.Millisecond})
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
				for i := range long.Often(2000, 100) {
					key := (i*13 + g*7) % 16
					switch (i + g) % 9 {
					case 7:
						c.Set(key, key)
					case 8:
						c.Remove(key)
					default:
						ctx, cancel := context.WithTimeoutCause(t.Context(), time.Duration(i%11)*time.Millisecond, context.DeadlineExceeded)
						get := c.GetOrLoad
						if i%4 == 0 {
							get = c.Refresh
						}
						v, err := get(ctx, key, load)
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
