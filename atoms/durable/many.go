package durable

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"
)

// ErrOrder means that items cannot be changed, because the items of a key would run in another order: some of
// them were to be moved to another lane, and others not, or an item was to be replaced by one with another key.
var ErrOrder = errors.New("durable: the order of a key would change")

// Progress says how far a change of many items is: [Queue.AgainAll], [Queue.CancelAll], [Queue.DiscardAll] and
// [Queue.MoveAll]. They first count the items, and then change them in small batches, with a pause after each that
// is three times as long as the batch took, so that the processes that run items go on. Each calls the function it is given, if any,
// after the count and after each batch. Items that were added after the call began are left alone. If ctx ends, or
// an error comes, the batches before it have been changed. A Limit in the query is the maximum number of items.
type Progress struct {
	Matched int `json:"matched"` // as counted at the begin, with all that the change does not fit
	Looked  int `json:"looked"`  // items that were read so far
	Changed int `json:"changed"`
}

// manyBatch is how many items are changed in one transaction.
const manyBatch = 100

// AgainAll is [Queue.Again] for all items that match selects, for example with Query{Dead: true}. An item that is dead
// again meanwhile is not tried once more. See [Progress].
func (q *Queue[T]) AgainAll(ctx context.Context, match Query, told ...func(Progress)) (Progress, error) {
	return q.queue.againAll(ctx, match, told...)
}

func (q *queue) againAll(ctx context.Context, match Query, told ...func(Progress)) (Progress, error) {
	const from = Dead | Halted | Cancelled
	return q.many(ctx, "try again", match, from, told, func(ids []ItemID, states State) (int, error) {
		changed, err := q.store.Again(ctx, q.opts.Name, ids, states)
		q.wake(true)
		return len(changed), err
	})
}

// CancelAll is [Queue.Cancel] for all items that match selects. See [Progress].
func (q *Queue[T]) CancelAll(ctx context.Context, match Query, reason string, told ...func(Progress)) (Progress, error) {
	return q.queue.cancelAll(ctx, match, reason, told...)
}

func (q *queue) cancelAll(ctx context.Context, match Query, reason string, told ...func(Progress)) (Progress, error) {
	const from = Waiting | Running | Halted | Dead
	return q.many(ctx, "cancel", match, from, told, func(ids []ItemID, states State) (n int, err error) {
		done, err := q.cancel(ctx, ids, states, cmp.Or(clean(reason), "cancelled"))
		for _, state := range done {
			n += min(1, int(state))
		}
		return n, err
	})
}

// DiscardAll gives up all dead and halted items that match selects, and changes no others: they become Cancelled, and
// the keys of halted ones go on. See [Progress].
func (q *Queue[T]) DiscardAll(ctx context.Context, match Query, told ...func(Progress)) (Progress, error) {
	return q.queue.discardAll(ctx, match, told...)
}

func (q *queue) discardAll(ctx context.Context, match Query, told ...func(Progress)) (Progress, error) {
	if match.State = match.states() & (Dead | Halted); match.State == 0 {
		return Progress{}, nil
	}
	return q.cancelAll(ctx, match, "discarded", told...)
}

// MoveAll puts all items that match selects, and that wait, into a lane. Of a key, all items that wait and are in
// other lanes must match, at most [MaxBatch]; if not, the error is [ErrOrder]. See [Progress].
func (q *Queue[T]) MoveAll(ctx context.Context, match Query, lane string, told ...func(Progress)) (Progress, error) {
	return q.queue.moveAll(ctx, match, lane, told...)
}

func (q *queue) moveAll(ctx context.Context, match Query, lane string, told ...func(Progress)) (Progress, error) {
	name, rank, err := q.lane(lane)
	if err != nil {
		return Progress{}, err
	}
	keys := map[string]bool{}
	move := func(ids []ItemID) (int, error) {
		moved, err := q.store.Move(ctx, q.opts.Name, ids, name, rank)
		return len(moved), err
	}
	return q.manyItems(ctx, "move", match, Waiting, told, func(items []Item, states State) (n int, err error) {
		var free []ItemID
		for _, i := range items {
			if i.Key == "" {
				free = append(free, i.ID)
			} else if !keys[i.Key] && err == nil {
				keys[i.Key] = true
				var whole []ItemID
				of := match
				of.Key, of.State, of.After, of.Limit = i.Key, states, "", MaxBatch+1
				for i, failed := range q.items(ctx, of) {
					whole, err = append(whole, i.ID), errors.Join(err, failed)
				}
				if len(whole) > MaxBatch {
					err = fmt.Errorf("durable: key %q has more than %d items to be moved together", i.Key, MaxBatch)
				}
				if err == nil {
					var some int
					some, err = move(whole)
					n += some
				}
			}
		}
		if len(free) > 0 && err == nil {
			var some int
			some, err = move(free)
			n += some
		}
		q.wake(true)
		return n, err
	})
}

func (q *queue) many(ctx context.Context, what string, match Query, from State, told []func(Progress), do func(ids []ItemID, states State) (int, error)) (Progress, error) {
	done := map[ItemID]bool{} // an item that comes again in the order is left alone
	return q.manyItems(ctx, what, match, from, told, func(items []Item, states State) (int, error) {
		var ids []ItemID
		for _, i := range items {
			if !done[i.ID] {
				ids = append(ids, i.ID)
			}
			done[i.ID] = true
		}
		if ids == nil {
			return 0, nil
		}
		return do(ids, states)
	})
}

func (q *queue) manyItems(ctx context.Context, what string, match Query, from State, told []func(Progress), do func(items []Item, states State) (int, error)) (p Progress, err error) {
	match, err = match.resolved()
	if match.State &= from; err != nil || match.State == 0 {
		return p, err
	}
	began, minAge, left := time.Now(), match.MinAge, cmp.Or(match.Limit, math.MaxInt)
	p.Matched, err = q.count(ctx, match)
	for err == nil {
		for _, tell := range told {
			tell(p)
		}
		if left == 0 {
			return p, nil
		}
		start := time.Now()
		match.Limit, match.MinAge = min(left, manyBatch), max(minAge, time.Since(began))
		var page Page
		if page, err = q.list(ctx, match); err != nil {
			break
		}
		left, match.After, p.Looked = left-len(page.Items), page.Next, p.Looked+len(page.Items)
		changed := 0
		if len(page.Items) > 0 {
			changed, err = do(page.Items, match.State)
			p.Changed += changed
		}
		if page.Next == "" {
			left = 0
		}
		select {
		case <-ctx.Done():
			err = errors.Join(err, context.Cause(ctx))
		case <-time.After(3 * time.Since(start)):
		}
	}
	return p, q.fail(what, err)
}
