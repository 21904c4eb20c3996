package circuitbreaker

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/breaker"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// The signals of a breaker. To each, the breaker adds a dot and its name: the breaker "api"
// holds "circuit.open.api". The key is the name of the breaker, too.
const (
	// SignalOpen is held while the breaker is open: it refuses calls.
	//
	//ephemeral:raises circuit.open.{Options.Name|breaker}
	SignalOpen = "circuit.open"
	// SignalHalfOpen is held while the breaker is half-open: it allows trials. It begins
	// before the end of SignalOpen, so that one of the two is held until the breaker closes.
	//
	//ephemeral:raises circuit.half_open.{Options.Name|breaker}
	SignalHalfOpen = "circuit.half_open"
	// SignalWouldOpen is held by a breaker with [Options.Shadow] while it would be open or half-open. It is the only
	// signal that such a breaker holds or raises, besides Failure.
	//
	//ephemeral:raises circuit.would_open.{Options.Name|breaker}
	SignalWouldOpen = "circuit.would_open"
	// SignalOpened is raised when the breaker opens. The payload is a [Change].
	//
	//ephemeral:raises breaker.opened.{Options.Name|breaker}
	SignalOpened = "breaker.opened"
	// SignalClosed is raised when the breaker allows all calls again, or is closed by
	// Close. The payload is a [Change].
	//
	//ephemeral:raises breaker.closed.{Options.Name|breaker}
	SignalClosed = "breaker.closed"
)

// Changes are the signals of all breakers that have a [Change] as payload.
var Changes = signals.NewFamily[Change](SignalOpened + ".*, " + SignalClosed + ".*")

// A Change says why a breaker has opened or closed.
type Change struct {
	Reason  string        `json:"reason"`           // a text for people
	OpenFor time.Duration `json:"openFor,omitzero"` // in SignalClosed: the time since the breaker opened, trials included
}

// failed is the beginning of the name of the signals that count by default.
const failed = "circuit.failure."

// An OpenError says that a breaker allows no call. It matches ErrOpen.
type OpenError = breaker.OpenError

// ErrOpen matches every [OpenError].
var ErrOpen = breaker.ErrOpen

// Options configure a [Breaker]. With the zero value, the breaker is open while it counts at
// least five failures of the last 30 seconds.
type Options struct {
	// Name is the end of the name of the held signal. "" means "breaker". Two breakers on one
	// sink need different names. The characters * and ? and the comma are not allowed, and
	// neither are blanks at the ends.
	//
	//ephemeral:none
	Name string
	// Failure is the name of the signals that count, or a pattern; see [signals.Match]. ""
	// means "circuit.failure.NAME". Any code may raise such a signal. [Wrap] and
	// [Breaker.Allow] raise it for a failed call; if Failure is a pattern, they raise
	// "circuit.failure.NAME", which counts as well. Breakers with the same Failure count
	// together. Failure must not match the signals that the breaker holds or raises, and must
	// have no blanks around it.
	//
	//ephemeral:pattern
	Failure string
	// Threshold is how many failures in Window open the breaker. 0 means 5, or none if there
	// is a Rate. With a Rate, negative means none. At most [signals.MonitorCap] is allowed.
	Threshold int
	// Window is how long a failure counts. 0 means 30 seconds.
	Window time.Duration
	// Rate is the share of the calls in Window that must fail to open the breaker: 0.5 is
	// half of them. Only calls of Wrap and Allow count. For this, Window moves in ten steps.
	// 0 and negative mean none.
	Rate float64
	// MinCalls is how many calls there must be in Window before Rate matters. 0 means 20,
	// negative means no minimum.
	MinCalls int
	// HalfOpen is how many trials (calls that test the service) a half-open breaker allows at once, and how
	// many must succeed to close it. Only calls of Wrap and Allow are trials. 0 and negative
	// mean none: the breaker closes when its failures are older than Window. If Rate or Trip
	// has opened it, it closes after OpenFor.
	HalfOpen int
	// OpenFor is how long the breaker is open before it is half-open. If a trial has no
	// result for this long, another one may start in its place. 0 means Window.
	OpenFor time.Duration
	// CountIf reports whether an error of a call is a failure of the service. nil means all
	// errors, except those that match [context.Canceled]. So by default, errors that are the
	// caller's fault (not found, or marked with retry.Permanent) count as well: use CountIf
	// to exclude them. An excluded error is a success, but one that matches
	// context.Canceled, or that stands for no failure (see guard.Failed of core/guard), such as
	// durable.Snooze, counts neither as success nor as failure. A panic is a failure.
	// CountIf must be safe for concurrent use.
	CountIf func(error) bool
	// Shadow: the breaker counts and changes its state as others do, but it allows every call, and holds
	// [SignalWouldOpen] instead of the other signals. So you see what it would do. State and Failures say how it would
	// be. A failed call that it would have refused neither counts nor raises Failure.
	Shadow bool
}

