package retry

import (
	"cmp"
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/breaker"
	"github.com/ephemeralgo/ephemeral/core/guard"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// Options configure a [Retrier]. The zero value is the default.
type Options struct {
	// Name is the key of signals, unless they are raised by an operation that has a key.
	// "" means "retry".
	//
	//ephemeral:none
	Name string
	// Sink gets the signals of calls that are not part of an operation. nil means a new
	// sink.
	Sink *signals.Sink

	// Attempts is how often a call may call its function: 3 attempts are the first one
	// and 2 retries. 0 means 3, negative means no limit.
	Attempts int
	// Backoff returns the delay before the next attempt. A negative delay means that
	// there is no further attempt. If the error asks for a delay, Backoff is not called;
	// see [After]. nil means Linear(50 * time.Millisecond).
	Backoff Backoff
	// MaxDelay is the longest delay before an attempt. A longer delay of Backoff or Jitter
	// is cut to MaxDelay. If an error asks for a longer delay, the call gives up at once.
	// 0 and negative mean no limit.
	MaxDelay time.Duration
	// Jitter changes the delay of Backoff; see [FullJitter] and [EqualJitter]. It does not
	// change a delay that an error asks for. A negative result means 0. It must be safe
	// for concurrent use. nil means no jitter.
	Jitter func(time.Duration) time.Duration

	// AttemptTimeout is how long one attempt may take. It starts with the attempt, not with
	// the wait for a slot. Then its context ends, with the cause [ErrAttemptTimeout]. An
	// attempt that fails because of the timeout is retried like any other. 0 and negative
	// mean no limit.
	AttemptTimeout time.Duration
	// MaxElapsed is the longest time from the start of a call to the start of its last
	// attempt. If the next attempt would start later, the call gives up at once. A running
	// attempt is not interrupted. 0 and negative mean no limit.
	MaxElapsed time.Duration
	// RetryIf reports whether an error is retried. nil means [Retryable]. If RetryIf also accepts
	// [breaker.ErrOpen], a call waits until its breaker allows calls. Each such wait uses up an
	// attempt, so allow more Attempts. RetryIf is not called for an error marked [Permanent], and
	// not after the end of the context of the call. It must be safe for concurrent use.
	RetryIf func(error) bool
	// Budget limits the retries of all Retriers that share it. nil means no such limit.
	Budget *Budget
}

// Signals of a [Retrier]. The payload is an [Event]. If the call is part of an operation,
// the operation raises them, with its key. Otherwise they are raised on [Options.Sink]. The
// key of a signal that would have no key is [Options.Name]. If the first attempt succeeds,
// there is no signal.
const (
	// SignalDelayed: an attempt has failed, and the next one starts after a delay.
	SignalDelayed = "retry.delayed"
	// SignalStarted: a second or later attempt starts.
	SignalStarted = "retry.started"
	// SignalRecovered: a second or later attempt has succeeded.
	SignalRecovered = "retry.recovered"
	// SignalExhausted: a call gave up because of Attempts, MaxElapsed, MaxDelay,
	// the Backoff, or the deadline of the context.
	SignalExhausted = "retry.exhausted"
	// SignalBudgetExhausted: a call gave up because of [ErrBudget].
	SignalBudgetExhausted = "retry.budget.exhausted"
)

// An Event is the payload of the signals; see [Events].
type Event struct {
	Attempt int           // for [SignalStarted]: the attempt that starts; for the others: the last one
	Delay   time.Duration // for [SignalDelayed] and [SignalStarted]: the delay before the next attempt; else 0
	Err     error         // error of the last failed attempt, without the mark of [After]
}

// Events are the signals with their payload. [signals.Family.Named] selects one.
var Events = signals.NewFamily[Event]("retry.*")

// A Retrier repeats failed calls, after a delay and a limited number of times. Make one with
// [New]. It has no goroutine and needs no closing. All methods are safe for concurrent use. A
// call whose first attempt succeeds costs about 20 nanoseconds. Without AttemptTimeout it
// allocates nothing.
type Retrier struct {
	opts Options // resolved
	base time.Time

	atOnce atomic.Uint64 // calls that succeeded at the first attempt

	mu    sync.Mutex
	stats Stats // counters of all other calls
}

// Stats are the counters of a [Retrier], read together. A call that has ended is counted
// once, in Succeeded or in Failed. At every instant
//
//	Failed = Permanent + Exhausted + OverBudget + Cancelled + Panicked
type Stats struct {
	Succeeded  uint64 `json:"succeeded"`
	Recovered  uint64 `json:"recovered"` // calls in Succeeded that needed a retry
	Failed     uint64 `json:"failed"`
	Permanent  uint64 `json:"permanent"`  // calls whose error is not retried
	Exhausted  uint64 `json:"exhausted"`  // calls that raised [SignalExhausted]
	OverBudget uint64 `json:"overBudget"` // calls that found the budget spent
	Cancelled  uint64 `json:"cancelled"`  // calls whose context had ended
	Panicked   uint64 `json:"panicked"`   // calls whose function panicked or ended its goroutine

	Retries uint64 `json:"retries"` // attempts after the first attempts, summed over all calls
	Waiting int    `json:"waiting"` // calls that wait for their next attempt
}

func (o Options) resolved() Options {
	o.Name = cmp.Or(o.Name, "retry")
	o.Sink = cmp.Or(o.Sink, signals.NewSink(signals.SinkOptions{}))
	o.Attempts = cmp.Or(o.Attempts, 3)
	if o.Attempts < 0 {
		o.Attempts = math.MaxInt
	}
	if o.Backoff == nil {
		o.Backoff = Linear(50 * time.Millisecond)
	}
	if o.MaxDelay <= 0 {
		o.MaxDelay = longest
	}
	if o.RetryIf == nil {
		o.RetryIf = Retryable
	}
	return o
}

// Retryable is the default of [Options.RetryIf]: it accepts all errors, except those that match
// [context.Canceled], [core.ErrClosed], [core.ErrWouldDeadlock] or [breaker.ErrOpen].
func Retryable(err error) bool {
	return !guard.Is(err, context.Canceled) && !guard.Is(err, core.ErrClosed) && !guard.Is(err, core.ErrWouldDeadlock) &&
		!guard.Is(err, breaker.ErrOpen)
}

// New makes a Retrier. All options are valid: the error is nil.
func New(opts Options) (*Retrier, error) {
	return &Retrier{opts: opts.resolved(), base: time.Now()}, nil
}

// Do calls work until it succeeds, and then returns nil. If an error is not retried, Do
// returns that error. If Do gives up, it returns an [Error], which matches the reason and the
// last error.
//
// The first attempt starts at once, even if ctx has ended. After the end of ctx there is no
// further attempt, and Do does not wait any longer; the reason is the cause of ctx. If the
// deadline of ctx comes before the next attempt, Do does not wait at all. If ctx ends during
// an attempt, and the error of the attempt matches the cause of ctx, Do returns that error
// itself.
//
// The context of an attempt is made from ctx. It ends after [Options.AttemptTimeout], and
// [Attempt] reads the number of the attempt from it. Do calls work on the goroutine of its
// caller, and does not recover panics. If the caller is an operation, it keeps its slot while
// it waits; with [Wrap] it does not. Do panics if work is nil.
func (r *Retrier) Do(ctx context.Context, work func(context.Context) error) error {
	if work == nil {
		panic("retry: Do needs a function")
	}
	return r.do(ctx, work, false)
}

// DoValue is [Retrier.Do] for a function with a result. It returns the result of the last
// attempt, even if that attempt failed. It panics if r or work is nil.
func DoValue[T any](ctx context.Context, r *Retrier, work func(context.Context) (T, error)) (T, error) {
	if r == nil || work == nil {
		panic("retry: DoValue needs a Retrier and a function")
	}
	return doValue(ctx, r, work, false)
}

func doValue[T any](ctx context.Context, r *Retrier, work func(context.Context) (T, error), wrapped bool) (value T, err error) {
	err = r.do(ctx, func(ctx context.Context) (err error) {
		value, err = work(ctx)
		return err
	}, wrapped)
	return value, err
}

// Wrap returns work that retries each item by r, for any coordinator. While the operation of
// an item waits for its next attempt, it is suspended. It gives up its slot, so that other
// items run: it does not count for the limits of its lane and class either. It keeps its key,
// so that no item of its key overtakes it. Explain shows the error of the last attempt. It
// gets a slot back before pending items of its lane, and after items of higher lanes that
// can start. [core.Options.MaxSuspended] limits how many slots are given up at once. Work that
// calls [Retrier.Do] itself keeps its slot.
//
// Each further attempt charges the class and the key of the operation with one call (see
// [core.Operation.Charge]), and does not wait for tokens: other items start later.
//
// An operation is one item and counts once, however many attempts it has. If it is cancelled
// while it waits, it ends as soon as it has a slot. Code that calls the result of Wrap must not
// hold a lock that other items need. Wrap panics if r or work is nil.
func Wrap[T any](r *Retrier, work core.Work[T]) core.Work[T] {
	if r == nil || work == nil {
		panic("retry: Wrap needs a Retrier and a function")
	}
	return func(ctx context.Context, item T) error {
		return r.do(ctx, func(ctx context.Context) error { return work(ctx, item) }, true)
	}
}

// WrapResult is [Wrap] for work with a result; see [DoValue].
func WrapResult[In, Out any](r *Retrier, work core.ResultWork[In, Out]) core.ResultWork[In, Out] {
	if r == nil || work == nil {
		panic("retry: WrapResult needs a Retrier and a function")
	}
	return func(ctx context.Context, in In) (Out, error) {
		return doValue(ctx, r, func(ctx context.Context) (Out, error) { return work(ctx, in) }, true)
	}
}

// Sink is [Options.Sink], or the sink that was made in its place.
func (r *Retrier) Sink() *signals.Sink { return r.opts.Sink }

// Name is [Options.Name], or its default.
func (r *Retrier) Name() string { return r.opts.Name }

// Stats returns the counters.
func (r *Retrier) Stats() Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.stats
	s.Succeeded = r.atOnce.Load() + s.Recovered
	s.Failed = s.Permanent + s.Exhausted + s.OverBudget + s.Cancelled + s.Panicked
	return s
}

// count adds by to a counter of r.stats.
func count[N uint64 | int](r *Retrier, counter *N, by N) {
	r.mu.Lock()
	*counter += by
	r.mu.Unlock()
}
