package batching

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/guard"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// run is the body of a batch's operation.
func (x *engine[In, Out]) run(ctx context.Context, b *batch[In, Out]) (err error) {
	x.mu.Lock()
	items := x.queue.start(b)
	x.unlock()
	if items == nil {
		x.Control.Cancel(core.OperationFrom(ctx).ID(), nil) // so that the operation counts as cancelled
		return core.ErrCancelled
	}
	f := &flush[In, Out]{
		engine: x,
		ctx:    ctx,
		info:   Batch{Items: len(items), Bytes: b.bytes, Reason: b.reason, Waited: time.Since(b.began)},
		items:  items,
		rest:   items,
	}
	defer func() { err = f.conclude() }()
	f.flush(items)
	return nil
}

// flush is one flush of a batch.
type flush[In, Out any] struct {
	engine *engine[In, Out]
	ctx    context.Context
	info   Batch
	items  []*item[In, Out]
	rest   []*item[In, Out] // items that are not settled
	err    error            // what the last call returned
	mixed  bool             // errors depend on the item
}

// flush flushes the next items of the batch in one call. If that fails and bisecting may
// help, it flushes two halves.
func (f *flush[In, Out]) flush(items []*item[In, Out]) {
	if f.info.Calls > 0 && f.ctx.Err() != nil {
		return // conclude settles them
	}
	a := f.call(items)
	if !a.bisectable || !f.engine.opts.Bisect || len(items) == 1 || f.ctx.Err() != nil {
		f.settle(items, a)
		return
	}
	if f.info.Calls == 1 {
		f.engine.mu.Lock()
		f.engine.queue.stats.Bisected++
		f.engine.mu.Unlock()
		f.mixed = true
		info := f.info
		info.Err = a.err
		signals.NewKind[Batch](SignalBisected).Raise(core.OperationFrom(f.ctx), "", info)
	}
	half := len(items) / 2
	f.flush(items[:half])
	f.flush(items[half:])
}

// call calls the function. It recovers from a panic, so that the rest of the batch is still
// flushed and all callers get an answer.
func (f *flush[In, Out]) call(items []*item[In, Out]) (a answer[Out]) {
	begun := time.Now()
	defer func() {
		f.info.Duration += time.Since(begun)
		f.info.Calls++
		f.engine.mu.Lock()
		f.engine.queue.stats.Calls++
		f.engine.mu.Unlock()
		if r := recover(); r != nil {
			a = answer[Out]{err: &core.PanicError{Value: r, Stack: debug.Stack()}, bisectable: true}
			core.OperationFrom(f.ctx).Raise(core.SignalPanicked)
		}
	}()
	out, err := f.engine.work(f.ctx, inputs(items))
	return f.answer(len(items), out, err)
}

// answer is the result of a call for its items.
type answer[Out any] struct {
	out        []Out
	err        error      // nil: all were flushed
	each       ItemErrors // the error of each item; nil: err for all
	bisectable bool       // err does not say which items failed
}

// answer checks the results of a call for n items.
func (f *flush[In, Out]) answer(n int, out []Out, err error) answer[Out] {
	var wrongNumber error
	if len(out) != n {
		wrongNumber = fmt.Errorf("batching: the function of %q returned %d results for %d items", f.engine.opts.Name, len(out), n)
	}
	if each, ok := err.(ItemErrors); ok && each == nil {
		err = nil // a nil ItemErrors in an error is not nil
	}
	each, ok := guard.As[ItemErrors](err)
	switch {
	case err == nil:
		return answer[Out]{out: out, err: wrongNumber}
	case !ok:
		return answer[Out]{err: f.cause(err), bisectable: true}
	case len(each) != n:
		err = fmt.Errorf("batching: the function of %q returned %d ItemErrors for %d items: %w", f.engine.opts.Name, len(each), n, err)
		return answer[Out]{err: err}
	}
	each = slices.Clone(each)
	for i, err := range each {
		if each[i] = f.cause(err); err == nil {
			each[i] = wrongNumber
		}
	}
	return answer[Out]{out: out, err: err, each: each}
}

// cause returns the cause of the context if err is only context.Canceled.
func (f *flush[In, Out]) cause(err error) error {
	if err == context.Canceled && f.ctx.Err() != nil {
		return context.Cause(f.ctx)
	}
	return err
}

// settle gives the next items their results.
func (f *flush[In, Out]) settle(items []*item[In, Out], a answer[Out]) {
	f.engine.mu.Lock()
	defer f.engine.mu.Unlock()
	failed := &f.engine.queue.stats.Failed
	if f.ctx.Err() != nil {
		failed = &f.engine.queue.stats.Cancelled
	}
	for i, it := range items {
		err, counter := a.err, failed
		if a.each != nil {
			err = a.each[i]
		}
		if err == nil {
			counter, it.out = &f.engine.queue.stats.Succeeded, a.out[i]
		} else {
			f.info.Failed++
		}
		f.engine.queue.finish(it, err, counter)
	}
	f.engine.queue.stats.Running -= len(items)
	f.rest = f.rest[len(items):]
	f.err, f.mixed = a.err, f.mixed || a.each != nil
}

// conclude settles the items that are left, raises the signal of the batch, and returns the
// batch's error.
func (f *flush[In, Out]) conclude() error {
	if len(f.rest) > 0 {
		err := context.Cause(f.ctx)
		if err == nil {
			err = &core.PanicError{Stack: debug.Stack()} // the function has ended the goroutine
		}
		f.settle(f.rest, answer[Out]{err: err})
	}
	signal := SignalFlushed
	if f.info.Failed > 0 {
		signal = SignalFailed
		f.info.Err = f.err
		if f.info.Calls > 1 {
			f.info.Err = errorsOf(f.items)
		}
		defer f.report() // even if a handler of the signal ends the goroutine
	}
	op := core.OperationFrom(f.ctx)
	op.Set(ValueBatch, f.info)
	signals.NewKind[Batch](signal).Raise(op, "", f.info)
	return f.info.Err
}

// report calls OnError with the failed items for which no Do waits.
func (f *flush[In, Out]) report() {
	answered := func(it *item[In, Out]) bool { return it.err == nil || it.done != nil }
	lost := slices.DeleteFunc(slices.Clone(f.items), answered)
	err := f.err
	if f.mixed {
		err = errorsOf(lost)
	}
	if len(lost) > 0 && f.engine.opts.OnError != nil {
		f.engine.opts.OnError(inputs(lost), err)
	}
}

func inputs[In, Out any](items []*item[In, Out]) []In {
	in := make([]In, len(items))
	for i, it := range items {
		in[i] = it.in
	}
	return in
}

func errorsOf[In, Out any](items []*item[In, Out]) ItemErrors {
	errs := make(ItemErrors, len(items))
	for i, it := range items {
		errs[i] = it.err
	}
	return errs
}
