package durable

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ephemeralgo/ephemeral/core/inspect"
)

// Inspect returns the queue, with the items of all processes, for a status page and for scripts. Items is like
// [Queue.List]. Again is like [Queue.Again], and Discard like [Queue.Cancel], but for items in
// state Dead or Halted only: they change no other items. If a discarded item was Halted, the next item
// of its key can run.
func (q *Queue[T]) Inspect() Inspection { return stored[T]{q} }

// stored is a queue as an Inspection. It inherits other methods from the queue.
type stored[T any] struct{ *Queue[T] }

func (q stored[T]) Status(ctx context.Context) (inspect.QueueStatus, error) {
	s, err := q.Queue.Stats(ctx)
	if err != nil {
		return inspect.QueueStatus{}, err
	}
	return inspect.QueueStatus{Oldest: s.Oldest, Nodes: s.Nodes, Paused: s.Paused, Counts: []inspect.StateCount{
		{State: "blocked", Items: s.Blocked}, {State: "ready", Items: s.Ready}, {State: "delayed", Items: s.Delayed},
		{State: "running", Items: s.Running}, {State: "retry", Items: s.Retry}, {State: "halted", Items: s.Halted},
		{State: "done", Items: s.Done}, {State: "dead", Items: s.Dead}, {State: "cancelled", Items: s.Cancelled},
	}}, nil
}

func (q stored[T]) Items(ctx context.Context, match inspect.ItemQuery) (page inspect.ItemPage, err error) {
	query := Query{Key: match.Key, Lane: match.Lane, Class: match.Class, Err: match.Err, MinAge: match.MinAge, MaxAge: match.MaxAge, After: match.After, Limit: match.Limit}
	for _, name := range strings.FieldsFunc(match.State, func(r rune) bool { return r == '|' || r == ',' }) {
		n := slices.Index(stateNames, name)
		if query.Delayed = name == "delayed"; n < 0 && !(query.Delayed && match.State == name) {
			return page, fmt.Errorf("durable: queue %q: State is %q, but must be delayed, or some of %s", q.opts.Name, match.State, strings.Join(stateNames, ", "))
		}
		query.State |= 1 << max(0, n)
	}
	if query.Delayed {
		query.State = Ready | Retry
	}
	got, err := q.List(ctx, query)
	for _, i := range got.Items {
		page.Items = append(page.Items, inspect.StoredItem{ID: int64(i.ID), Key: i.Key, Lane: i.Lane, Class: i.Class, State: i.State.String(), Attempts: i.Attempts,
			Enqueued: i.Enqueued, RunAt: i.RunAt, Started: i.Started, Ended: i.Ended, Node: i.Node, Err: i.Err, Note: i.Note})
	}
	page.Next = got.Next
	return page, err
}

func (q stored[T]) Again(ctx context.Context, id int64) (bool, error) {
	changed, err := q.store.Again(ctx, q.opts.Name, []ItemID{ItemID(id)}, Dead|Halted)
	q.wake(true)
	return len(changed) > 0, q.fail("try again", err)
}

func (q stored[T]) Discard(ctx context.Context, id int64) (bool, error) {
	states, err := q.cancel(ctx, []ItemID{ItemID(id)}, Dead|Halted, "discarded")
	return err == nil && states[0] != 0, q.fail("discard", err)
}
