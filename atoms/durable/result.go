package durable

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/ephemeralgo/ephemeral/core/guard"
)

// ErrNoResult means that an item has ended well and its body has not called [Return].
var ErrNoResult = errors.New("durable: the item has no result")

// A Result is what has become of an item.
type Result struct {
	State State
	Err   string // of the item
	Data  []byte // JSON of [Return]; nil: none
}

// An EndedError says that an item has ended, or was halted, without a result. Its Err is only the text of the error of the body,
// as the store has it: errors.Is finds nothing in it.
type EndedError struct {
	ID    ItemID
	State State // Dead, Halted or Cancelled
	Err   string
}

func (e *EndedError) Error() string {
	return fmt.Sprintf("durable: item %d is %v: %s", e.ID, e.State, e.Err)
}

// Return keeps a value as the result of the item, as JSON, for as long as the item is kept; see [Wait]. Ctx is the
// context of the item's body. The last call counts. The result is stored together with the end of the item: by Finish
// of the engine, if the body calls that, and else when the body has returned nil. After another end there is none. Return is an
// error after Finish, outside of a body, and if the JSON is longer than Options.MaxResult.
func Return(ctx context.Context, v any) error {
	r, ok := ctx.Value(runKey{}).(*run)
	if !ok {
		return errors.New("durable: Return is for the body of an item, called with its context")
	}
	var data []byte
	var err error
	panicked := guard.Do("MarshalJSON", func() { data, err = json.Marshal(v) })
	switch err = cmp.Or(panicked, err); {
	case err != nil:
		return fmt.Errorf("durable: the result of item %d of queue %q has no JSON: %w", r.item.ID, r.queue, err)
	case r.finished.Load():
		return fmt.Errorf("durable: Return was called after Finish, for item %d of queue %q", r.item.ID, r.queue)
	case len(data) > r.maxResult:
		return fmt.Errorf("durable: the result of item %d of queue %q has %d bytes, more than %d", r.item.ID, r.queue, len(data), r.maxResult)
	}
	r.result.Store(&data)
	return nil
}

// ResultFrom returns what the body of the claim in ctx has given to [Return], for Finish of engines, or nil.
func ResultFrom(ctx context.Context) []byte {
	if r, ok := ctx.Value(runKey{}).(*run); ok {
		return r.returned()
	}
	return nil
}

func (r *run) returned() []byte {
	if data := r.result.Load(); data != nil {
		return *data
	}
	return nil
}

// Names of wake-ups beside those of the queue itself.
const (
	waitMark  = "\x01waits" // somebody waits for the end of an item
	endedMark = "\x01ended" // an item has ended
	waitFor   = time.Minute // how long a process tells about ends after it heard that somebody waits
)

// Wait returns the result of an item when it has ended, in whatever process, and as often as it is called. If the
// item is dead, halted or cancelled, the error is an [*EndedError], and [ErrNoResult] if the body has not called [Return].
// The queue need not run in this process. If there is a [Waker], Wait is woken when an item ends, and looks
// at every Poll as well, and twice a minute, because wake-ups may get lost. A body that waits for another item keeps its slot, unless it calls
// [core.Operation.Suspend].
func Wait[R, T any](ctx context.Context, q *Queue[T], id ItemID) (result R, err error) {
	ends, cancel := q.queue.hearEnds()
	defer cancel()
	data, err := q.queue.outcome(ctx, id, ends)
	switch {
	case err != nil:
	case data == nil:
		err = q.queue.fail(fmt.Sprintf("wait for item %d", id), ErrNoResult)
	default:
		panicked := guard.Do("UnmarshalJSON", func() { err = json.Unmarshal(data, &result) })
		err = q.queue.fail(fmt.Sprintf("decode the result of item %d as %T", id, result), cmp.Or(panicked, err))
	}
	return result, err
}

// WaitAll waits until all these items have ended, in whatever processes, as [Wait] does. Its error joins an [*EndedError] for
// each that is dead, halted or cancelled, and [ErrUnknown] for each that the queue has not, or no longer. If ctx ends first, it
// returns the cause.
func (q *Queue[T]) WaitAll(ctx context.Context, ids ...ItemID) error {
	return q.queue.waitAll(ctx, ids...)
}

func (q *queue) waitAll(ctx context.Context, ids ...ItemID) error {
	ends, cancel := q.hearEnds()
	defer cancel()
	var errs []error
	for _, id := range ids {
		_, err := q.outcome(ctx, id, ends)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// hearEnds returns a channel that gets a value when items may have ended.
func (q *queue) hearEnds() (woken <-chan struct{}, cancel func()) {
	ends := make(chan struct{}, 1)
	var cancels []func()
	if q.waker != nil {
		for _, name := range []string{q.opts.Name, q.opts.Name + endedMark} {
			cancels = append(cancels, q.waker.OnWake(name, func() {
				select {
				case ends <- struct{}{}:
				default:
				}
			}))
		}
	}
	return ends, func() {
		for _, cancel := range cancels {
			cancel()
		}
	}
}

// outcome waits until an item has ended, and returns the JSON of its result, or why there can be none.
func (q *queue) outcome(ctx context.Context, id ItemID, ends <-chan struct{}) ([]byte, error) {
	for {
		if q.waker != nil {
			q.waker.Wake(q.opts.Name + waitMark)
		}
		r, ok, err := q.store.Result(ctx, q.opts.Name, id)
		switch {
		case err != nil:
		case !ok:
			err = ErrUnknown
		case r.State == Done:
			return r.Data, nil
		case r.State&(Dead|Halted|Cancelled) != 0:
			err = &EndedError{id, r.State, r.Err}
		}
		if err != nil {
			return nil, q.fail(fmt.Sprintf("wait for item %d", id), err)
		}
		select {
		case <-ends:
		case <-time.After(min(q.opts.Poll, waitFor/2)):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// hearWaiters makes the queue tell others about ends while somebody waits. The first time it tells them at once: the
// item may have ended before.
func (q *queue) hearWaiters() (cancel func()) {
	if q.waker == nil {
		return func() {}
	}
	return q.waker.OnWake(q.opts.Name+waitMark, func() {
		if now := time.Now(); q.awaited.Swap(now.Add(waitFor).UnixNano()) < now.UnixNano() {
			q.tellWaiters()
		}
	})
}

// tellWaiters says that items have ended.
func (q *queue) tellWaiters() {
	if q.waker != nil && time.Now().UnixNano() < q.awaited.Load() {
		q.waker.Wake(q.opts.Name + endedMark)
	}
}
