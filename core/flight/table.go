package flight

import (
	"iter"
	"maps"
)

// A Table finds the load of a key that is under way. F is the cache's record of a load.
// The zero value is ready to use. It has no lock: guard it with the lock that guards the
// values of the cache. Then no load overwrites a newer value.
type Table[K comparable, F any] struct {
	flights map[K]*F
	peak    int // highest len(flights) since the map was made
}

// keptRoom is the number of loads for which an empty table keeps room; a map never shrinks.
const keptRoom = 64

// Get returns the load of a key, or nil.
func (t *Table[K, F]) Get(key K) *F { return t.flights[key] }

// Put makes f the load of its key. A key that is not equal to itself, such as NaN, is left
// out: it could never be found, nor deleted.
func (t *Table[K, F]) Put(key K, f *F) {
	if key != key {
		return
	}
	if t.flights == nil {
		t.flights = make(map[K]*F)
	}
	t.flights[key] = f
	t.peak = max(t.peak, len(t.flights))
}

// Delete takes the load of a key, if there is one, out of the table: other callers do not
// find it, and its result is not to be stored.
func (t *Table[K, F]) Delete(key K) {
	if len(t.flights) == 0 {
		return
	}
	delete(t.flights, key)
	if len(t.flights) == 0 && t.peak > keptRoom {
		*t = Table[K, F]{}
	}
}

// Remove is Delete if f is still the load of its key, and reports whether it is.
func (t *Table[K, F]) Remove(key K, f *F) bool {
	current := t.flights[key] == f
	if current {
		t.Delete(key)
	}
	return current
}

// Keys yields the keys that have a load. The body of the loop may delete them.
func (t *Table[K, F]) Keys() iter.Seq[K] { return maps.Keys(t.flights) }
