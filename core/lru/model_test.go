package lru_test

import (
	"context"
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/ephemeralgo/ephemeral/core/internal/long"
	"github.com/ephemeralgo/ephemeral/core/lru"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// model is a cache in its simplest form. It does not decide evictions: the cache tells it.
type model struct {
	opts    lru.Options[int, int] // with everything set
	entries map[int]*modelEntry

	removals map[lru.Reason]uint64
}

type modelEntry struct {
	value   int
	ttl     time.Duration // after an access
	most    time.Duration // in all
	count   int
	stored  time.Time
	expires time.Time
}

func (m *model) live(key int) *modelEntry {
	if e := m.entries[key]; e != nil && time.Now().Before(e.expires) {
		return e
	}
	return nil
}

func (m *model) hot(e *modelEntry) bool { return e.count >= m.opts.HotAfter }

// prolong extends the life of an entry as an access does.
func (m *model) prolong(e *modelEntry) {
	life := e.ttl
	if m.hot(e) {
		life = max(life, m.opts.HotTTL)
	}
	to := time.Now().Add(life)
	if last := e.stored.Add(e.most); to.After(last) {
		to = last
	}
	if to.After(e.expires) {
		e.expires = to
	}
}

func (m *model) get(key int) (*modelEntry, bool) {
	e := m.live(key)
	if e == nil {
		return nil, false
	}
	e.count = min(e.count+1, 2*m.opts.HotAfter)
	m.prolong(e)
	return e, true
}

func (m *model) set(key, value int, ttl time.Duration) {
	switch {
	case ttl == 0:
		ttl = m.opts.TTL
	case ttl < 0:
		ttl = 100_000 * time.Hour
	}
	m.put(key, &modelEntry{value: value, ttl: ttl, most: m.opts.MaxAge})
}

func (m *model) setWithLife(key, value int, life time.Duration) {
	switch {
	case life == 0:
		m.set(key, value, 0)
		return
	case life < 0:
		life = 100_000 * time.Hour
	}
	m.put(key, &modelEntry{value: value, ttl: life, most: life})
}

func (m *model) put(key int, e *modelEntry) {
	e.count, e.stored = 1, time.Now()
	if old := m.live(key); old != nil {
		e.count = old.count
		m.removals[lru.ReasonReplaced]--
	}
	m.prolong(e)
	m.entries[key] = e
}

// Random steps in fake time, with and without eviction: the cache does
// the same as the model, its signals are right, and so are the reasons of
// removals.
func TestAgainstModel(t *testing.T) {
	for name, run := range map[string]struct {
		keys int
		opts lru.Options[int, int]
	}{
		"room for all, one shard": {100, lru.Options[int, int]{Capacity: 100, HotTTL: 3 * time.Minute, MaxAge: 10 * time.Minute}},
		"room for all, 4 shards":  {500, lru.Options[int, int]{Capacity: 4096, HotTTL: 3 * time.Minute, MaxAge: 10 * time.Minute}},
		"eviction":                {60, lru.Options[int, int]{Capacity: 24, HotTTL: 1, MaxAge: 100 * time.Hour}},
		"a place for one":         {5, lru.Options[int, int]{Capacity: 1, HotTTL: 1, MaxAge: 100 * time.Hour}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T) { againstModel(t, run.keys, run.opts, long.Often(250_000, 10_000)) })
		})
	}
}

