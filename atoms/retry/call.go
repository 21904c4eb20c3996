package retry

import (
	"context"
	"errors"
	"strconv"
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
	returned = true
	if err != nil {
		return r.again(ctx, begun, err, work, s)
	}
	r.atOnce.Add(1)
	if r.budget != nil {
		r.budget.deposit()
	}
	return nil
}

// again goes on after the first attempt has failed with err.
func (r *Retrier) again(ctx context.Context, begun time.Duration, err error, work func(context.Context) error, s *seat) error {
	on := raiser{r, core.OperationFrom(ctx)}
	end := &r.stats.Panicked
	defer func() { count(r, end, 1) }()
	for n := 1; ; {
		if mark, ok := errors.AsType[*permanentError](err); ok {
			end = &r.stats.Permanent
			if err == error(mark) {
				err = mark.err
			}
			return err
		}
		if ctx.Err() != nil {
			end = &r.stats.Cancelled
			if cause := context.Cause(ctx); !errors.Is(err, cause) {
				err = &Error{Attempts: n, Cause: cause, Err: err}
			}
			return err
		}
		if !r.retryIf(err) {
			end = &r.stats.Permanent
			return err
		}
		delay, cause := r.next(ctx, n, begun, err)
		if cause != nil {
			end = &r.stats.Exhausted
			on.raise(kindExhausted, Event{n, 0, err})
			return &Error{Attempts: n, Cause: cause, Err: err}
		}
		if r.budget != nil && !r.budget.withdraw() {
			end = &r.stats.OverBudget
			on.raise(kindBudget, Event{n, 0, err})
			return &Error{Attempts: n, Cause: ErrBudget, Err: err}
		}
		if !r.wait(ctx, on, n, delay, err, s) {
			if r.budget != nil {
				r.budget.refund()
			}
			end = &r.stats.Cancelled
			return &Error{Attempts: n, Cause: context.Cause(ctx), Err: err}
		}
		n++
		count(r, &r.stats.Retries, 1)
		on.raise(kindAttempt, Event{n, delay, err})
		last := err
		if err = r.numbered(ctx, on.op, n, work); err == nil {
			if r.budget != nil {
				r.budget.deposit()
			}
			end = &r.stats.Recovered
			on.raise(kindRecovered, Event{n, 0, last})
			return nil
		}
	}
}

// next returns how long to wait after attempt n, or why there is to be no further
// one.
func (r *Retrier) next(ctx context.Context, n int, begun time.Duration, err error) (delay time.Duration, cause error) {
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
	if end, ok := ctx.Deadline(); ok && delay > 0 && delay >= time.Until(end) {
		return 0, ErrDeadline
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
		waited := on.op.WaitsFor("attempt "+strconv.Itoa(n+1), time.Now().Add(delay))
		timer := time.NewTimer(delay)
		select {
		case <-timer.C:
		case <-ended:
			timer.Stop()
		}
		waited()
		if s != nil {
			waited = on.op.WaitsFor("its turn to make attempt "+strconv.Itoa(n+1), time.Time{})
			s.comeBack(ctx)
			waited()
		}
		count(r, &r.stats.Waiting, -1)
	}
	return ctx.Err() == nil
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
