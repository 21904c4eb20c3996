package circuitbreaker

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/breaker"
)

// SignalOpen is what the name of the held fact begins with: the fact of the breaker called
// api is "circuit.open.api".
const SignalOpen = "circuit.open"

// An OpenError says that a breaker allows no call. It matches ErrOpen.
type OpenError = breaker.OpenError

// ErrOpen matches every [OpenError].
var ErrOpen = breaker.ErrOpen

// Options configure a [Breaker]. The zero value is the default: it is open while there are
// five signals called "failure" of the last 30 seconds.
type Options struct {
	// Name is the end of the name of the fact; "" means "breaker". It must not have the
	// characters of patterns: * ? and the comma.
	Name string
	// Failure is the name of the signals that count, or a pattern; "" means "failure". See
	// [core.Match]. It must not match the fact. [Wrap] and [Breaker.Allow] raise the signal
	// themselves; if it is a pattern they raise "circuit.failure.NAME", which counts as well.
	Failure string
	// Threshold is how many failures in Window open the breaker. 0 means 5, or none if there
	// is a Rate; negative means none. It is at most [core.MonitorCap].
	Threshold int
	// Window is for how long a failure counts, from when its signal was raised. 0 means 30
	// seconds.
	Window time.Duration
	// Rate is the share of the calls in Window that must fail to open the breaker: 0.5 is
	// half of them. Calls are those of Wrap and Allow. Window slides in ten steps for this.
	// 0 or negative means none.
	Rate float64
	// MinCalls is how many calls there must be in Window before Rate matters. 0 means 20,
	// negative no minimum.
	MinCalls int
	// HalfOpen is how many probes a half-open breaker allows at once, and how many must
	// succeed to close it. Probes are calls of Wrap and Allow. 0 or negative means none: the
	// breaker closes when failures have left the window, or after OpenFor if Rate or Trip
	// has opened it.
	HalfOpen int
	// OpenFor is how long the breaker is open before it is half-open, and for how long a
	// probe without a result keeps others away. 0 means Window.
	OpenFor time.Duration
	// CountIf says whether an error of a call is a failure; other errors are successes. nil
	// means all errors but those that match [context.Canceled]. One of the latter
	// that it does not count is neither. It must be safe for concurrent use. A panic is a failure.
	CountIf func(error) bool
}

func (o Options) resolved(on core.Sensor) (Options, error) {
	o.Name, o.Failure, o.Window = cmp.Or(o.Name, "breaker"), cmp.Or(o.Failure, "failure"), cmp.Or(o.Window, 30*time.Second)
	o.OpenFor, o.HalfOpen = cmp.Or(o.OpenFor, o.Window), max(0, o.HalfOpen)
	switch {
	case on == nil:
		return o, fmt.Errorf("circuitbreaker: New needs a sink or a coordinator, not nil")
	case strings.ContainsAny(o.Name, "*?,"):
		return o, fmt.Errorf("circuitbreaker: Options.Name is %q, but must not have the characters * ? and comma", o.Name)
	case core.Match(o.Failure, SignalOpen+"."+o.Name):
		return o, fmt.Errorf("circuitbreaker: Options.Failure is %q, but must not match the breaker's own fact", o.Failure)
	case o.Window < 0 || o.OpenFor < 0:
		return o, fmt.Errorf("circuitbreaker: Options.Window is %v and OpenFor is %v, but both must be more than 0", o.Window, o.OpenFor)
	case o.Rate > 0 && o.Threshold <= 0:
		o.Threshold = core.MonitorCap + 1 // never
	case o.Threshold < 0 || o.Threshold > core.MonitorCap:
		return o, fmt.Errorf("circuitbreaker: Options.Threshold is %d, but must be from 1 to %d, or none with a Rate", o.Threshold, core.MonitorCap)
	}
	o.Threshold = cmp.Or(o.Threshold, 5)
	return o, nil
}

// A Breaker says whether calls may be made, from signals about failures. Make one with
// [New], and close it. All methods are safe for concurrent use. It has no goroutine and no
// timer. It costs a monitor of the sink. A call that is allowed costs an atomic load, with
// Rate a clock reading and a lock as well.
type Breaker struct {
	opts     Options // resolved
	sink     *core.Sink
	failure  string // that calls raise
	failures *core.Monitor
	shared   *breaker.Shared
	release  func() // the fact; of changed
}

// New makes a breaker that counts the signals of a sink, or of the operations of a
// coordinator, those present included, or says what is wrong.
func New(on core.Sensor, opts Options) (*Breaker, error) {
	opts, err := opts.resolved(on)
	if err != nil {
		return nil, err
	}
	b := &Breaker{opts: opts, sink: on.Sink(), failure: opts.Failure, release: func() {}}
	if strings.ContainsAny(opts.Failure, "*?,") {
		b.failure = "circuit.failure." + opts.Name
		opts.Failure += ", " + b.failure
	}
	rule := breaker.Options{Threshold: -1, Window: opts.Window, Rate: opts.Rate, MinCalls: opts.MinCalls, OpenFor: opts.OpenFor, Probes: opts.HalfOpen}
	if b.shared, err = breaker.NewShared(b.changed, rule); err != nil {
		return nil, fmt.Errorf("circuitbreaker: %w", err)
	}
	b.failures = on.Monitor(opts.Failure, opts.Window)
	b.failures.OnCount(opts.Threshold, opts.Threshold-1, b.shared.Over)
	return b, nil
}

