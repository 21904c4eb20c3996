package durable

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ephemeralgo/ephemeral/core/guard"
	"github.com/ephemeralgo/ephemeral/core/inspect"
)

// Inspect returns the queue, with the items of all processes, for a status page and for scripts. Items is like
// [Queue.List]. Again is like [Queue.Again], and Discard like [Queue.Cancel], but for items in
// state Dead or Halted only: they change no other items. If a discarded item was Halted, the next item
// of its key can run. AgainAll is like [Queue.AgainAll] for these two states and Cancelled, DiscardAll like
// [Queue.DiscardAll], and CancelAll like [Queue.CancelAll].
func (q *Queue[T]) Inspect() Inspection { return stored{q.queue} }

// stored is a queue as an Inspection.
type stored struct{ queue *queue }

func (q stored) Name() string { return q.queue.opts.Name }

func (q stored) Status(ctx context.Context) (inspect.QueueStatus, error) {
	s, err := q.queue.stats(ctx)
	if err != nil {
		return inspect.QueueStatus{}, err
	}
	var notes []string
	if s.OldestTransaction >= time.Minute {
		notes = append(notes, fmt.Sprintf("the oldest transaction on the server is %d minutes old: claims get slower until it ends", s.OldestTransaction/time.Minute))
	}
	for n, p := range s.Pauses {
		if notes = append(notes, p.String()); n == 9 && len(s.Pauses) > 10 {
			notes = append(notes, fmt.Sprintf("and %d more are paused", len(s.Pauses)-10))
			break
		}
	}
	return inspect.QueueStatus{Oldest: s.Oldest, Nodes: s.Nodes, Paused: s.Paused, Note: strings.Join(notes, "; "), Counts: []inspect.StateCount{
		{State: "blocked", Items: s.Blocked}, {State: "ready", Items: s.Ready}, {State: "delayed", Items: s.Delayed},
		{State: "running", Items: s.Running}, {State: "retry", Items: s.Retry}, {State: "halted", Items: s.Halted},
		{State: "done", Items: s.Done}, {State: "dead", Items: s.Dead}, {State: "cancelled", Items: s.Cancelled},
	}}, nil
}

func (q stored) Pause(ctx context.Context) error {
	return q.queue.pause(ctx, Pause{})
}

func (q stored) Resume(ctx context.Context) error { return q.queue.resume(ctx, Pause{}) }

func (q stored) Items(ctx context.Context, match inspect.ItemQuery) (page inspect.ItemPage, err error) {
	query, err := q.query(match)
	if err != nil {
		return page, err
	}
	got, err := q.queue.list(ctx, query)
	for _, i := range got.Items {
		page.Items = append(page.Items, q.stored(i))
	}
	page.Next = got.Next
	return page, err
}

// query is the Query of a query of a page.
func (q stored) query(match inspect.ItemQuery) (Query, error) {
	query := Query{Key: match.Key, Lane: match.Lane, Class: match.Class, Err: match.Err, MinAge: match.MinAge, MaxAge: match.MaxAge, After: match.After, Limit: match.Limit}
	switch match.State {
	case "":
	case "delayed":
		query.Delayed, query.State = true, Ready|Retry
	default:
		for name := range strings.SplitSeq(strings.ReplaceAll(match.State, ",", "|"), "|") {
			n := slices.Index(stateNames, name)
			if n < 0 {
				return query, fmt.Errorf("durable: queue %q: State is %q, but must be delayed, or some of %s", q.queue.opts.Name, match.State, strings.Join(stateNames, ", "))
			}
			query.State |= 1 << n
		}
	}
	return query, nil
}

func (q stored) stored(i Item) inspect.StoredItem {
	text := ""
	if q.queue.opts.Show != nil {
		if item, err := q.queue.decode(i); err == nil {
			text = q.queue.text(item)
		}
	}
	return inspect.StoredItem{Text: text, Metadata: i.Metadata, ID: int64(i.ID), Key: i.Key, Lane: i.Lane, Class: i.Class, State: i.State.String(), Attempts: i.Attempts,
		Enqueued: i.Enqueued, RunAt: i.RunAt, Started: i.Started, Ended: i.Ended, Node: i.Node, Err: i.Err, Note: i.Note}
}

