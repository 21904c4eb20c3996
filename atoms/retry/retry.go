package retry

import (
	"context"
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// Options configure a [Retrier]. The zero value is the default.
type Options struct {
	// Name tells Retriers apart: it is the key of the signals that are not raised by
	// an operation with a key of its own. "" means "retry".
	Name string
	// Sink is where signals are raised outside of an operation; nil means one of
	// the Retrier's own.
	Sink *core.Sink

	// Attempts is how often a call calls its function at most, the first time
	// included: so there is one retry less. 0 means 3, negative no limit.
	Attempts int
	// Backoff says how long to wait between two attempts, unless the error says so
	// itself; see [After]. nil means Linear(50 * time.Millisecond).
	Backoff Backoff
	// MaxDelay is the longest wait between two attempts. A longer backoff is cut
	// to it; on an error that asks for a longer delay the call gives up at once. 0
	// and negative mean no limit.
	MaxDelay time.Duration
	// Jitter changes what Backoff returned, within MaxDelay; see [FullJitter] and
	// [EqualJitter]. It must be safe for concurrent use. nil means none.
	Jitter func(time.Duration) time.Duration

	// AttemptTimeout is how long the context of one attempt lasts. An attempt that
	// fails because of it is retried like any other. 0 and negative mean as long as
	// the context of the call.
	AttemptTimeout time.Duration
	// MaxElapsed is how long after its beginning a call still goes on to another
	// attempt. One that has to wait beyond that is not waited for: the call gives up
	// at once. An attempt that has begun takes as long as it takes. 0 and negative
	// mean no limit.
	MaxElapsed time.Duration
	// RetryIf says whether an error is worth another attempt; nil means all are that
	// do not match [context.Canceled]. It is not asked about an error marked
	// [Permanent], nor when the context of the call has ended: then there is none.
	RetryIf func(error) bool
	// Budget, which Retriers may share, bounds the retries of all calls together;
	// nil means no such bound.
	Budget *Budget
}

// Signals that a [Retrier] raises: through the operation that is in the context of
// the call, if there is one, with its key, and otherwise on [Options.Sink]; with
// [Options.Name] as key, if there is no other. A first attempt that succeeds raises
// none. [core.Signal.Payload] is an [Event].
const (
	// SignalBackoff: an attempt has failed and the next one has to wait.
	SignalBackoff = "retry.backoff"
	// SignalAttempt: an attempt begins that is not the first.
	SignalAttempt = "retry.attempt"
	// SignalRecovered: an attempt that is not the first has succeeded.
	SignalRecovered = "retry.recovered"
	// SignalExhausted: a call gave up for want of attempts or time; see
	// [ErrAttempts], [ErrMaxElapsed], [ErrDeadline] and [ErrMaxDelay].
	SignalExhausted = "retry.exhausted"
	// SignalBudgetExhausted: a call gave up for want of budget; see [ErrBudget].
	SignalBudgetExhausted = "retry.budget.exhausted"
)

// An Event is the payload of the signals. To subscribe to one of them with its
// payload, make its kind: core.NewKind[retry.Event](retry.SignalAttempt).
type Event struct {
	Attempt int           // the one that begins or, for the other signals, has ended
	Delay   time.Duration // before the next attempt, or the one that begins; else 0
	Err     error         // what the last failed attempt returned
}

var (
	kindBackoff   = core.NewKind[Event](SignalBackoff)
	kindAttempt   = core.NewKind[Event](SignalAttempt)
	kindRecovered = core.NewKind[Event](SignalRecovered)
	kindExhausted = core.NewKind[Event](SignalExhausted)
	kindBudget    = core.NewKind[Event](SignalBudgetExhausted)
)

// A Retrier calls functions again that have failed, after a while, and a bounded
// number of times. Make one with [New]; it starts nothing, keeps nothing but
// counters and needs no closing. All methods are safe for concurrent use. A call
// whose first attempt succeeds costs some 20 nanoseconds and allocates nothing,
// except with AttemptTimeout, and once in an operation while somebody else's retry runs.
type Retrier struct {
	name string
	sink *core.Sink

	attempts       int
	backoff        Backoff
	maxDelay       time.Duration
	jitter         func(time.Duration) time.Duration
	attemptTimeout time.Duration
	maxElapsed     time.Duration
	retryIf        func(error) bool
	budget         *Budget
	base           time.Time

	atOnce atomic.Uint64 // calls that succeeded at the first attempt

	mu    sync.Mutex
	stats Stats // of the others
}

// Stats are the counters of a [Retrier], read as one cut. A call is counted when it
// has ended, in Succeeded or in Failed, so that at every instant
//
//	Failed = Permanent + Exhausted + OverBudget + Cancelled + Panicked
type Stats struct {
	Succeeded  uint64 `json:"succeeded"`
	Recovered  uint64 `json:"recovered"` // of these, not at the first attempt
	Failed     uint64 `json:"failed"`
	Permanent  uint64 `json:"permanent"`  // on an error that was not worth a retry
	Exhausted  uint64 `json:"exhausted"`  // for want of attempts or time
	OverBudget uint64 `json:"overBudget"` // for want of budget
	Cancelled  uint64 `json:"cancelled"`  // because the context of the call had ended
	Panicked   uint64 `json:"panicked"`   // a function panicked or ended its goroutine

	Retries uint64 `json:"retries"` // attempts after the first, of all calls
	Waiting int    `json:"waiting"` // calls that wait for their next attempt
}

// New makes a Retrier, or says what is wrong with the options.
func New(opts Options) (*Retrier, error) {
	r := &Retrier{
		name:           opts.Name,
		sink:           opts.Sink,
		attempts:       opts.Attempts,
		backoff:        opts.Backoff,
		maxDelay:       opts.MaxDelay,
		jitter:         opts.Jitter,
		attemptTimeout: opts.AttemptTimeout,
		maxElapsed:     opts.MaxElapsed,
		retryIf:        opts.RetryIf,
		budget:         opts.Budget,
		base:           time.Now(),
	}
	if r.name == "" {
		r.name = "retry"
	}
	if r.sink == nil {
		r.sink = core.NewSink(core.SinkOptions{})
	}
	switch {
	case r.attempts == 0:
		r.attempts = 3
	case r.attempts < 0:
		r.attempts = math.MaxInt
	}
	if r.backoff == nil {
		r.backoff = Linear(50 * time.Millisecond)
	}
	if r.maxDelay <= 0 {
		r.maxDelay = longest
	}
	if r.retryIf == nil {
		r.retryIf = func(err error) bool { return !errors.Is(err, context.Canceled) }
	}
	return r, nil
}

// Do calls work until it succeeds, and returns nil; or until its error is not worth
// another attempt, and returns that error; or until it gives up, and returns an
// [Error] that matches both the reason and the last error.
//
// The first attempt begins at once, even if ctx has ended. When ctx ends later there
// is no further attempt, and Do, if it waits for one, returns at once; the reason is
// the cause of ctx. If its deadline would come first, Do does not wait at all. If ctx
// ends during an attempt whose error matches its cause already, that error is returned
// as it is.
//
// The context of an attempt is ctx, with the end of [Options.AttemptTimeout] and the
// number for [Attempt]. Do calls everything on the goroutine of its caller. A panic
// of work is not recovered. Do itself panics if work is nil.
func (r *Retrier) Do(ctx context.Context, work func(context.Context) error) error {
	if work == nil {
		panic("retry: Do needs a function")
	}
	return r.do(ctx, work, nil)
}

// Value is Do for a function that has a result; it returns what the last attempt
// did. It panics if r or work is nil.
func Value[T any](ctx context.Context, r *Retrier, work func(context.Context) (T, error)) (T, error) {
	if r == nil || work == nil {
		panic("retry: Value needs a Retrier and a function")
	}
	var value T
	err := r.do(ctx, func(ctx context.Context) (err error) {
		value, err = work(ctx)
		return err
	}, nil)
	return value, err
}

// Wrap returns work that does work by r: Do for every item. It is for any
// coordinator, and for whatever else wraps work; while it waits between two attempts
// it keeps its place there. See [Queue] for one that does not. It panics if r or work
// is nil.
func Wrap[T any](r *Retrier, work core.Work[T]) core.Work[T] {
	if r == nil || work == nil {
		panic("retry: Wrap needs a Retrier and a function")
	}
	return func(ctx context.Context, item T) error {
		return r.do(ctx, func(ctx context.Context) error { return work(ctx, item) }, nil)
	}
}

// WrapResult is [Wrap] for work that has a result, which it returns as [Value] does.
func WrapResult[In, Out any](r *Retrier, work core.ResultWork[In, Out]) core.ResultWork[In, Out] {
	if r == nil || work == nil {
		panic("retry: WrapResult needs a Retrier and a function")
	}
	return func(ctx context.Context, in In) (Out, error) {
		return Value(ctx, r, func(ctx context.Context) (Out, error) { return work(ctx, in) })
	}
}

// Name is [Options.Name].
func (r *Retrier) Name() string { return r.name }

// Sink is where signals are raised outside of an operation.
func (r *Retrier) Sink() *core.Sink { return r.sink }

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
