package retry

import (
	"context"
	"errors"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// do makes attempts until one succeeds or there is to be no further one. An operation
// of a [Queue] has a seat, which it leaves while it waits.
func (r *Retrier) do(ctx context.Context, work func(context.Context) error, s *seat) error {
	var begun time.Duration
	if r.maxElapsed > 0 {
		begun = time.Since(r.base)
	}
	returned := false
	defer func() {
		if !returned {
			count(r, &r.stats.Panicked, 1)
		}
	}()
	err := r.first(ctx, work)
	if err == nil {
		r.atOnce.Add(1)
		if r.budget != nil {
			r.budget.deposit()
		}
	} else {
		err = r.again(ctx, begun, err, work, s)
	}
	returned = true
	return err
}

// again goes on after the first attempt has failed with err.
func (r *Retrier) again(ctx context.Context, begun time.Duration, err error, work func(context.Context) error, s *seat) error {
	on := raiser{r, core.OperationFrom(ctx)}
	for n := 1; ; {
		if mark, ok := errors.AsType[*permanentError](err); ok {
			count(r, &r.stats.Permanent, 1)
			if err == error(mark) {
				err = mark.err
			}
			return err
		}
		if ctx.Err() != nil {
			return r.cancelled(ctx, n, err)
		}
		if !r.retryIf(err) {
			count(r, &r.stats.Permanent, 1)
			return err
		}
		delay, cause := r.next(n, begun, err)
		if cause == nil && r.budget != nil && !r.budget.withdraw() {
			cause = ErrBudget
		}
		if cause != nil {
			return r.gaveUp(on, n, cause, err)
		}
		if !r.wait(ctx, on, n, delay, err, s) {
			if r.budget != nil {
				r.budget.refund()
			}
			return r.cancelled(ctx, n, err)
		}
		n++
		count(r, &r.stats.Retries, 1)
		on.raise(kindAttempt, Event{n, delay, err})
		last := err
		if err = r.numbered(ctx, on.op, n, work); err == nil {
			if r.budget != nil {
				r.budget.deposit()
			}
			count(r, &r.stats.Recovered, 1)
			on.raise(kindRecovered, Event{n, 0, last})
			return nil
		}
	}
}

// next returns how long to wait after attempt n, or why there is to be no further
// one.
func (r *Retrier) next(n int, begun time.Duration, err error) (delay time.Duration, cause error) {
	if n >= r.attempts {
		return 0, ErrAttempts
	}
	delay, asked := askedDelay(err)
	switch {
	case asked && delay > r.maxDelay:
		return 0, ErrMaxDelay
	case !asked:
		delay = min(r.backoff(n), r.maxDelay)
		if r.jitter != nil {
			delay = min(r.jitter(delay), r.maxDelay)
		}
	}
	delay = max(0, delay)
	if r.maxElapsed > 0 && delay > r.maxElapsed-(time.Since(r.base)-begun) {
		return 0, ErrMaxElapsed
	}
	return delay, nil
}

// wait lets the delay after attempt n pass. It is false if ctx has ended.
func (r *Retrier) wait(ctx context.Context, on raiser, n int, delay time.Duration, err error, s *seat) bool {
	if delay > 0 {
		on.raise(kindBackoff, Event{n, delay, err})
		ended := ctx.Done()
		if s != nil {
			s.leave()
		}
		count(r, &r.stats.Waiting, 1)
		timer := time.NewTimer(delay)
		select {
		case <-timer.C:
			if s != nil {
				s.take(ctx)
			}
		case <-ended:
			timer.Stop()
		}
		count(r, &r.stats.Waiting, -1)
	}
	return ctx.Err() == nil
}

// gaveUp accounts for a call that gives up after attempt n.
func (r *Retrier) gaveUp(on raiser, n int, cause, err error) error {
	if cause == ErrBudget {
		count(r, &r.stats.OverBudget, 1)
		on.raise(kindBudget, Event{n, 0, err})
	} else {
		count(r, &r.stats.Exhausted, 1)
		on.raise(kindExhausted, Event{n, 0, err})
	}
	return &Error{Attempts: n, Cause: cause, Err: err}
}

// cancelled accounts for a call whose context has ended after attempt n.
func (r *Retrier) cancelled(ctx context.Context, n int, err error) error {
	count(r, &r.stats.Cancelled, 1)
	cause := context.Cause(ctx)
	if errors.Is(err, cause) {
		return err
	}
	return &Error{Attempts: n, Cause: cause, Err: err}
}

// raiser is where a call raises its signals.
type raiser struct {
	r  *Retrier
	op *core.Operation
}

func (on raiser) raise(kind core.Kind[Event], e Event) {
	if on.op == nil {
		kind.Raise(on.r.sink, on.r.name, e)
		return
	}
	key := on.op.Key()
	if key == "" {
		key = on.r.name
	}
	kind.Raise(on.op, key, e)
}