func (o Options) resolved(on signals.Sensor) (Options, error) {
	o.Name, o.Window = cmp.Or(o.Name, "breaker"), cmp.Or(o.Window, 30*time.Second)
	o.Failure, o.OpenFor, o.HalfOpen = cmp.Or(o.Failure, failed+o.Name), cmp.Or(o.OpenFor, o.Window), max(0, o.HalfOpen)
	switch {
	case core.IsNil(on):
		return o, fmt.Errorf("circuitbreaker: New needs a sink or a coordinator, not nil")
	case strings.ContainsAny(o.Name, "*?,") || strings.TrimSpace(o.Name) != o.Name:
		return o, fmt.Errorf("circuitbreaker: Options.Name is %q, but must not have the characters * ? and comma, and no blanks around it", o.Name)
	case strings.TrimSpace(o.Failure) != o.Failure:
		return o, fmt.Errorf("circuitbreaker: Options.Failure is %q, but must not have blanks around it", o.Failure)
	case slices.ContainsFunc([]string{SignalOpen, SignalHalfOpen, SignalWouldOpen, SignalOpened, SignalClosed}, func(own string) bool { return signals.Match(o.Failure, own+"."+o.Name) }):
		return o, fmt.Errorf("circuitbreaker: Options.Failure is %q, but must not match a signal of the breaker", o.Failure)
	case o.Window < 0 || o.OpenFor < 0:
		return o, fmt.Errorf("circuitbreaker: Options.Window is %v and OpenFor is %v, but both must be more than 0", o.Window, o.OpenFor)
	case o.Rate > 0 && o.Threshold <= 0:
		o.Threshold = signals.MonitorCap + 1 // never
	case o.Threshold < 0 || o.Threshold > signals.MonitorCap:
		return o, fmt.Errorf("circuitbreaker: Options.Threshold is %d, but must be from 1 to %d, or none with a Rate", o.Threshold, signals.MonitorCap)
	}
	o.Threshold = cmp.Or(o.Threshold, 5)
	return o, nil
}

// A Breaker counts failure signals, and refuses calls while there are too many. Make one with
// [New], and close it. All methods are safe for concurrent use. It has no goroutine. A timer
// runs only while it is open or at least Threshold failures count. It costs a monitor of the sink. A call
// that succeeds costs an atomic load, and with Rate a clock reading and a lock as well.
type Breaker struct {
	opts     Options // resolved
	sink     *signals.Sink
	failure  string // the signal that failed calls raise
	failures *signals.Monitor
	shared   *shared

	// Only the method changed uses these fields.
	state   breaker.State // the state that was reported last
	opened  time.Time
	release func() // ends the held signal
}

// New makes a breaker, or says what is wrong with the options. Pass a sink to count all
// failure signals of the sink, or a coordinator to count only failures of its
// operations. Signals that are present already count as well.
func New(on signals.Sensor, opts Options) (*Breaker, error) {
	opts, err := opts.resolved(on)
	if err != nil {
		return nil, err
	}
	b := &Breaker{opts: opts, sink: on.Sink(), failure: opts.Failure, state: breaker.Closed, release: func() {}}
	if strings.ContainsAny(opts.Failure, "*?,") {
		b.failure = failed + opts.Name
		opts.Failure += ", " + b.failure
	}
	rule := breaker.Options{Threshold: -1, Window: opts.Window, Rate: opts.Rate, MinCalls: opts.MinCalls, OpenFor: opts.OpenFor, Trials: opts.HalfOpen, Shadow: opts.Shadow}
	if b.shared, err = newShared(b.changed, rule); err != nil {
		return nil, fmt.Errorf("circuitbreaker: %w", err)
	}
	b.failures = on.Monitor(opts.Failure, opts.Window)
	b.failures.OnCount(opts.Threshold, opts.Threshold-1, b.shared.over)
	return b, nil
}

// changed is called for each change of the state.
func (b *Breaker) changed(state breaker.State, lease time.Duration, why string) {
	before, end, held := b.state, b.release, lease
	signal, change := SignalOpened, Change{Reason: why}
	whileOpen, whileHalfOpen := SignalOpen, SignalHalfOpen
	if b.opts.Shadow {
		whileOpen, whileHalfOpen = SignalWouldOpen, SignalWouldOpen
	}
	b.state, b.release = state, func() {}
	switch state {
	case breaker.Open:
		if before == breaker.Closed {
			b.opened = time.Now()
		}
		if b.opts.HalfOpen > 0 {
			held = 0 // with a lease, the signal could end before SignalHalfOpen is held
		}
		release, timer := b.sink.Hold(whileOpen+"."+b.opts.Name, "", held), time.AfterFunc(lease, func() { b.State() }) // timer reports the end of the lease; it does nothing without a lease
		b.release = func() { timer.Stop(); release() }
	case breaker.HalfOpen:
		b.release = b.sink.Hold(whileHalfOpen+"."+b.opts.Name, "", 0)
	case breaker.Closed:
		if signal, change.OpenFor = SignalClosed, time.Since(b.opened); b.opts.HalfOpen > 0 {
			b.failures.Reset()
		}
	}
	if end(); state != before && state != breaker.HalfOpen && !b.opts.Shadow {
		Changes.Named(signal+"."+b.opts.Name).Raise(b.sink, b.opts.Name, change)
	}
}

