package hedge

import (
	"context"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/guard"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// Do calls work, and calls it a second time if the first call is slow; see [Hedger]. It returns nil
// if one of them succeeds, and otherwise the error of the first. It returns when both calls have
// returned. A panic of the first attempt passes through Do. A panic of the second attempt is an
// error that matches [core.PanicError], and raises [core.SignalPanicked]. Do panics if work is nil.
func (h *Hedger) Do(ctx context.Context, work func(context.Context) error) error {
	needs("Do", h != nil && work != nil)
	_, err := do(ctx, h, func(ctx context.Context) (struct{}, error) { return struct{}{}, work(ctx) })
	return err
}

// DoValue is [Hedger.Do] for a function with a result. If both attempts fail, it returns the
// result of the first.
func DoValue[T any](ctx context.Context, h *Hedger, work func(context.Context) (T, error)) (T, error) {
	needs("DoValue", h != nil && work != nil)
	return do(ctx, h, work)
}

// Wrap returns work that is hedged by h, for any coordinator. Both attempts of an item have one
// slot. Wrap panics if h or work is nil.
func Wrap[T any](h *Hedger, work core.Work[T]) core.Work[T] {
	needs("Wrap", h != nil && work != nil)
	return func(ctx context.Context, item T) error {
		return h.Do(ctx, func(ctx context.Context) error { return work(ctx, item) })
	}
}

// WrapResult is [Wrap] for work with a result.
func WrapResult[In, Out any](h *Hedger, work core.ResultWork[In, Out]) core.ResultWork[In, Out] {
	needs("WrapResult", h != nil && work != nil)
	return func(ctx context.Context, in In) (Out, error) {
		return do(ctx, h, func(ctx context.Context) (Out, error) { return work(ctx, in) })
	}
}

func needs(what string, all bool) {
	if !all {
		panic("hedge: " + what + " needs a Hedger and a function")
	}
}

type attemptKey struct{}

// Attempt returns 2 in a second attempt, and 1 everywhere else. It is also 1 in an operation that
// a second attempt has enqueued.
func Attempt(ctx context.Context) int {
	if op, ok := ctx.Value(attemptKey{}).(*core.Operation); ok && op == core.OperationFrom(ctx) {
		return 2
	}
	return 1
}

// A race is a call that may have two attempts.
type race[T any] struct {
	hedger *Hedger
	work   func(context.Context) (T, error)
	begun  time.Time
	ctx    context.Context // of both attempts
	cancel context.CancelCauseFunc

	mu     sync.Mutex
	over   bool          // the first attempt has returned
	second chan struct{} // closed when the second attempt has returned; nil: there is none
	value  T             // result of the second attempt
	err    error
}

// do makes a call.
func do[T any](ctx context.Context, h *Hedger, work func(context.Context) (T, error)) (value T, err error) {
	delay, known := h.begin()
	r := &race[T]{hedger: h, work: work, begun: time.Now()}
	err = core.ErrCancelled // the error if work ends the goroutine
	took, won := time.Duration(0), false
	defer func() { h.end(ctx, took, err, won) }()
	if !known {
		value, err = work(ctx)
		took = time.Since(r.begun)
		return value, err
	}
	r.ctx, r.cancel = context.WithCancelCause(ctx)
	value, err = r.first(delay)
	took = time.Since(r.begun)
	if guard.Failed(err) && r.second != nil && !guard.Failed(r.err) {
		won = true
		r.raise(Succeeded)
		return r.value, r.err
	}
	return value, err
}

// first makes the first attempt, and returns when no attempt runs any more.
func (r *race[T]) first(delay time.Duration) (T, error) {
	timer := time.AfterFunc(delay, r.hedge)
	fails := false
	defer func() {
		timer.Stop()
		r.mu.Lock()
		r.over = true
		r.mu.Unlock()
		if r.second != nil {
			if !fails {
				r.cancel(ErrSlower)
			}
			<-r.second
		}
		r.cancel(ErrSlower)
	}()
	value, err := r.work(r.ctx)
	fails = guard.Failed(err)
	return value, err
}

// hedge makes the second attempt. The timer calls it.
func (r *race[T]) hedge() {
	r.mu.Lock()
	starts := !r.over && r.ctx.Err() == nil && r.hedger.allow()
	if starts {
		r.second = make(chan struct{})
	}
	r.mu.Unlock()
	if !starts {
		return
	}
	defer close(r.second)
	op := core.OperationFrom(r.ctx)
	op.Charge(1, 0)
	defer op.WaitsFor("the second attempt of hedge "+strconv.Quote(r.hedger.opts.Name), time.Time{})()
	r.raise(Started)
	returned := false
	defer func() {
		if returned {
			return
		}
		v := recover()
		r.err = &core.PanicError{Value: v, Stack: debug.Stack()}
		op.Raise(core.SignalPanicked)
	}()
	r.value, r.err = r.work(context.WithValue(r.ctx, attemptKey{}, op))
	if returned = true; !guard.Failed(r.err) {
		r.cancel(ErrSlower)
	}
}

// raise raises a signal by the operation of the call, or on the sink.
func (r *race[T]) raise(kind signals.Kind[Event]) {
	e, key := Event{time.Since(r.begun)}, r.hedger.opts.Name
	op := core.OperationFrom(r.ctx)
	if op == nil {
		kind.Raise(r.hedger.opts.Sink, key, e)
		return
	}
	if k := op.Key(); k != "" {
		key = k
	}
	kind.Raise(op, key, e)
}
