package lru_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ephemeralgo/ephemeral/core/internal/long"
	"github.com/ephemeralgo/ephemeral/core/lru"
)

// call is a call of Get, Peek, Set or Remove for one key, and when it began and ended,
// by a clock that ticks at each of these.
type call struct {
	name       string
	value      int  // the value that was set, got or removed
	ok         bool // result of Get, Peek and Remove
	begin, end int64
}

func (c call) String() string {
	return fmt.Sprintf("[%d-%d] %s %d %v", c.begin, c.end, c.name, c.value, c.ok)
}

// linearizable reports whether the calls have a valid order: each call has its
// effect and its result at one instant between its begin and its end. It is the
// algorithm of Wing and Gong. The value 0 means none.
func linearizable(calls []call) bool {
	type state struct {
		done  uint32 // calls, one bit for each
		value int
	}
	seen := map[state]bool{}
	var search func(s state) bool
	search = func(s state) bool {
		if s.done == 1<<len(calls)-1 {
			return true
		}
		if seen[s] {
			return false
		}
		seen[s] = true
		first := int64(1<<63 - 1) // first end among the calls that are still to happen
		for i, c := range calls {
			if s.done&(1<<i) == 0 {
				first = min(first, c.end)
			}
		}
		for i, c := range calls {
			if s.done&(1<<i) != 0 || c.begin > first {
				continue
			}
			next, possible := s.value, true
			switch c.name {
			case "Get", "Peek":
				possible = c.ok == (s.value != 0) && c.value == s.value
			case "Set":
				next = c.value
			case "Remove":
				possible = c.ok == (s.value != 0) && c.value == s.value
				next = 0
			}
			if possible && search(state{s.done | 1<<i, next}) {
				return true
			}
		}
		return false
	}
	return search(state{})
}

// Every key behaves as if all calls happened one after the other, even while the table
// grows and other entries come and go.
func TestLinearizable(t *testing.T) {
	const goroutines, each = 3, 6
	for round := range long.Often(20_000, 300) {
		c := newCache(t, lru.Options[int, int]{Capacity: 1000})
		for i := range round % 20 { // the table grows sooner or later
			c.Set(-1-i, i)
		}
		var (
			clock     atomic.Int64
			all       sync.WaitGroup
			histories [goroutines][2][]call // by key
			ready     atomic.Int32
		)
		for g := range goroutines {
			r := rand.New(rand.NewPCG(uint64(round), uint64(g)))
			all.Go(func() {
				for ready.Add(1); ready.Load() < goroutines; {
					runtime.Gosched()
				}
				for i := range each {
					key := r.IntN(2)
					call := call{name: []string{"Get", "Peek", "Set", "Set", "Remove"}[r.IntN(5)], begin: clock.Add(1)}
					switch call.name {
					case "Get":
						call.value, call.ok = c.Get(key)
					case "Peek":
						call.value, call.ok = c.Peek(key)
					case "Set":
						call.value = 1 + g*each + i
						c.Set(key, call.value)
					case "Remove":
						call.value, call.ok = c.Remove(key)
					}
					call.end = clock.Add(1)
					histories[g][key] = append(histories[g][key], call)
					c.Set(100*(1+g)+i, i)
				}
			})
		}
		all.Wait()
		for key := range 2 {
			var calls []call
			for g := range goroutines {
				calls = append(calls, histories[g][key]...)
			}
			if !linearizable(calls) {
				slices.SortFunc(calls, func(a, b call) int { return int(a.begin - b.begin) })
				for _, c := range calls {
					t.Log(c)
				}
				t.Fatalf("round %d, key %d: no order explains these", round, key)
			}
		}
	}
}

// Readers without a lock always find a key that is always there. Meanwhile the table
// grows, other entries are linked and unlinked, and the entry itself is replaced.
func TestReadersFindWhatIsThere(t *testing.T) {
	for range long.Often(40, 1) {
		c := newCache(t, lru.Options[int, int]{Capacity: 20_000, TTL: -1})
		for key := range 4 {
			c.Set(key, 0)
		}
		var readers, writers sync.WaitGroup
		var done atomic.Bool
		for range 2 {
			readers.Go(func() {
				var last [4]int
				for i := 0; !done.Load(); i++ {
					key := i % 4
					value, ok := c.Get(key)
					if !ok || value < last[key] {
						t.Errorf("Get(%d): got %v, %v, after %d", key, value, ok, last[key])
						return
					}
					last[key] = value
				}
			})
		}
		writers.Go(func() {
			for i := range 8000 {
				c.Set(100+i, i)
				c.Set(i%4, i)
				if i%3 == 0 {
					c.Remove(100 + i/2)
				}
			}
		})
		writers.Wait()
		done.Store(true)
		readers.Wait()
	}
}
