package priorityprocessor

import (
	"context"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/outbox"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// A Failover gives each item to the first healthy processor. If that processor fails, it
// gives the item to the next one. Make one with [New], and close it. Until then, the sink
// refers to it. It has a goroutine only while a Probe runs, and a timer only while a
// processor with a Probe is unhealthy. All methods are safe for concurrent use, also in
// processors, probes and handlers.
//
// If the first processor does the item, Do costs two short locks and no allocation.
type Failover[T any] struct{ *engine[T, struct{}] }

// A ResultFailover is a [Failover] whose processors return a result. Make one with
// [NewResult].
type ResultFailover[In, Out any] struct{ *engine[In, Out] }

// engine is the common part of a Failover and a ResultFailover.
type engine[In, Out any] struct {
	opts       Options
	processors []ResultProcessor[In, Out] // in the order of the board's members
	signals    []attemptSignals           // of each processor
	base       time.Time
	probes     *core.Coordinator[int] // its items are members
	unsub      func()

	routed atomic.Bool // there may be a CommandRoute on the sink

	mu     sync.Mutex
	board  board
	route  int // priority in the last SignalRoute
	closed bool
	timers []*time.Timer // timers of the members with a Probe; else nil
	out    outbox.Outbox // signals about health
}

// maxPending is how many signals about health may wait while a handler blocks.
const maxPending = 1024

// New makes a Failover of 1 to 64 processors. All are healthy. It returns an error if the
// processors or the options are not valid. It starts no goroutine.
func New[T any](processors []Processor[T], opts Options) (*Failover[T], error) {
	all := make([]ResultProcessor[T, struct{}], len(processors))
	for i, p := range processors {
		all[i] = ResultProcessor[T, struct{}]{Name: p.Name, Priority: p.Priority, Probe: p.Probe}
		if p.Do != nil {
			all[i].Do = func(ctx context.Context, item T) (struct{}, error) { return struct{}{}, p.Do(ctx, item) }
		}
	}
	f, err := newEngine(all, opts)
	if err != nil {
		return nil, err
	}
	return &Failover[T]{f}, nil
}

// NewResult is [New] for processors that return a result.
func NewResult[In, Out any](processors []ResultProcessor[In, Out], opts Options) (*ResultFailover[In, Out], error) {
	f, err := newEngine(slices.Clone(processors), opts)
	if err != nil {
		return nil, err
	}
	return &ResultFailover[In, Out]{f}, nil
}

// newEngine makes an engine. It sorts the slice processors, and keeps it.
func newEngine[In, Out any](processors []ResultProcessor[In, Out], opts Options) (*engine[In, Out], error) {
	if err := checkProcessors(processors); err != nil {
		return nil, err
	}
	opts, err := opts.resolved()
	if err != nil {
		return nil, err
	}
	f := &engine[In, Out]{opts: opts, processors: processors, base: time.Now(), out: outbox.Outbox{Max: maxPending}}
	f.probes = core.Must(core.NewKeyedCoordinator(func(i int) string { return processors[i].Name }, f.probe, core.Options{
		Name: opts.Name, Sink: opts.Sink, MaxConcurrency: len(processors),
	}))
	slices.SortStableFunc(processors, func(a, b ResultProcessor[In, Out]) int { return a.Priority - b.Priority })
	members := make([]member, len(processors))
	f.timers = make([]*time.Timer, len(processors))
	for i, p := range processors {
		members[i] = member{ProcessorStatus: ProcessorStatus{Name: p.Name, Priority: p.Priority}, probed: p.Probe != nil}
		f.signals = append(f.signals, attemptSignals{
			started:   signals.NewKind[any](SignalStarted + ":" + pri(p.Priority)),
			completed: signals.NewKind[any](SignalCompleted + ":" + pri(p.Priority)),
			report:    Report{Processor: p.Name, Priority: p.Priority},
		})
		if p.Probe != nil {
			f.timers[i] = time.AfterFunc(math.MaxInt64, func() { f.probes.TryEnqueue(context.Background(), i) })
			f.timers[i].Stop()
		}
	}
	f.board = newBoard(members, opts)
	f.route = f.board.route()
	f.unsub = opts.Sink.Subscribe(commands, f.command)
	if opts.Sink.Has(CommandRoute + "*") {
		f.routed.Store(true)
	}
	return f, nil
}

// Do gives the item to the highest priority that has a healthy processor, and after each failed
// attempt to the next processor. It returns nil when a processor has succeeded, and an [*Error]
// when all have failed. It has the form of [core.Work].
//
// The attempts are made one after the other, on the goroutine of the caller. Their context is
// ctx with [Options.Timeout]. Do stops in these cases:
//
//   - ctx ends: Do returns the cause of ctx. This is not a failure of the processor.
//   - [Options.FailoverIf] returns false for an error: Do returns this error.
//   - No processor may try the item, with [Options.HealthyOnly]: Do returns [ErrNoneHealthy].
//   - Close was called before Do: Do returns [core.ErrClosed].
//
// In the first two cases, if attempts have failed before, Do returns an [*Error] with this error
// in it. A panic is a failure of the processor; Do does not recover it.
func (f *Failover[T]) Do(ctx context.Context, item T) error {
	_, err := f.do(ctx, item)
	return err
}

// Do is [Failover.Do] with a result: the result of the processor that succeeded. If the item
// is at fault (see [Options.FailoverIf]), Do returns the result that came with the error. In
// other cases it returns the zero value. Do has the form of [core.ResultWork].
func (f *ResultFailover[In, Out]) Do(ctx context.Context, item In) (Out, error) {
	return f.do(ctx, item)
}

func (f *engine[In, Out]) do(ctx context.Context, item In) (none Out, err error) {
	r := run{start: f.start(ctx)}
	defer f.endAbandoned(&r)
	for {
		t, err := f.next(ctx, &r)
		if err != nil {
			if e, ok := err.(*Error); ok && e.Cause == nil {
				Exhausted.Raise(f.raiser(ctx), "", e)
			}
			return none, err
		}
		out, o, err := f.attempt(ctx, t, &r, item)
		switch {
		case o == failed:
			r.tried |= 1 << t.member
			r.failed = append(r.failed, f.asAttempt(t, err))
		case o == cancelled:
			return none, r.stopped(ended(ctx))
		case err != nil && len(r.failed) > 0:
			return out, &Error{Attempts: append(r.failed, f.asAttempt(t, err))}
		default:
			return out, err
		}
	}
}

func (f *engine[In, Out]) asAttempt(t ticket, err error) Attempt {
	return Attempt{f.processors[t.member].Name, f.processors[t.member].Priority, err}
}

// run is the state of one item in do.
type run struct {
	start  int    // level
	tried  uint64 // set of members
	failed []Attempt
	waits  bool // an attempt has failed, and the next one has not begun
}

// stopped returns the error of an item whose context has ended.
func (r *run) stopped(cause error) error {
	if len(r.failed) == 0 {
		return cause
	}
	return &Error{r.failed, cause}
}

// next chooses the processor of the next attempt, or returns the error of Do.
func (f *engine[In, Out]) next(ctx context.Context, r *run) (ticket, error) {
	over := ctx.Err() != nil
	now := time.Since(f.base)
	f.mu.Lock()
	defer f.mu.Unlock()
	r.waits = false
	s := &f.board.stats
	first := len(r.failed) == 0
	if first {
		if f.closed {
			s.Rejected++
			return ticket{}, core.ErrClosed
		}
		s.Accepted++
		s.Running++
	}
	if over {
		f.board.finish(&s.Cancelled)
		return ticket{}, r.stopped(context.Cause(ctx))
	}
	t, ok := f.board.pick(r.tried, r.start, now)
	switch {
	case ok:
		if !first {
			s.Failovers++
		}
		return t, nil
	case first:
		f.board.finish(&s.Refused)
		return ticket{}, ErrNoneHealthy
	}
	f.board.finish(&s.Failed)
	return ticket{}, &Error{Attempts: r.failed}
}

// endAbandoned counts an item if a handler has ended its goroutine between two attempts.
func (f *engine[In, Out]) endAbandoned(r *run) {
	if !r.waits {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.board.finish(&f.board.stats.Cancelled)
}

// attempt gives the item to a processor, and always records the result.
func (f *engine[In, Out]) attempt(ctx context.Context, t ticket, r *run, item In) (out Out, o outcome, err error) {
	defer func() {
		if o == panicked && err == nil {
			err = errPanicked // the panic itself passes through
		}
		r.waits = o == failed
		f.settle(ctx, t, o, err)
	}()
	o = cancelled // the outcome if a handler ends the goroutine before Do is called
	if n := len(r.failed); n > 0 {
		f.raiseFailover(ctx, t.member, &r.failed[n-1])
	}
	if f.opts.Verbose {
		s := &f.signals[t.member]
		s.started.Raise(f.raiser(ctx), "", s.report)
	}
	o = panicked
	bounded, cancel := withTimeout(ctx, f.opts.Timeout)
	defer cancel()
	out, err = f.processors[t.member].Do(bounded, item)
	switch {
	case err == nil:
		return out, succeeded, nil
	case ended(ctx) != nil:
		return out, cancelled, err
	case f.opts.FailoverIf != nil && !f.opts.FailoverIf(err):
		return out, succeeded, err
	}
	return out, failed, err
}

// withTimeout is context.WithTimeout if the timeout is positive.
func withTimeout(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if timeout <= 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, timeout)
}

// ended returns why ctx has ended, or nil. It also looks at the clock: a processor that
// passes the deadline to other calls may return shortly before the context ends.
func ended(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if at, ok := ctx.Deadline(); ok && !time.Now().Before(at) {
		return context.DeadlineExceeded
	}
	return nil
}

// settle records the result of an attempt. If the attempt has not failed, settle also records
// the end of the item.
func (f *engine[In, Out]) settle(ctx context.Context, t ticket, o outcome, err error) {
	now := time.Since(f.base)
	f.mu.Lock()
	changed := f.board.end(t, o, err, now)
	switch s := &f.board.stats; {
	case o == failed:
	case o == cancelled:
		f.board.finish(&s.Cancelled)
	case o == succeeded && err == nil:
		f.board.finish(&s.Succeeded)
	default:
		f.board.finish(&s.Failed)
	}
	if changed {
		f.apply(t.member, f.opts.Sink)
	}
	f.mu.Unlock()
	if changed {
		defer f.out.Run() // deferred, because a handler may end the goroutine
	}
	switch {
	case o == failed || o == panicked:
		f.raiseFailed(ctx, t.member, err)
	case f.opts.Verbose && o == succeeded && err == nil:
		s := &f.signals[t.member]
		s.completed.Raise(f.raiser(ctx), "", s.report)
	}
}

// MarkUnhealthy makes a processor unhealthy, as if it had failed too often, until a probe
// succeeds. It reports whether there is a processor of that name. If the processor is unhealthy
// already, nothing changes.
func (f *engine[In, Out]) MarkUnhealthy(name string) bool { return f.mark(name, false) }

// MarkHealthy makes a processor healthy, with no failures. It reports whether there is a
// processor of that name. Attempts and probes that started before do not count.
func (f *engine[In, Out]) MarkHealthy(name string) bool { return f.mark(name, true) }

func (f *engine[In, Out]) mark(name string, healthy bool) bool {
	return f.markAll(func(m *member) bool { return m.Name == name }, healthy, f.opts.Sink)
}

// markAll sets the health of the selected members and reports whether there are any.
func (f *engine[In, Out]) markAll(selected func(*member) bool, healthy bool, on signals.Raiser) (found bool) {
	now := time.Since(f.base)
	f.mu.Lock()
	for i := range f.board.members {
		if selected(&f.board.members[i]) {
			found = true
			if f.board.mark(i, healthy, now) {
				f.apply(i, on)
			}
		}
	}
	f.mu.Unlock()
	f.out.Run()
	return found
}

// Sink is [Options.Sink], or the sink that was made in its place.
func (f *engine[In, Out]) Sink() *signals.Sink { return f.opts.Sink }

// Close ends the intake and the probes. From then on, Do returns [core.ErrClosed]. Close cancels
// the context of a running Probe with this cause, and waits until the Probe returns. Inside a
// Probe or a handler it does not wait. It does not wait for items, which run on the goroutines
// of their callers: drain the callers first. It returns nil, and may be called several times.
func (f *engine[In, Out]) Close() error {
	f.mu.Lock()
	f.closed = true
	for i := range f.timers {
		f.setTimer(i)
	}
	f.mu.Unlock()
	f.unsub()
	return f.probes.Close()
}
