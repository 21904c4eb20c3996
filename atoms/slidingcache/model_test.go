package slidingcache_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/slidingcache"
	"github.com/ephemeralgo/ephemeral/core/coretest"
)

// model is a cache without a capacity, in its simplest form. Loads take no time.
type model struct {
	opts    options
	world   map[string]outcome       // what loads find
	lives   map[string]time.Duration // lives that loads return
	entries map[string]*entry

	hits, absences, misses, stale, refreshes, failures, loads, invalidated uint64
}

// outcome is a value, or the reason why there is none.
type outcome struct {
	value int
	err   error
}

type entry struct {
	outcome
	stored, expires, refresh time.Time
	sliding, absolute        time.Duration
}

// peek returns the entry of a key that has not expired, or nil.
func (m *model) peek(key string) *entry {
	e := m.entries[key]
	if e == nil || !time.Now().Before(e.expires) {
		return nil
	}
	return e
}

// alive does the same as peek, as an access.
func (m *model) alive(key string) *entry {
	e := m.peek(key)
	if e != nil && e.err == nil {
		to := time.Now().Add(min(e.sliding, time.Until(e.stored.Add(e.absolute))))
		if to.After(e.expires) {
			e.expires = to
		}
	}
	return e
}

func (m *model) set(key string, value int, life time.Duration) {
	now := time.Now()
	sliding, absolute := m.opts.Sliding, m.opts.Absolute
	switch {
	case life < 0:
		sliding, absolute = time.Hour, time.Hour // steps take nanoseconds
	case life > 0:
		sliding, absolute = life, life
	}
	m.entries[key] = &entry{outcome{value: value}, now, now.Add(min(sliding, absolute)), now.Add(m.opts.RefreshAfter), sliding, absolute}
}

// load loads and stores a value, and reports whether the load has failed.
func (m *model) load(key string) (found outcome, failed bool) {
	m.loads++
	found = m.world[key]
	switch {
	case found.err == nil:
		m.set(key, found.value, m.lives[key])
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

func (m *model) remove(key string) (int, bool) {
	e := m.peek(key)
	delete(m.entries, key)
	if e == nil || e.err != nil {
		return 0, false
	}
	m.invalidated++
	return e.value, true
}

// Random steps in fake time: the cache does what the model does.
func TestAgainstModel(t *testing.T) {
	steps := 60_000
	if testing.Short() || coretest.Race {
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
				m := &model{opts: opts, world: map[string]outcome{}, lives: map[string]time.Duration{}, entries: map[string]*entry{}}
				c, err := slidingcache.NewWithLife(func(_ context.Context, key string) (int, time.Duration, error) {
					return m.world[key].value, m.lives[key], m.world[key].err
				}, opts)
				require.NoError(t, err)
				defer c.Close()
				for step := range steps {
					key := fmt.Sprint(r.IntN(4))
					what := fmt.Sprintf("step %d, key %s", step, key)
					switch n := r.IntN(100); {
					case n < 20:
						time.Sleep(time.Duration(r.IntN(12)))
					case n < 30:
						m.world[key] = []outcome{{step, nil}, {step, nil}, {0, errOnPurpose}, {0, slidingcache.ErrNotFound}}[r.IntN(4)]
						m.lives[key] = []time.Duration{0, 0, -1, 7, 33}[r.IntN(5)]
					case n < 35:
						c.Set(key, step)
						m.set(key, step, 0)
					case n < 40:
						value, ok := c.Remove(key)
						wantValue, wantOK := m.remove(key)
						require.Equal(t, []any{wantValue, wantOK}, []any{value, ok}, what)
					case n == 40:
						c.Clear()
						clear(m.entries)
					case n == 41:
						c.Sweep()
					case n < 45:
						value, ok := c.Peek(key)
						e := m.peek(key)
						require.Equal(t, e != nil && e.err == nil, ok, what)
						require.Equal(t, ok, c.Contains(key), what)
						if ok {
							require.Equal(t, e.value, value, what)
						}
					case n < 50:
						value, err := c.Refresh(t.Context(), key)
						found, _ := m.load(key)
						require.Equal(t, found, outcome{value, err}, what)
					case n < 55:
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
					Size: got.Size, Hot: got.Hot, Capacity: 1000, Expirations: got.Expirations, Loads: got.Loads,
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

func newRandom(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

// removed says whether Remove found a value.
func removed(_ int, ok bool) bool { return ok }
