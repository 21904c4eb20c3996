package lru

import (
	"sync"
	"sync/atomic"
	"testing"
)

// Readers never miss an entry that is there, while the table grows from nothing,
// again and again, and others are linked in and out.
func TestReadersOfAGrowingTable(t *testing.T) {
	rounds := 3000
	if testing.Short() {
		rounds = 500
	}
	var (
		current atomic.Pointer[table[int, int]]
		done    atomic.Bool
		readers sync.WaitGroup
	)
	newTable := func() *table[int, int] {
		t := new(table[int, int])
		t.insert(&entry[int, int]{hash: 1, key: 1})
		return t
	}
	current.Store(newTable())
	for range 2 {
		readers.Go(func() {
			for !done.Load() {
				e, sure := current.Load().peek(1, 1)
				if e == nil && sure {
					t.Error("not found, and sure")
					return
				}
			}
		})
	}
	for range rounds {
		table := newTable()
		current.Store(table)
		for i := 2; i < 300; i++ {
			e := &entry[int, int]{hash: uint64(i % 64), key: i}
			table.insert(e)
			if i%4 == 0 {
				table.remove(e)
			}
		}
		if e := table.find(1, 1); e == nil || table.find(64, 64) != nil {
			t.Fatal("the table is wrong")
		}
	}
	done.Store(true)
	readers.Wait()
}
