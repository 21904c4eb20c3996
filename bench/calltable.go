package bench

import (
	"slices"
	"sync/atomic"
)

// callTable only dispatches, like kelindar/event. An event has a number instead of a
// name, and a binary search in an immutable table finds its subscribers. It calls them
// directly; kelindar/event has a queue and a goroutine for each subscriber. It has no
// window, no patterns, no cancellation and no handling of panics. It shows the cost of
// the call alone.
type callTable struct{ table atomic.Pointer[table] }

type table struct {
	ids  []uint32
	subs [][]func(event)
}

type event struct {
	id   uint32
	name string
}

func newCallTable() *callTable {
	t := new(callTable)
	t.table.Store(new(table))
	return t
}

// subscribe is not safe for concurrent use.
func (t *callTable) subscribe(id uint32, fn func(event)) {
	old := t.table.Load()
	to := &table{slices.Clone(old.ids), slices.Clone(old.subs)}
	i, found := slices.BinarySearch(to.ids, id)
	if found {
		to.subs[i] = append(slices.Clone(to.subs[i]), fn)
	} else {
		to.ids = slices.Insert(to.ids, i, id)
		to.subs = slices.Insert(to.subs, i, []func(event){fn})
	}
	t.table.Store(to)
}

func (t *callTable) publish(e event) {
	to := t.table.Load()
	if i, found := slices.BinarySearch(to.ids, e.id); found {
		for _, fn := range to.subs[i] {
			fn(e)
		}
	}
}
