package slidingcache_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/slidingcache"
)

// model is what a cache does that never has to make room, as plainly as it can be
// said. Loads take no time.
type model struct {
	opts    options
	world   map[string]outcome // what loads find
	entries map[string]*entry

	hits, absences, misses, stale, refreshes, failures, loads, invalidated uint64
}

// outcome is a value, or why there is none.
type outcome struct {
	value int
	err   error
}

type entry struct {
	outcome
	stored, expires, refresh time.Time
}

// alive is the value of a key that has not expired, or nil.
func (m *model) alive(key string) *entry {
	e := m.entries[key]
	if e == nil || !time.Now().Before(e.expires) {
		return nil
	}
	if e.err == nil {
		e.expires = later(e.expires, earlier(time.Now().Add(m.opts.Sliding), e.stored.Add(m.opts.Absolute)))
	}
	return e
}

func (m *model) set(key string, value int) {
	now := time.Now()
	m.entries[key] = &entry{outcome{value: value}, now, now.Add(min(m.opts.Sliding, m.opts.Absolute)), now.Add(m.opts.RefreshAfter)}
}

// load loads and stores, and reports whether that has failed.
func (m *model) load(key string) (found outcome, failed bool) {
	m.loads++
	found = m.world[key]
	switch {
	case found.err == nil:
		m.set(key, found.value)
	case found.err != slidingcache.ErrNotFound:
		return found, true
	case m.opts.NegativeTTL > 0:
		m.entries[key] = &entry{outcome: found, expires: time.Now().Add(m.opts.NegativeTTL)}
	default:
		delete(m.entries, key)
	}
	return found, false
}

func (m *model) get(key string) outcome {
	old := m.entries[key]
	switch e := m.alive(key); {
	case e == nil:
	case e.err != nil:
		m.absences++
		return e.outcome
	default:
		m.hits++
		if m.opts.RefreshAfter > 0 && !time.Now().Before(e.refresh) {
			e.refresh = time.Now().Add(m.opts.RefreshAfter)
			m.refreshes++
			if _, failed := m.load(key); failed {
				m.failures++
			}
		}
		return e.outcome
	}
	m.misses++
	found, failed := m.load(key)
	if failed && old != nil && old.err == nil && time.Now().Before(old.expires.Add(m.opts.StaleOnError)) {
		m.stale++
		return old.outcome
	}
	return found
}

func (m *model) getIfPresent(key string) (int, bool) {
	if e := m.alive(key); e != nil && e.err == nil {
		m.hits++
		return e.value, true
	}
	m.misses++
	return 0, false
}

func (m *model) invalidate(key string) bool {
	e := m.alive(key)
	delete(m.entries, key)
	if e == nil || e.err != nil {
		return false
	}
	m.invalidated++
	return true
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// Random steps in fake time: the cache does what the model does.
func TestAgainstModel(t *testing.T) {
	steps := 60_000
	if testing.Short() || raceEnabled {
		steps = 4_000
	}
	for i, opts := range []options{
		{Sliding: 10, Absolute: 25},
		{Sliding: 10, Absolute: 25, NegativeTTL: 7},
		{Sliding: 10, Absolute: 25, NegativeTTL: 60},
		{Sliding: 10, Absolute: 25, RefreshAfter: 6},
		{Sliding: 10, Absolute: 25, StaleOnError: 8},
		{Sliding: 10, Absolute: 25, RefreshAfter: 6, StaleOnError: 8, NegativeTTL: 7},
		{Sliding: 30, Absolute: 20, RefreshAfter: 1, StaleOnError: 50, NegativeTTL: 40, SampleEvery: 2},
		{Sliding: 30, Absolute: 20, RefreshAfter: 5, NegativeTTL: 40},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRandom(uint64(i))
				m := &model{opts: opts, world: map[string]outcome{}, entries: map[string]*entry{}}
				c := newCache(t, func(_ context.Context, key string) (int, error) {
					return m.world[key].value, m.world[key].err
				}, opts)
				for step := range steps {
					key := fmt.Sprint(r.IntN(4))
					what := fmt.Sprintf("step %d, key %s", step, key)
					switch n := r.IntN(100); {
					case n < 20:
						time.Sleep(time.Duration(r.IntN(12)))
					case n < 30:
						m.world[key] = []outcome{{step, nil}, {step, nil}, {0, errOnPurpose}, {0, slidingcache.ErrNotFound}}[r.IntN(4)]
					case n < 35:
						c.Set(key, step)
						m.set(key, step)
					case n < 40:
						require.Equal(t, m.invalidate(key), c.Invalidate(key), what)
					case n == 40:
						c.Clear()
						clear(m.entries)
					case n == 41:
						c.Sweep()
					case n < 50:
						value, ok := c.GetIfPresent(key)
						wantValue, wantOK := m.getIfPresent(key)
						require.Equal(t, []any{wantValue, wantOK}, []any{value, ok}, what)
					default:
						value, err := c.Get(t.Context(), key)
						synctest.Wait() // for a refresh
						require.Equal(t, m.get(key), outcome{value, err}, what)
					}
				}
				got := c.Stats()
				want := slidingcache.Stats{
					Size: got.Size, Hot: got.Hot, MaxSize: 1000, Expirations: got.Expirations, Loads: got.Loads,
					Hits: m.hits, Absences: m.absences, Misses: m.misses, Stale: m.stale,
					Refreshes: m.refreshes, RefreshFailures: m.failures, Invalidations: m.invalidated,
				}
				require.Equal(t, want, got)
				require.Equal(t, m.loads, got.Loads.Enqueued)
				require.NotZero(t, got.Expirations)
			})
		})
	}
}
