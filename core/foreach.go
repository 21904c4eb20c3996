// This file decides how a sequence of items becomes a run.

package core

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"runtime"

	"github.com/ephemeralgo/ephemeral/core/guard"
)

// ForEach runs work for every item of seq, a bounded number at once. It starts them in
// order and returns when all operations that it started have ended. It returns nil, or the
// errors joined in the order in which they occurred. If there are more than a hundred
// errors, it joins the first hundred and the number of the others. A panic of work is a
// [PanicError] among them.
//
// When ctx ends, ForEach takes no more items and cancels what runs, with the cause of
// ctx. It returns that cause, joined with the other errors, unless all items were done
// by then. With [Options.StopOnError] the first error has the same effect as the end of
// ctx: the operations that still run are cancelled with that error as the cause.
//
// ForEach takes an item from seq only when there is room for it, on the goroutine that
// called it. It takes at most [Options.MaxQueued] items ahead, by default as many as may run. More make
// short bodies cheaper: with 256 in place of 16, an item whose body does nothing takes a tenth less
// time. Inside a body, ForEach keeps the slot of the body's operation. If the items
// of ForEach wait for operations of that body's coordinator, call ForEach in the function
// of [Operation.Suspend]. Otherwise they may wait for the slot for ever.
//
// After ForEach has returned, the signals of its last operations (as many as MaxTracked
// and MaxFailed say) are still present on [Options.Sink], until age or room ends that. But
// gates (CancelOn, DeferOn) ignore them from then on. [signals.Sink.Retract] retracts them, as if
// they had been raised directly.
func ForEach[T any](ctx context.Context, seq iter.Seq[T], work Work[T], opts Options) error {
	return forEach(ctx, seq, nil, work, opts)
}

// ForEachKeyed is [ForEach] with keys. At most [Options.MaxPerKey] items of one key, by
// default one, are worked on at once, in order. Items whose key is "" have no such limit
// and no order. See [NewKeyedCoordinator]. An item whose key is busy waits in the queue,
// where items of other keys pass it. When MaxQueued items wait, by default MaxConcurrency, no
// further item is taken from seq.
func ForEachKeyed[T any, K ~string](ctx context.Context, seq iter.Seq[T], key func(T) K, work Work[T], opts Options) error {
	text, err := keyText(key)
	if err != nil {
		return err
	}
	return forEach(ctx, seq, text, work, opts)
}

func forEach[T any](ctx context.Context, seq iter.Seq[T], key func(T) string, work Work[T], opts Options) error {
	if seq == nil {
		return errNoSeq
	}
	r, err := newRun(ctx, key, work, opts, opts.StopOnError)
	if err != nil {
		return err
	}
	defer r.close()
	for item := range seq {
		_, err := r.group.enqueue(r.group.ctx, item)
		if r.group.ctx.Err() != nil { // some items may not have been taken
			r.group.noteCut()
			break
		}
		if err != nil {
			r.group.fail(err)
		}
		if guard.Is(err, ErrClosed) {
			break
		}
	}
	return r.group.Wait()
}

var errNoSeq = errors.New("core: there must be a sequence of items, not a nil function")

// run is a coordinator for one call of ForEach or Map, with the group of all its items.
type run[T any] struct {
	engine *engine
	group  *Group[T]
}

func newRun[T any](ctx context.Context, key func(T) string, work Work[T], opts Options, stopOnError bool) (*run[T], error) {
	if len(opts.Lanes)+len(opts.Classes) > 0 || opts.Shadow != nil {
		return nil, errors.New("core: Options.Lanes, Classes and Shadow are for coordinators, not for ForEach and Map")
	}
	opts.MaxQueued = cmp.Or(opts.MaxQueued, opts.MaxConcurrency, runtime.GOMAXPROCS(0))
	opts.StopOnError = false // is the group's
	c, err := newCoordinator(key, work, opts)
	if err != nil {
		return nil, err
	}
	c.engine.ofRun = true
	return &run[T]{c.engine, c.Group(ctx, GroupOptions{StopOnError: stopOnError})}, nil
}

// close ends everything, on every way out.
func (r *run[T]) close() {
	r.group.end()
	r.engine.shut(context.Cause(r.group.ctx))
	<-r.engine.closed
}