// Name is Options.Name.
func (b *Breaker) Name() string { return b.opts.Name }

// Sink is the sink on which the signal is held.
func (b *Breaker) Sink() *signals.Sink { return b.sink }

// State is the state: [breaker.Closed], [breaker.Open] or [breaker.HalfOpen].
func (b *Breaker) State() breaker.State { return b.shared.state() }

// Open reports whether the state is [breaker.Open].
func (b *Breaker) Open() bool { return b.State() == breaker.Open }

// Failures is the number of failures that count now. It costs a lock.
func (b *Breaker) Failures() int { return b.failures.Count() }

// ClosesIn is how long the breaker stays open if there are no more failures. It is 0 if the
// breaker is not open. With HalfOpen, it is the time until the breaker is half-open.
func (b *Breaker) ClosesIn() time.Duration {
	if b.opts.HalfOpen > 0 {
		return b.shared.closesIn()
	}
	return max(b.shared.closesIn(), b.failures.Below(b.opts.Threshold))
}

// Check returns an [OpenError] if the breaker is open, otherwise nil. It starts no trial.
// While the breaker is closed, it costs an atomic load.
func (b *Breaker) Check() error {
	if b.Open() && !b.opts.Shadow {
		return b.refusal()
	}
	return nil
}

// Allow is for a call that is not one function, such as a stream; see [Wrap]. If the call is
// allowed, make it, and then call done once with its error. A failure is raised on the sink.
// If the call is not allowed, Allow returns an [OpenError].
//
//ephemeral:raises {Options.Failure}
//ephemeral:raises circuit.failure.{Options.Name|breaker}
func (b *Breaker) Allow() (done func(error), err error) {
	c, ok := b.shared.begin()
	if !ok {
		return nil, b.refusal()
	}
	var once sync.Once // only the first end counts
	return func(err error) {
		once.Do(func() { b.raise(context.Background(), b.shared.end(c, resultOf(err, b.opts.CountIf))) })
	}, nil
}

// Trip opens the breaker for [Options.OpenFor], in every state.
func (b *Breaker) Trip() { b.shared.trip() }

// Reset closes the breaker, in every state, and forgets all failures.
func (b *Breaker) Reset() {
	b.shared.reset()
	b.failures.Reset()
}

// Close ends the counting and releases the held signal. After that, the breaker allows all
// calls. Close may be called several times, even in a handler of a signal. It returns nil.
func (b *Breaker) Close() error {
	b.failures.Stop()
	b.shared.stop()
	return nil
}

// Wrap returns a function that calls work if the breaker allows it, and otherwise returns an
// [OpenError]. If work fails, the failure is raised. If the context has an operation with the
// same sink, that operation raises it. Otherwise it is raised on the sink itself; then a
// breaker made with a coordinator does not count it. With HalfOpen, the failure of a call that
// started before the last change of the state does not count, and is not raised. Wrap panics
// if b or work is nil.
//
//ephemeral:raises {Options.Failure}
//ephemeral:raises circuit.failure.{Options.Name|breaker}
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

// WrapResult is [Wrap] for work with a result.
//
//ephemeral:raises {Options.Failure}
//ephemeral:raises circuit.failure.{Options.Name|breaker}
func WrapResult[In, Out any](b *Breaker, work core.ResultWork[In, Out]) core.ResultWork[In, Out] {
	if b == nil || work == nil {
		panic("circuitbreaker: WrapResult needs a breaker and a function")
	}
	return func(ctx context.Context, in In) (out Out, err error) {
		c, ok := b.shared.begin()
		if !ok {
			return out, b.refusal()
		}
		result := breaker.Failure // if it panics
		defer func() { b.raise(ctx, b.shared.end(c, result)) }()
		out, err = work(ctx, in)
		result = resultOf(err, b.opts.CountIf)
		return out, err
	}
}

func (b *Breaker) refusal() error {
	return &OpenError{Name: b.opts.Name, Failures: b.Failures(), Wait: b.ClosesIn()}
}

// raise raises a failure if it counts.
func (b *Breaker) raise(ctx context.Context, counts bool) {
	if op := core.OperationFrom(ctx); counts && op.Sink() == b.sink {
		op.Raise(b.failure)
	} else if counts {
		b.sink.RaiseKey(b.failure, b.opts.Name)
	}
}
