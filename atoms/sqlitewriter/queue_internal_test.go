package sqlitewriter

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Groups keep the order, have at most MaxGroup writes, and a function has one of its own.
func TestQueueGroups(t *testing.T) {
	w := &Writer{}
	q := queue{maxQueued: 6, maxGroup: 3, running: map[*item]struct{}{}}
	var items []*item
	push := func(kinds string) {
		for _, kind := range kinds {
			it := &item{by: w, ctx: context.Background(), done: make(chan struct{})}
			if kind == 't' {
				it.fn = func(context.Context, *Tx) error { return nil }
			}
			items = append(items, it)
			q.push(it)
		}
	}
	push("eeee" + "et" + "ee" + "e")
	assert.Len(t, q.pending, 6)
	assert.Len(t, q.waiting, 3)
	next := 0
	for _, want := range []int{3, 2, 1, 3} {
		group := q.take()
		assert.Equal(t, items[next:next+want], group)
		next += want
	}
	assert.Empty(t, q.take())
	assert.Len(t, q.of(w), len(items))

	for i, it := range items {
		assert.False(t, q.withdraw(it, errors.New("too late")))
		q.settle(it, []error{nil, errors.New("on purpose")}[i%2])
	}
	push("ete")
	for _, it := range items[9:] {
		assert.True(t, q.withdraw(it, context.Canceled))
	}
	assert.Equal(t, Stats{Enqueued: 12, Succeeded: 5, Failed: 4, Cancelled: 3}, q.stats)
	assert.Empty(t, q.of(w))
}

// After a fault everything is tried again that cannot be stored twice by that.
func TestSplitAfterFaults(t *testing.T) {
	a, b, c := &item{}, &item{stale: []string{"b"}}, &item{stale: []string{"c"}}
	for name, x := range map[string]struct {
		fault  fault
		failed []*item
		again  [][]*item
	}{
		"an item":  {fault{item: 1}, []*item{b}, [][]*item{{a, c}}},
		"a commit": {fault{item: -1}, nil, [][]*item{{a}, {b, c}}},
		"unknown":  {fault{item: -1, unknown: true}, []*item{a, b, c}, nil},
	} {
		failed, again := x.fault.split([]*item{a, b, c})
		assert.Equal(t, x.failed, failed, name)
		assert.Equal(t, x.again, again, name)
	}
}
