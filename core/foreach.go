package core

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
)

// maxErrors is how many errors ForEach joins; the others are counted.
const maxErrors = 100

// ForEach runs work for every item of seq, a bounded number at once, starting them
// in order, and returns when all that was started has ended: nil, or the errors
// joined, in the order in which they occurred; of more than a hundred the first
// hundred and a count. A panic of work is a [PanicError] among them.
//
// When ctx ends, ForEach takes no more items, cancels what runs with the cause of
// ctx, and returns that cause, unless nothing was left to do, joined with what else
// went wrong. With [Options.StopOnError] the first error ends it likewise, and so
// does it inside a body if the items wait for that body's end, with
// [ErrWouldDeadlock]. Items are taken from seq only as there is room for them, on
// the goroutine that called ForEach.
//
// On [Options.Sink], what the last MaxTracked operations have raised is there to be
// sensed afterwards, as facts of the sink's own; coordinators that heed it do so only
// until ForEach returns.
func ForEach[T any](ctx context.Context, seq iter.Seq[T], work Work[T], opts Options) error {
	return forEach(ctx, seq, nil, work, opts)
}

// ForEachKeyed is ForEach where at most [Options.MaxPerKey] items of one key are
// worked on at once, by default one, in order. See [NewKeyedCoordinator]. An item
// whose key is busy waits in the queue and does not hold up others: MaxQueued,
// which is as large as MaxConcurrency unless set, says how far ahead ForEachKeyed
// looks for items of other keys.
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
	r, err := newRun(ctx, key, work, opts)
	if err != nil {
		return err
	}
	defer r.close()
	var failed failures
	stop := func() {
		if opts.StopOnError {
			r.stop()
		}
	}
	r.onUnrun = func(err error) func() {
		failed.add(err)
		return stop
	}
	r.onReturn = func(err error) {
		if err == nil || r.ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.Cause(r.ctx))) {
			return // nothing that is not known already
		}
		failed.add(err)
		stop()
	}
	cut := false // there may be items that were not taken
	for item := range seq {
		_, err := r.enqueue(r.ctx, item, true)
		if err != nil && r.ctx.Err() == nil {
			failed.add(err) // refused, say
			stop()
			if err == ErrWouldDeadlock {
				r.cancel(err) // there will never be room
			}
		}
		if cut = r.ctx.Err() != nil || err == ErrClosed; cut {
			break
		}
	}
	if err := r.wait(); err != nil && r.ctx.Err() == nil {
		failed.add(err)
		r.cancel(err)
	}
	cut = cut || r.Stats().Cancelled > 0
	r.close()
	if !cut {
		return failed.join(nil) // ctx ended, if it did, when all was done
	}
	return failed.join(r.cause())
}

var errNoSeq = errors.New("core: there must be a sequence of items, not a nil function")

// errStopped is the cause of a cancellation by StopOnError.
var errStopped = errors.New("ephemeral: stopped at the first error")

// run is a coordinator for the time of one call.
type run[T any] struct {
	*Coordinator[T]
	ctx    context.Context // ends with the caller's, or by stop
	cancel context.CancelCauseFunc
	parent context.Context
	after  func() bool
	inside uint64 // number of the engine of the body it is called by, or 0
}

func newRun[T any](ctx context.Context, key func(T) string, work Work[T], opts Options) (*run[T], error) {
	if len(opts.Lanes) > 0 {
		return nil, errors.New("core: Options.Lanes are for coordinators, not for ForEach and Map")
	}
	resolved, err := opts.resolved()
	if err != nil {
		return nil, err
	}
	if opts.MaxQueued == 0 {
		opts.MaxQueued = resolved.MaxConcurrency
	}
	c, err := newCoordinator(key, work, opts)
	if err != nil {
		return nil, err
	}
	c.bequeaths = true
	r := &run[T]{Coordinator: c, parent: ctx}
	r.ctx, r.cancel = context.WithCancelCause(ctx)
	r.after = context.AfterFunc(r.ctx, func() { c.shut(context.Cause(r.ctx)) })
	if o := operationIn(ctx); o != nil {
		r.inside = o.engine.number
		ends.await(r.inside, r.number)
	}
	return r, nil
}

// stop starts no more and cancels what runs.
func (r *run[T]) stop() {
	r.mu.Lock()
	r.paused = true // at once; shutting down follows
	r.mu.Unlock()
	r.cancel(errStopped)
}

// cause is why the caller's context ended, or nil.
func (r *run[T]) cause() error {
	if r.parent.Err() == nil {
		return nil
	}
	return context.Cause(r.parent)
}

// wait waits until all that was accepted has ended; when the context ends, that
// is soon. It returns ErrWouldDeadlock if that could never be.
func (r *run[T]) wait() error {
	r.Complete()
	return r.Flush(context.WithoutCancel(r.ctx))
}

// close ends everything, on every way out.
func (r *run[T]) close() {
	r.cancel(errStopped)
	r.shut(context.Cause(r.ctx))
	r.after()
	<-r.closed
	ends.reached(r.inside, r.number)
	r.inside = 0
}

// failures collects the errors of a ForEach.
type failures struct {
	mu   sync.Mutex
	errs []error
	more int
}

func (f *failures) add(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.errs) < maxErrors {
		f.errs = append(f.errs, err)
	} else {
		f.more++
	}
}

func (f *failures) join(cause error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	errs := append([]error{cause}, f.errs...)
	if f.more > 0 {
		errs = append(errs, fmt.Errorf("ephemeral: and %d more errors", f.more))
	}
	return errors.Join(errs...)
}
