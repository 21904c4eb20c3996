package batching

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// engine is the common part of batchers. Its queue decides, and the engine acts: it has the
// lock, the timers, and the coordinator whose operations are the batches.
type engine[In, Out any] struct {
	core.Control
	inner     *core.Coordinator[*batch[In, Out]]
	work      core.ResultWork[[]In, []Out]
	opts      Options[In]
	errClosed error
	errFull   error

	mu    sync.Mutex
	queue queue[In, Out]
}

func newEngine[In, Out any](work core.ResultWork[[]In, []Out], opts Options[In]) (*engine[In, Out], error) {
	if work == nil {
		return nil, errors.New("batching: there must be a function to flush batches, not nil")
	}
	opts, err := opts.resolved()
	if err != nil {
		return nil, err
	}
	x := &engine[In, Out]{
		work:      work,
		opts:      opts,
		errClosed: fmt.Errorf("batching: %q: %w", opts.Name, core.ErrClosed),
		errFull:   fmt.Errorf("batching: %q: %w", opts.Name, core.ErrFull),
	}
	x.queue = queue[In, Out]{opts: &x.opts, begin: x.begin, submit: x.submit, open: make(map[string]*batch[In, Out])}
	inner := core.Options{
		Name:           opts.Name,
		Sink:           opts.Sink,
		MaxConcurrency: opts.MaxConcurrency,
		MaxQueued:      math.MaxInt32, // there are at most as many batches as items, and the queue bounds the items
	}
	if opts.Key == nil {
		x.inner, err = core.NewCoordinator(x.run, inner)
	} else {
		x.inner, err = core.NewKeyedCoordinator(func(b *batch[In, Out]) string { return b.key }, x.run, inner)
	}
	if err != nil {
		return nil, fmt.Errorf("batching: %w", err)
	}
	x.Control = x.inner.Control
	return x, nil
}

// begin is called when the first item of a batch has come. mu is held.
func (x *engine[In, Out]) begin(b *batch[In, Out]) {
	b.began = time.Now()
	if x.opts.MaxDelay != never && x.opts.MaxSize > 1 {
		b.timer = time.AfterFunc(x.opts.MaxDelay, func() { x.enqueue(b, reasonDelay) })
	}
}

// submit makes a batch an operation of the coordinator. mu is held, so that operations
// are in the order of the batches.
func (x *engine[In, Out]) submit(b *batch[In, Out]) {
	b.id = core.Must(x.inner.TryEnqueue(context.Background(), b)) // the coordinator has room, and is open while there are items
}

// enqueue submits a batch whose time has come.
func (x *engine[In, Out]) enqueue(b *batch[In, Out], r string) {
	x.change(func() { x.queue.enqueue(b, r) })
}

// change changes the queue.
func (x *engine[In, Out]) change(f func()) {
	x.mu.Lock()
	defer x.unlock()
	f()
}

// unlock unlocks mu, and then runs the effects of the change.
func (x *engine[In, Out]) unlock() {
	e := x.queue.effects
	if len(e.lost)+len(e.unwanted) == 0 && !e.flood {
		x.mu.Unlock()
		return
	}
	x.queue.effects = effects[In, Out]{}
	x.mu.Unlock()
	if len(e.lost) > 0 && x.opts.OnError != nil {
		defer x.opts.OnError(e.lost, e.cause) // even if a handler of a signal ends the goroutine
	}
	if e.flood {
		defer x.Sink().RaiseKey(SignalDropped, x.opts.Name)
	}
	for _, b := range e.unwanted {
		x.Control.Cancel(b.id, e.cause)
	}
}

// Enqueue adds an item, and returns when the item is accepted, not when it is flushed. If
// there is no room, Enqueue waits; calls get room in the order in which they came. If ctx ends
// first, it returns the cause. After Complete, Drain, Stop and Close it returns
// [core.ErrClosed]; for an item that fits in no batch, [ErrTooLarge]. If a flush of this
// batcher calls Enqueue and there is no room, it returns [core.ErrWouldDeadlock]. Compare
// errors with errors.Is.
func (x *engine[In, Out]) Enqueue(ctx context.Context, item In) error {
	_, err := x.enter(ctx, item, nil, true)
	return err
}

