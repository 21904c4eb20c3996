package batching

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// run is the body of a lot's operation.
func (x *engine[In, Out]) run(ctx context.Context, l *lot[item[In, Out]]) (err error) {
	x.mu.Lock()
	now := x.now()
	started := x.builder.start(l, now)
	x.flying.Add(1)
	after := x.commit(now, nil)
	x.mu.Unlock()
	defer x.end(l, started)
	if !started {
		return l.cause
	}
	x.settle(&after)
	f := &flight[In, Out]{
		engine: x,
		ctx:    ctx,
		lot:    l,
		batch:  Batch{Items: l.n, Bytes: l.bytes, Reason: l.reason, Waited: now - l.entries[0].at},
		rest:   l.entries,
	}
	defer func() { err = f.conclude() }()
	f.flush(l.entries)
	return nil
}

// end lets others have what a lot had.
func (x *engine[In, Out]) end(l *lot[item[In, Out]], started bool) {
	if started {
		x.reuse(l.entries)
	}
	x.mu.Lock()
	x.flying.Add(-1)
	if started {
		delete(x.lots, l.id)
		now := x.now()
		x.builder.end(l, now)
		x.commit(now, nil) // nobody is let in or out by this
	}
	x.mu.Unlock()
}

// flight is a lot being flushed.
type flight[In, Out any] struct {
	*engine[In, Out]
	ctx   context.Context
	lot   *lot[item[In, Out]]
	batch Batch
	rest  []*entry[item[In, Out]] // not settled
	err   error                   // of all, unless mixed
	mixed bool                    // errors depend on the item
	errs  ItemErrors              // of those that failed, by place; nil: none
}

// flush flushes the next entries of the lot, in one call or, when that fails and
// bisecting may help, in two halves.
func (f *flight[In, Out]) flush(entries []*entry[item[In, Out]]) {
	first := f.batch.Calls == 0
	if !first && f.ctx.Err() != nil {
		return // conclude settles them
	}
	out, err := f.call(entries)
	v := f.judge(len(entries), out, err)
	if !v.splits || !f.opts.Bisect || len(entries) == 1 || f.ctx.Err() != nil {
		f.conclusive(entries, &v)
		return
	}
	if first {
		f.mu.Lock()
		f.builder.stats.Bisected++
		f.mu.Unlock()
		f.mixed = true
		told := f.batch
		told.Err = v.err
		Bisected.Raise(core.OperationFrom(f.ctx), "", told)
	}
	half := len(entries) / 2
	f.flush(entries[:half])
	f.flush(entries[half:])
}

// call calls the function. A panic ends here, so that the rest of the batch has its
// turn and its callers have an answer.
func (f *flight[In, Out]) call(entries []*entry[item[In, Out]]) (out []Out, err error) {
	batch := make([]In, len(entries))
	for i, e := range entries {
		batch[i] = e.value.in
	}
	begun := time.Now()
	defer func() {
		f.count(time.Since(begun))
		if r := recover(); r != nil {
			out, err = nil, &core.PanicError{Value: r, Stack: debug.Stack()}
			core.OperationFrom(f.ctx).Raise(core.SignalPanic)
		}
	}()
	return f.work(f.ctx, batch)
}

// count takes note of a call that has come to its end, however it did.
func (f *flight[In, Out]) count(took time.Duration) {
	f.batch.Duration += took
	f.batch.Calls++
	f.mu.Lock()
	defer f.mu.Unlock()
	f.builder.stats.Calls++
	if f.batch.Calls == 1 {
		f.builder.margin.observe(took)
	}
}

// verdict is what a call said.
type verdict[Out any] struct {
	out    []Out
	err    error
	each   ItemErrors // what err says of each item; nil: the same of all
	splits bool       // bisecting might tell more
}

func (v *verdict[Out]) of(i int) error {
	if v.each != nil {
		return v.each[i]
	}
	return v.err
}

// judge checks what a call for n items has returned.
func (f *flight[In, Out]) judge(n int, out []Out, err error) verdict[Out] {
	var short error
	if f.results && len(out) != n {
		short = fmt.Errorf("batching: the flush returned %d results for %d items", len(out), n)
	}
	each, ok := errors.AsType[ItemErrors](err)
	switch {
	case err == nil:
		return verdict[Out]{out: out, err: short}
	case !ok:
		return verdict[Out]{err: f.cause(err), splits: true}
	case len(each) != n:
		return verdict[Out]{err: fmt.Errorf("batching: the flush returned %d item errors for %d items: %w", len(each), n, err)}
	}
	each = slices.Clone(each)
	for i, err := range each {
		if each[i] = f.cause(err); err == nil {
			each[i] = short
		}
	}
	return verdict[Out]{out: out, err: err, each: each}
}

// cause returns why the context has ended if err says no more than that it has.
func (f *flight[In, Out]) cause(err error) error {
	if err == context.Canceled && f.ctx.Err() != nil {
		return context.Cause(f.ctx)
	}
	return err
}

// conclusive settles the next entries.
func (f *flight[In, Out]) conclusive(entries []*entry[item[In, Out]], v *verdict[Out]) {
	failed := &f.builder.stats.Failed
	if v.err != nil && f.ctx.Err() != nil {
		failed = &f.builder.stats.Cancelled
	}
	f.mu.Lock()
	for i, e := range entries {
		counter := &f.builder.stats.Succeeded
		if err := v.of(i); err != nil {
			e.value.err = err
			counter = failed
		} else if f.results {
			e.value.out = v.out[i]
		}
		f.builder.settle(e, counter)
	}
	f.mu.Unlock()
	f.rest = f.rest[len(entries):]
	f.err, f.mixed = v.err, f.mixed || v.each != nil
	for i, e := range entries {
		if e.called {
			close(e.value.settled)
		}
		err := v.of(i)
		if err == nil {
			continue
		}
		if f.errs == nil {
			f.errs = make(ItemErrors, f.lot.n)
		}
		f.errs[e.place] = err
		f.batch.Failed++
	}
}

// conclude settles what is left over, tells what there is to tell, and returns the
// error of the batch.
func (f *flight[In, Out]) conclude() error {
	if len(f.rest) > 0 {
		v := verdict[Out]{err: context.Cause(f.ctx)}
		if v.err == nil {
			v.err = &core.PanicError{Stack: debug.Stack()} // by Goexit
		}
		f.conclusive(f.rest, &v)
	}
	signal := Flushed
	if f.batch.Failed > 0 {
		signal = Failed
		if f.batch.Err = f.err; f.batch.Calls > 1 {
			f.batch.Err = f.errs
		}
	}
	defer f.report() // after the signal, even if a handler of it ends the goroutine
	op := core.OperationFrom(f.ctx)
	op.Set(ValueBatch, f.batch)
	signal.Raise(op, "", f.batch)
	return f.batch.Err
}

// report tells of the items that nobody waits for and were not flushed.
func (f *flight[In, Out]) report() {
	if f.batch.Failed == 0 || f.opts.OnError == nil {
		return
	}
	var (
		items []In
		errs  ItemErrors
	)
	for i, err := range f.errs {
		if e := f.lot.entries[i]; err != nil && !e.called {
			items, errs = append(items, e.value.in), append(errs, err)
		}
	}
	switch {
	case len(items) == 0:
	case f.mixed:
		f.opts.OnError(items, errs)
	default:
		f.opts.OnError(items, f.err)
	}
}
