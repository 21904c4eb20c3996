package durable

import (
	"context"

	"github.com/ephemeralgo/ephemeral/core/inspect"
)

// Inspect returns the queue, with the items of all processes, for a status page. DeadItems
// lists the items in state Dead or Halted. Again is like [Queue.Again], and Discard like
// [Queue.Cancel], but for dead items only: they change no other items. If a discarded item was
// Halted, the next item of its key can run. If two calls for one item come at the same moment,
// both may report true, and the second one counts.
func (q *Queue[T]) Inspect() inspect.StoredQueue { return stored[T]{q} }

// stored is a queue as an inspect.StoredQueue. It inherits other methods from the queue.
type stored[T any] struct{ *Queue[T] }

func (q stored[T]) Status(ctx context.Context) (inspect.QueueStatus, error) {
	s, err := q.Stats(ctx)
	if err != nil {
		return inspect.QueueStatus{}, err
	}
	return inspect.QueueStatus{Oldest: s.Oldest, Nodes: s.Nodes, Paused: s.Paused, Counts: []inspect.StateCount{
		{State: "blocked", Items: s.Blocked}, {State: "ready", Items: s.Ready}, {State: "delayed", Items: s.Delayed},
		{State: "running", Items: s.Running}, {State: "retry", Items: s.Retry}, {State: "halted", Items: s.Halted},
		{State: "done", Items: s.Done}, {State: "dead", Items: s.Dead}, {State: "cancelled", Items: s.Cancelled},
	}}, nil
}

func (q stored[T]) DeadItems(ctx context.Context, after int64, limit int) (items []inspect.DeadItem, err error) {
	if limit < 1 {
		return nil, nil
	}
	for i, err := range q.Items(ctx, Query{Dead: true, After: ItemID(after), Limit: limit}) {
		if err != nil {
			return nil, err
		}
		items = append(items, inspect.DeadItem{ID: int64(i.ID), Key: i.Key, Lane: i.Lane, State: i.State.String(), Attempts: i.Attempts, Ended: i.Ended, Err: i.Err})
	}
	return items, nil
}

func (q stored[T]) Again(ctx context.Context, id int64) (bool, error) {
	if dead, err := q.isDead(ctx, id); !dead {
		return false, err
	}
	changed, err := q.Queue.Again(ctx, ItemID(id))
	return changed > 0, err
}

func (q stored[T]) Discard(ctx context.Context, id int64) (bool, error) {
	if dead, err := q.isDead(ctx, id); !dead {
		return false, err
	}
	return q.Cancel(ctx, ItemID(id), "discarded")
}

func (q stored[T]) isDead(ctx context.Context, id int64) (bool, error) {
	items, err := q.DeadItems(ctx, id-1, 1)
	return len(items) > 0 && items[0].ID == id, err
}