// TryEnqueue is Enqueue without waiting: it returns [core.ErrFull] when there is no room.
func (x *engine[In, Out]) TryEnqueue(ctx context.Context, item In) error {
	_, err := x.enter(ctx, item, nil, false)
	return err
}

// enter brings an item to the queue. If done is not nil, it is closed when the item is
// settled. If wait is true, enter may wait for room.
func (x *engine[In, Out]) enter(ctx context.Context, in In, done chan struct{}, wait bool) (*item[In, Out], error) {
	if wait && ctx.Err() != nil {
		return nil, x.reject(context.Cause(ctx))
	}
	it := item[In, Out]{in: in, done: done}
	if x.opts.SizeOf != nil {
		it.size = max(0, x.opts.SizeOf(in))
		if most := min(x.opts.MaxBytes, x.opts.MaxQueuedBytes); it.size > most {
			return nil, x.reject(fmt.Errorf("%w of %q: it has %d bytes, the limit is %d", ErrTooLarge, x.opts.Name, it.size, most))
		}
	}
	if x.opts.Key != nil {
		it.key = x.opts.Key(in)
	}
	accepted, err := x.accept(&it)
	if err == core.ErrFull && wait {
		if x.Inside(ctx) {
			return nil, x.reject(core.ErrWouldDeadlock)
		}
		it.room = make(chan struct{})
		accepted, err = x.accept(&it)
	}
	switch {
	case err != nil:
		return nil, x.reject(err)
	case it.room == nil:
		return accepted, nil
	}
	if err := x.wait(ctx, accepted, it.room); err != nil {
		return nil, err
	}
	if accepted.batch == nil {
		return nil, x.errClosed
	}
	return accepted, nil
}

func (x *engine[In, Out]) accept(it *item[In, Out]) (*item[In, Out], error) {
	x.mu.Lock()
	defer x.unlock()
	return x.queue.accept(it)
}

// reject counts an item that is not accepted because of err, and returns the error for the
// caller: errClosed if the batcher is closed.
func (x *engine[In, Out]) reject(err error) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.queue.stats.Rejected++
	switch {
	case x.queue.stats.Closed:
		return x.errClosed
	case err == core.ErrFull:
		return x.errFull
	}
	return err
}

// wait waits until the channel c of an item is closed; its closer holds mu. If ctx ends
// first, the item leaves, and wait returns the cause.
func (x *engine[In, Out]) wait(ctx context.Context, it *item[In, Out], c <-chan struct{}) error {
	select {
	case <-c:
		return nil
	case <-ctx.Done():
	}
	x.mu.Lock()
	defer x.unlock()
	select {
	case <-c:
		return nil
	default:
	}
	x.queue.leave(it, context.Cause(ctx))
	return context.Cause(ctx)
}

// do brings an item and waits for its result.
func (x *engine[In, Out]) do(ctx context.Context, in In) (out Out, err error) {
	if x.Inside(ctx) {
		return out, x.reject(core.ErrWouldDeadlock)
	}
	it, err := x.enter(ctx, in, make(chan struct{}), true)
	if err != nil {
		return out, err
	}
	if deadline, ok := ctx.Deadline(); ok {
		if half := time.Until(deadline) / 2; half < x.opts.MaxDelay {
			defer time.AfterFunc(half, func() { x.enqueue(it.batch, reasonDeadline) }).Stop()
		}
	}
	if op := core.OperationFrom(ctx); op != nil {
		defer op.WaitsFor("a batch of "+strconv.Quote(x.Name()), time.Time{})()
	}
	if err := x.wait(ctx, it, it.done); err != nil {
		return out, err
	}
	return it.out, it.err
}