func againstModel(t *testing.T, keys int, opts lru.Options[int, int], steps int) {
	opts.TTL, opts.HotAfter = time.Minute, 4
	m := model{opts, map[int]*modelEntry{}, map[lru.Reason]uint64{}}
	r := rand.New(rand.NewPCG(1, uint64(keys)))
	exact := keys <= opts.Capacity

	opts.Sink = signals.NewSink(signals.SinkOptions{Capacity: 1})
	var signal string
	opts.Sink.Subscribe("cache.hit, cache.hot, cache.miss", func(s signals.Signal) { signal = s.Name })
	evicted := false
	opts.OnRemoved = func(key, value int, reason lru.Reason) {
		e := m.entries[key]
		if e == nil || e.value != value {
			t.Fatalf("%d=%d was %v, but is not there", key, value, reason)
		}
		if live := m.live(key) != nil; live == (reason == lru.ReasonExpired) {
			t.Fatalf("%d=%d was %v, but live is %v", key, value, reason, live)
		}
		m.removals[reason]++
		if reason == lru.ReasonEvicted {
			evicted = true
			for other := range m.entries {
				if m.live(other) == nil {
					t.Fatalf("%d=%d was %v, but %d has expired", key, value, reason, other)
				}
			}
		}
		if reason != lru.ReasonReplaced {
			delete(m.entries, key)
		}
	}
	c := newCache(t, opts)
	check := func() {
		t.Helper()
		got, want, hot := maps.Collect(c.All()), map[int]int{}, 0
		for key := range m.entries {
			if e := m.live(key); e != nil {
				want[key] = e.value
				if m.hot(e) {
					hot++
				}
			}
		}
		if !maps.Equal(got, want) {
			t.Fatalf("All: got %v, want %v", got, want)
		}
		c.Sweep()
		s := c.Stats()
		if s.Size != len(want) || c.Len() != len(want) || exact && s.Hot != hot {
			t.Fatalf("%d entries, %d hot, in %v", len(want), hot, s)
		}
		told := map[lru.Reason]uint64{lru.ReasonEvicted: s.Evictions, lru.ReasonExpired: s.Expirations, lru.ReasonInvalidated: s.Invalidations}
		for reason, n := range m.removals { // 0 for ReasonReplaced: each Set of a present key has counted it down
			if n != told[reason] {
				t.Fatalf("OnRemoved was called for %d values that were %v, in %v", n, reason, s)
			}
		}
	}
	for i := range steps {
		key := min(r.IntN(keys), r.IntN(keys))
		value := i + 1
		life := []time.Duration{0, -1, 20 * time.Second, 20 * time.Minute}[r.IntN(4)]
		var fails error
		if r.IntN(4) == 0 {
			fails = errOnPurpose
		}
		load := func(context.Context, int) (int, error) { return value, fails }
		wantLoad := func(what string, got int, err error, known *modelEntry, set func()) {
			t.Helper()
			want, wantErr := value, fails
			switch {
			case known != nil:
				want, wantErr = known.value, nil
			case fails != nil:
				want = 0
			default:
				set()
			}
			if got != want || err != wantErr {
				t.Fatalf("step %d: %s(%d): got %v, %v, want %v, %v", i, what, key, got, err, want, wantErr)
			}
		}
		evicted = false
		switch op := r.IntN(100); {
		case op < 50:
			got, ok := c.Get(key)
			e, want := m.get(key)
			expect := lru.SignalMiss
			if ok != want || ok && got != e.value {
				t.Fatalf("step %d: Get(%d): got %v, %v, the model has %v", i, key, got, ok, e)
			}
			if ok {
				expect = lru.SignalHit
				if m.hot(e) {
					expect = lru.SignalHot
				}
			}
			if exact && signal != expect {
				t.Fatalf("step %d: Get(%d) raised %s, want %s", i, key, signal, expect)
			}
		case op < 55:
			signal = ""
			got, ok := c.Peek(key)
			e := m.live(key)
			if ok != (e != nil) || ok && got != e.value || signal != "" {
				t.Fatalf("step %d: Peek(%d): got %v, %v, the model has %v; raised %q", i, key, got, ok, e, signal)
			}
		case op < 65:
			c.Set(key, value)
			m.set(key, value, 0)
		case op < 70:
			c.SetWithLife(key, value, life)
			m.setWithLife(key, value, life)
		case op < 85:
			set := func() { m.set(key, value, 0) }
			switch r.IntN(2) {
			case 0:
				got, err := c.GetOrLoad(t.Context(), key, load)
				e, _ := m.get(key)
				wantLoad("GetOrLoad", got, err, e, set)
			case 1:
				got, err := c.Refresh(t.Context(), key, load)
				wantLoad("Refresh", got, err, nil, set)
			}
		case op < 90:
			e := m.live(key)
			if got, ok := c.Remove(key); ok != (e != nil) || ok && got != e.value {
				t.Fatalf("step %d: Remove(%d): got %v, %v, the model has %v", i, key, got, ok, e)
			}
		case op < 98:
			time.Sleep(time.Duration(r.Int64N(int64(3 * time.Second))))
			if r.IntN(50) == 0 {
				time.Sleep(time.Duration(r.Int64N(int64(4 * time.Minute))))
			}
		case r.IntN(200) == 0:
			c.Clear()
			clear(m.entries)
		case r.IntN(10) == 0:
			check()
		}
		if evicted && (exact || c.Len() != opts.Capacity) {
			t.Fatalf("step %d: something was evicted, and now there are %d entries", i, c.Len())
		}
		if c.Len() > opts.Capacity {
			t.Fatalf("step %d: %d entries", i, c.Len())
		}
	}
	check()
}