// changed is called for each change of the state.
func (b *Breaker) changed(state breaker.State, lease time.Duration) {
	b.release()
	if state == breaker.Open {
		b.release = b.sink.Hold(SignalOpen+"."+b.opts.Name, "", lease)
	} else if state == breaker.Closed && b.opts.HalfOpen > 0 {
		b.failures.Reset()
	}
}

// Name is Options.Name.
func (b *Breaker) Name() string { return b.opts.Name }

// Sink is the sink on which the fact is held.
func (b *Breaker) Sink() *core.Sink { return b.sink }

// State is the state: [breaker.Closed], [breaker.Open] or [breaker.HalfOpen].
func (b *Breaker) State() breaker.State { return b.shared.State() }

// Open reports whether the state is [breaker.Open].
func (b *Breaker) Open() bool { return b.State() == breaker.Open }

// Failures is how many failures count at present. It costs a lock.
func (b *Breaker) Failures() int { return b.failures.Count() }

// ClosesIn is how long the breaker will be open if there are no more failures; 0 unless it
// is open. With HalfOpen it is half-open then.
func (b *Breaker) ClosesIn() time.Duration {
	if b.opts.HalfOpen > 0 {
		return b.shared.ClosesIn()
	}
	return max(b.shared.ClosesIn(), b.failures.Below(b.opts.Threshold))
}

// Check returns an [OpenError] if the breaker is open, otherwise nil. It begins no call, and
// so no probe. While the breaker is closed it costs an atomic load.
func (b *Breaker) Check() error {
	if b.Open() {
		return b.refusal()
	}
	return nil
}

// Allow begins a call: the caller makes it and then calls done, once, with its error. If no
// call is allowed it returns an [OpenError]. A failure is raised on the sink. It is for
// calls that are no functions, such as streams; see [Wrap].
func (b *Breaker) Allow() (done func(error), err error) {
	end, ok := b.shared.Allow()
	if !ok {
		return nil, b.refusal()
	}
	return func(err error) { b.raise(context.Background(), end(breaker.ResultOf(err, b.opts.CountIf))) }, nil
}

// Trip opens the breaker for [Options.OpenFor], whatever its state.
func (b *Breaker) Trip() { b.shared.Trip() }

// Reset closes the breaker, whatever its state, and forgets all failures.
func (b *Breaker) Reset() {
	b.shared.Reset()
	b.failures.Reset()
}

// Close ends the counting and releases the fact: from then on the breaker is closed. It may
// be called many times, from anywhere. It returns nil.
func (b *Breaker) Close() error {
	b.failures.Stop()
	b.shared.Stop()
	return nil
}

// Wrap returns work that runs if the breaker allows it, and otherwise returns an
// [OpenError]. If it fails, the failure is raised: through the operation in the context if
// that raises its signals on the breaker's sink, otherwise on the sink. A breaker over a
// coordinator counts only what the operations of that raise. With HalfOpen, a call that
// began before the last change of the state does not count and raises nothing. Wrap panics
// if b or work is nil.
func Wrap[T any](b *Breaker, work core.Work[T]) core.Work[T] {
	if work == nil {
		panic("circuitbreaker: Wrap needs a breaker and a function")
	}
	do := WrapResult(b, func(ctx context.Context, item T) (struct{}, error) { return struct{}{}, work(ctx, item) })
	return func(ctx context.Context, item T) error {
		_, err := do(ctx, item)
		return err
	}
}

// WrapResult is Wrap for work with a result.
func WrapResult[In, Out any](b *Breaker, work core.ResultWork[In, Out]) core.ResultWork[In, Out] {
	if b == nil || work == nil {
		panic("circuitbreaker: WrapResult needs a breaker and a function")
	}
	return func(ctx context.Context, in In) (out Out, err error) {
		c, ok := b.shared.Begin()
		if !ok {
			return out, b.refusal()
		}
		result := breaker.Failure // if it panics
		defer func() { b.raise(ctx, b.shared.End(c, result)) }()
		out, err = work(ctx, in)
		result = breaker.ResultOf(err, b.opts.CountIf)
		return out, err
	}
}

func (b *Breaker) refusal() error {
	return &OpenError{Name: b.opts.Name, Failures: b.Failures(), RetryAfter: b.ClosesIn()}
}

// raise raises a failure that counts.
func (b *Breaker) raise(ctx context.Context, counts bool) {
	if op := core.OperationFrom(ctx); counts && op.Sink() == b.sink {
		op.Raise(b.failure)
	} else if counts {
		b.sink.RaiseKey(b.failure, b.opts.Name)
	}
}