// Flush flushes all items accepted so far, and waits until they are flushed. The batcher
// accepts items meanwhile. If ctx ends first, Flush returns the cause, and the flushes go on.
// If it is called from a flush, it returns [core.ErrWouldDeadlock].
func (x *engine[In, Out]) Flush(ctx context.Context) error {
	x.change(x.queue.flush)
	return x.Control.Flush(ctx)
}

// WaitIdle flushes all items, even those that come meanwhile, and waits until the batcher has
// none. If ctx ends first, WaitIdle returns the cause. If it is called from a flush, it returns
// [core.ErrWouldDeadlock].
func (x *engine[In, Out]) WaitIdle(ctx context.Context) error {
	for {
		err := x.Flush(ctx)
		if s := x.Counters(); err != nil || s.Pending+s.Running == 0 {
			return err
		}
	}
}

// Complete closes the batcher to new items and begins to flush all items that were accepted.
// It does not wait for the flushes. Callers that wait for room get [core.ErrClosed].
func (x *engine[In, Out]) Complete() {
	x.change(func() {
		x.queue.complete()
		x.queue.flush()
	})
	x.Control.Complete()
}

// Drain closes the batcher to new items, flushes all items that were accepted, and waits until
// they are flushed. If ctx ends first, Drain returns the cause, and the flushes go on. If it is
// called from a flush, it returns [core.ErrWouldDeadlock] and changes nothing.
func (x *engine[In, Out]) Drain(ctx context.Context) error {
	if x.Inside(ctx) {
		return core.ErrWouldDeadlock
	}
	x.Complete()
	return x.Control.Flush(ctx)
}

// Stop closes the batcher to new items and begins no more flushes. Items whose flush has not
// begun are cancelled with the cause [core.ErrStopped]. Stop waits for the running flushes. If
// ctx ends first, Stop returns the cause, and the flushes go on. If it is called from a flush,
// it returns [core.ErrWouldDeadlock] and changes nothing.
func (x *engine[In, Out]) Stop(ctx context.Context) (err error) {
	if x.Inside(ctx) {
		return core.ErrWouldDeadlock
	}
	defer func() { err = x.Control.Stop(ctx) }() // even if OnError panics
	x.change(func() { x.queue.stop(core.ErrStopped) })
	return nil
}

// Close is like Stop, with the cause [core.ErrClosed], and also cancels the running flushes. It
// waits until they return, unless it is called from a flush or from a handler of a signal. To
// flush the items that wait, call Drain with a deadline first. Close returns nil.
func (x *engine[In, Out]) Close() error {
	defer x.Control.Close() // even if OnError panics
	x.change(func() { x.queue.stop(core.ErrClosed) })
	return nil
}

// Abort cancels all items that wait to be flushed, and all running flushes. The cause nil means
// [core.ErrCancelled]. The batcher still accepts items.
func (x *engine[In, Out]) Abort(cause error) {
	cause = cmp.Or(cause, core.ErrCancelled)
	running := slices.Collect(x.Operations(core.OperationQuery{Status: core.StatusRunning | core.StatusSuspended}))
	defer func() { // even if OnError panics
		for _, op := range running {
			x.Control.Cancel(op.ID, cause)
		}
	}()
	x.change(func() { x.queue.cancelAll(cause) })
}

// Cancel cancels a batch. If its flush has not begun, it will not begin. If it has begun, its
// context is cancelled. The callers of its items, and OnError, get the cause, unless the flush
// succeeds or returns another error. The cause nil means [core.ErrCancelled]. Cancel reports
// false if there was nothing to cancel.
func (x *engine[In, Out]) Cancel(id core.OperationID, cause error) bool {
	cause = cmp.Or(cause, core.ErrCancelled)
	op, _ := x.Lookup(id)
	withdrawn := false
	if b, ok := op.Item.(*batch[In, Out]); ok {
		x.change(func() { withdrawn = x.queue.cancel(b, cause) })
	}
	return withdrawn || x.Control.Cancel(id, cause)
}

// Counters returns the counters of items. Stats returns the counters of operations, which
// are batches.
func (x *engine[In, Out]) Counters() Counters {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.queue.counters()
}
