package retry

import (
	"context"
	"fmt"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/guard"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// do makes attempts until one succeeds or there is no further attempt. Wrapped says that
// the call is the whole work of the operation of ctx.
func (r *Retrier) do(ctx context.Context, work func(context.Context) error, wrapped bool) error {
	var begun time.Duration
	if r.opts.MaxElapsed > 0 {
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
	if guard.Failed(err) {
		return r.again(ctx, begun, err, work, wrapped)
	}
	r.atOnce.Add(1)
	if r.opts.Budget != nil {
		r.opts.Budget.deposit()
	}
	return err
}

// again continues after the first attempt has failed with err.
func (r *Retrier) again(ctx context.Context, begun time.Duration, err error, work func(context.Context) error, wrapped bool) error {
	on := raiser{r, core.OperationFrom(ctx)}
	end := &r.stats.Panicked
	defer func() { count(r, end, 1) }()
	for n := 1; ; {
		if useless, _ := guard.Ask(err, permanent.Permanent); useless {
			end = &r.stats.Permanent
			if own, ok := err.(*permanentError); ok {
				err = own.err
			}
			return err
		}
		if ctx.Err() != nil {
			end = &r.stats.Cancelled
			if cause := context.Cause(ctx); !guard.Is(err, cause) {
				err = giveUp(n, cause, err)
			}
			return err
		}
		if !r.opts.RetryIf(err) {
			end = &r.stats.Permanent
			return err
		}
		delay, cause := r.next(ctx, n, begun, err)
		if cause != nil {
			end = &r.stats.Exhausted
			on.raise(SignalExhausted, Event{n, 0, err})
			return giveUp(n, cause, err)
		}
		if r.opts.Budget != nil && !r.opts.Budget.withdraw() {
			end = &r.stats.OverBudget
			on.raise(SignalBudgetExhausted, Event{n, 0, err})
			return giveUp(n, ErrBudget, err)
		}
		if !r.wait(ctx, on, n, delay, err, wrapped) {
			if r.opts.Budget != nil {
				r.opts.Budget.refund()
			}
			end = &r.stats.Cancelled
			return giveUp(n, context.Cause(ctx), err)
		}
		n++
		count(r, &r.stats.Retries, 1)
		if wrapped {
			on.op.Charge(1, 0)
		}
		on.raise(SignalStarted, Event{n, delay, err})
		last := err
		if err = r.numbered(ctx, on.op, n, work); !guard.Failed(err) {
			if r.opts.Budget != nil {
				r.opts.Budget.deposit()
			}
			end = &r.stats.Recovered
			on.raise(SignalRecovered, Event{n, 0, last})
			return err
		}
	}
}

// next returns the delay after attempt n, or why there is no further attempt.
func (r *Retrier) next(ctx context.Context, n int, begun time.Duration, err error) (delay time.Duration, cause error) {
	if n >= r.opts.Attempts {
		return 0, ErrAttempts
	}
	var asked bool
	guard.Do("RetryAfter", func() { delay, asked = askedDelay(err) }) // after a panic, nothing is asked for
	switch {
	case asked && delay > r.opts.MaxDelay:
		return 0, errMaxDelay
	case !asked:
		if delay = r.opts.Backoff(n); delay < 0 {
			return 0, errStopped
		}
		delay = min(delay, r.opts.MaxDelay)
		if r.opts.Jitter != nil {
			delay = min(r.opts.Jitter(delay), r.opts.MaxDelay)
		}
	}
	delay = max(0, delay)
	if r.opts.MaxElapsed > 0 && delay > r.opts.MaxElapsed-(time.Since(r.base)-begun) {
		return 0, errMaxElapsed
	}
	if end, ok := ctx.Deadline(); ok && delay > 0 && delay >= time.Until(end) {
		return 0, ErrDeadline
	}
	return delay, nil
}

// wait waits for the delay after attempt n. It returns false if ctx has ended.
func (r *Retrier) wait(ctx context.Context, on raiser, n int, delay time.Duration, err error, suspends bool) bool {
	if delay > 0 {
		on.raise(SignalDelayed, Event{n, delay, err})
		count(r, &r.stats.Waiting, 1)
		what := fmt.Sprintf("attempt %d after the error %.200q", n+1, unmark(err))
		until := time.Now().Add(delay)
		waits, end := context.WithDeadline(ctx, until)
		if suspends {
			_ = on.op.Suspend(waits, what, func(ctx context.Context) error { <-ctx.Done(); return nil })
		} else {
			waited := on.op.WaitsFor(what, until)
			<-waits.Done()
			waited()
		}
		end()
		count(r, &r.stats.Waiting, -1)
	}
	return ctx.Err() == nil
}

// A raiser raises the signals of a call: through its operation, or on the sink of r.
type raiser struct {
	r  *Retrier
	op *core.Operation
}

func (on raiser) raise(name string, e Event) {
	kind := signals.NewKind[Event](name)
	e.Err = unmark(e.Err)
	if on.op == nil {
		kind.Raise(on.r.opts.Sink, on.r.opts.Name, e)
		return
	}
	key := on.op.Key()
	if key == "" {
		key = on.r.opts.Name
	}
	kind.Raise(on.op, key, e)
}
