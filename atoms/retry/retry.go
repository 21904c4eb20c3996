package retry

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
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
	// included: 3 attempts are 2 retries. 0 means 3, negative no limit.
	Attempts int
	// Backoff says how long to wait between two attempts, unless the error says so
	// itself; see [After]. A negative delay means that there is no further attempt.
	// nil means Linear(50 * time.Millisecond).
	Backoff Backoff
	// MaxDelay is the longest wait between two attempts. A longer backoff is cut
	// to it; on an error that asks for a longer delay the call gives up at once. 0
	// and negative mean no limit.
	MaxDelay time.Duration
	// Jitter changes what Backoff returned, within MaxDelay; see [FullJitter] and
	// [EqualJitter]. A negative result means at once. It must be safe for concurrent
	// use. nil means none.
	Jitter func(time.Duration) time.Duration

	// AttemptTimeout is how long the context of one attempt lasts. An attempt that
	// fails because of it is retried like any other. 0 and negative mean as long as
	// the context of the call.
	AttemptTimeout time.Duration
	// MaxElapsed is how long after its beginning a call still goes on to another
	// attempt. If the next attempt would begin later, the call gives up at once. An
	// attempt that has begun is not interrupted. 0 and negative mean no limit.
	MaxElapsed time.Duration
	// RetryIf says whether there is another attempt after an error; nil means after all
	// errors but those that match [context.Canceled], [core.ErrClosed] or
	// [core.ErrWouldDeadlock]. It is not called for an error marked
	// [Permanent], nor when the context of the call has ended: then there is no other
	// attempt.
	RetryIf func(error) bool
	// Budget, which Retriers may share, bounds the retries of all calls together;
	// nil means no such bound.
	Budget *Budget
}

// Signals that a [Retrier] raises: through the operation in the context of the call, with
// its key, if there is one, and otherwise on [Options.Sink]. Without a key of an operation,
// the key is [Options.Name]. A first attempt that succeeds raises no signal. The payload
// is an [Event].
const (
	// SignalDelayed: an attempt has failed and the next one has to wait.
	SignalDelayed = "retry.delayed"
	// SignalStarted: an attempt begins that is not the first.
	SignalStarted = "retry.started"
	// SignalRecovered: an attempt that is not the first has succeeded.
	SignalRecovered = "retry.recovered"
	// SignalExhausted: a call gave up because it had no attempts or no time left, or
	// because the backoff said stop; see [ErrAttempts], [ErrMaxElapsed], [ErrDeadline],
	// [ErrMaxDelay] and [ErrStopped].
	SignalExhausted = "retry.exhausted"
	// SignalBudgetExhausted: a call gave up because the budget was spent; see [ErrBudget].
	SignalBudgetExhausted = "retry.budget.exhausted"
)

// An Event is the payload of the signals. To subscribe to a signal with its payload, use
// its kind, such as [Started].
type Event struct {
	Attempt int           // the one that begins or, for the other signals, has ended
	Delay   time.Duration // before the next attempt, or the one that begins; else 0
	Err     error         // what the last failed attempt returned, without the mark of [After]
}

// The kinds of the signals.
var (
	Delayed         = core.NewKind[Event](SignalDelayed)
	Started         = core.NewKind[Event](SignalStarted)
	Recovered       = core.NewKind[Event](SignalRecovered)
	Exhausted       = core.NewKind[Event](SignalExhausted)
	BudgetExhausted = core.NewKind[Event](SignalBudgetExhausted)
)

// A Retrier calls functions again that have failed, after a delay, and a bounded number of
// times. Make one with [New]; it starts nothing, keeps nothing but counters and needs no
// closing. All methods are safe for concurrent use. A call whose first attempt succeeds
// costs some 20 nanoseconds and allocates nothing, except with AttemptTimeout, and once in
// an operation while a retry of another call runs.
type Retrier struct {
	opts Options // resolved
	base time.Time

	atOnce atomic.Uint64 // calls that succeeded at the first attempt

	mu    sync.Mutex
	stats Stats // of the others
}

