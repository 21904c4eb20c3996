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

// What is tried again after a fault stores nothing twice, and comes to an end.
func TestModesAfterFaults(t *testing.T) {
	err := errors.New("on purpose")
	for _, c := range []struct {
		mode mode
		n    int
		fault
		want mode
	}{
		{modePlain, 2, fault{err: err}, modeOver}, // no transaction: busy, or no connection
		{modePlain, 1, fault{err: err, started: true}, modeOver},
		{modePlain, 2, fault{err: err, started: true}, modeGuarded},
		{modeGuarded, 2, fault{err: err, started: true}, modeAlone},
		{modePlain, 2, fault{err: err, started: true, commit: true}, modeOver}, // it may be stored
	} {
		assert.Equal(t, c.want, c.mode.after(c.n, c.fault), "%+v", c)
	}
}