func (q stored) Item(ctx context.Context, id int64) (d inspect.ItemDetail, ok bool, err error) {
	x, err := q.queue.explain(ctx, ItemID(id))
	if err != nil {
		if guard.Is(err, ErrUnknown) {
			err = nil
		}
		return d, false, err
	}
	d = inspect.ItemDetail{StoredItem: q.stored(x.Item), Why: x.String(), Steps: x.Flow.shown(x.Item)}
	for _, a := range x.Attempts {
		d.History = append(d.History, inspect.ItemAttempt{State: a.Kind.String(), Node: a.Node, Started: a.Started, Ended: a.Ended, Err: a.Err})
	}
	return d, true, nil
}

// shown are the steps of the flow of an item, for a page.
func (j *Journal) shown(i Item) (steps []inspect.ItemStep) {
	if j == nil {
		return nil
	}
	becomes := cmp.Or(j.Undo, i.State)
	for _, s := range j.Steps {
		is := inspect.ItemStep{Name: s.Name, State: s.State.String(), Attempts: s.Attempt, Ended: s.At, Signal: s.Signal, Until: s.Until}
		switch {
		case s.State == StepBegun:
			is.Started, is.Ended = s.At, time.Time{}
		case s.Until.IsZero(): // when a wait began is not kept
			is.Started = s.At.Add(-s.Took)
		}
		switch {
		case j.Undo != 0 && i.State == Halted && s.Compensates && s.State != StepUndone:
			is.State = "half undone"
		case s.State != StepBegun:
		case j.Wait != nil && j.Wait.Step == s.Name:
			is.State, is.Signal = "waits", j.Wait.Pattern
		case s.Until.IsZero() && becomes&(Retry|Dead|Halted) != 0:
			is.State = "failed"
		}
		if s.State == StepBegun && s.Until.IsZero() && j.Undo == 0 {
			is.Attempts = i.Attempts // those before it have begun again with each step that was done
		}
		steps = append(steps, is)
	}
	return steps
}

func (q stored) Count(ctx context.Context, match inspect.ItemQuery) (int, error) {
	query, err := q.query(match)
	if err != nil {
		return 0, err
	}
	return q.queue.count(ctx, query)
}

// all does a change of many items.
func (q stored) all(match inspect.ItemQuery, do func(Query) (Progress, error)) (int, error) {
	query, err := q.query(match)
	if err != nil {
		return 0, err
	}
	p, err := do(query)
	return p.Changed, err
}

func (q stored) AgainAll(ctx context.Context, match inspect.ItemQuery) (int, error) {
	return q.all(match, func(m Query) (Progress, error) { return q.queue.againAll(ctx, m) })
}

func (q stored) DiscardAll(ctx context.Context, match inspect.ItemQuery) (int, error) {
	return q.all(match, func(m Query) (Progress, error) { return q.queue.discardAll(ctx, m) })
}

func (q stored) CancelAll(ctx context.Context, match inspect.ItemQuery, reason string) (int, error) {
	return q.all(match, func(m Query) (Progress, error) { return q.queue.cancelAll(ctx, m, reason) })
}

func (q stored) Again(ctx context.Context, id int64) (bool, error) {
	changed, err := q.queue.store.Again(ctx, q.queue.opts.Name, []ItemID{ItemID(id)}, Dead|Halted)
	q.queue.wake(true)
	return len(changed) > 0, q.queue.fail("try again", err)
}

func (q stored) Discard(ctx context.Context, id int64) (bool, error) {
	states, err := q.queue.cancel(ctx, []ItemID{ItemID(id)}, Dead|Halted, "discarded")
	return err == nil && states[0] != 0, q.queue.fail("discard", err)
}