// Stats are the counters of a [Retrier], read together. A call is counted when it
// has ended, in Succeeded or in Failed, so that at every instant
//
//	Failed = Permanent + Exhausted + OverBudget + Cancelled + Panicked
type Stats struct {
	Succeeded  uint64 `json:"succeeded"`
	Recovered  uint64 `json:"recovered"` // of these, not at the first attempt
	Failed     uint64 `json:"failed"`
	Permanent  uint64 `json:"permanent"`  // on an error that is not retried
	Exhausted  uint64 `json:"exhausted"`  // no attempts or no time left, or stopped by the backoff
	OverBudget uint64 `json:"overBudget"` // the budget was spent
	Cancelled  uint64 `json:"cancelled"`  // because the context of the call had ended
	Panicked   uint64 `json:"panicked"`   // a function panicked or ended its goroutine

	Retries uint64 `json:"retries"` // attempts after the first, of all calls
	Waiting int    `json:"waiting"` // calls that wait for their next attempt
}

// LogValue groups the counters by their JSON names.
func (s Stats) LogValue() slog.Value { return core.StatsValue(s) }

// String is the JSON form.
func (s Stats) String() string { return core.StatsString(s) }

func (o Options) resolved() Options {
	o.Name = cmp.Or(o.Name, "retry")
	o.Sink = cmp.Or(o.Sink, core.NewSink(core.SinkOptions{}))
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
		o.RetryIf = func(err error) bool {
			return !errors.Is(err, context.Canceled) && !errors.Is(err, core.ErrClosed) && !errors.Is(err, core.ErrWouldDeadlock)
		}
	}
	return o
}

// New makes a Retrier. All options are valid: the error is nil.
func New(opts Options) (*Retrier, error) {
	return &Retrier{opts: opts.resolved(), base: time.Now()}, nil
}

// Do calls work until it succeeds, and returns nil; or until it returns an error that is
// not retried, and returns that error; or until it gives up, and returns an
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
	return r.do(ctx, work, false)
}

// DoValue is Do for a function that has a result; it returns what the last attempt
// did. It panics if r or work is nil.
func DoValue[T any](ctx context.Context, r *Retrier, work func(context.Context) (T, error)) (T, error) {
	if r == nil || work == nil {
		panic("retry: DoValue needs a Retrier and a function")
	}
	var value T
	err := r.do(ctx, func(ctx context.Context) (err error) {
		value, err = work(ctx)
		return err
	}, false)
	return value, err
}

// Wrap returns work that calls Do of r for every item, for any coordinator. While it waits
// between two attempts it keeps its slot there; in a [Queue] it does not. Wrap panics if r
// or work is nil.
func Wrap[T any](r *Retrier, work core.Work[T]) core.Work[T] {
	if r == nil || work == nil {
		panic("retry: Wrap needs a Retrier and a function")
	}
	return wrap(r, work, false)
}

// wrap is Wrap; for suspends see [Retrier.do].
func wrap[T any](r *Retrier, work core.Work[T], suspends bool) core.Work[T] {
	return func(ctx context.Context, item T) error {
		return r.do(ctx, func(ctx context.Context) error { return work(ctx, item) }, suspends)
	}
}

// WrapResult is [Wrap] for work that has a result, which it returns as [DoValue] does.
func WrapResult[In, Out any](r *Retrier, work core.ResultWork[In, Out]) core.ResultWork[In, Out] {
	if r == nil || work == nil {
		panic("retry: WrapResult needs a Retrier and a function")
	}
	return func(ctx context.Context, in In) (Out, error) {
		return DoValue(ctx, r, func(ctx context.Context) (Out, error) { return work(ctx, in) })
	}
}

// Name is [Options.Name].
func (r *Retrier) Name() string { return r.opts.Name }

// Sink is where signals are raised outside of an operation.
func (r *Retrier) Sink() *core.Sink { return r.opts.Sink }

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
