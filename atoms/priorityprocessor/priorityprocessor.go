package priorityprocessor

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// A Failover does items by the best processor that is healthy and goes on to the
// next when that fails. Make one with [New]. It owns a goroutine only while a Probe
// runs, and a timer while there is one to come. Its sink keeps it alive until it is
// closed. All methods are safe for concurrent use, from processors, probes and
// handlers as well.
//
// An item that the first processor does costs two short locks and no allocation.
type Failover[T any] struct {
	name       string
	sink       *core.Sink
	processors []Processor[T] // in the order of the board's members
	names      []memberNames
	levels     []int // priorities, highest first; starting points of routes
	timeout    time.Duration
	probeLimit time.Duration
	failoverIf func(error) bool
	verbose    bool
	base       time.Time
	probes     *core.Coordinator[probe]
	unhook     func()

	routed atomic.Bool // there may be facts of CommandRoute on the sink

	mu     sync.Mutex
	board  board
	stats  Stats
	closed bool
	timers []*time.Timer // of members that are to be probed by a function
	news   news
}

// New makes a Failover of one or more processors, at most 64, or says what is wrong
// with them or with the options. All are healthy. It starts nothing.
func New[T any](processors []Processor[T], opts Options) (*Failover[T], error) {
	if err := check(processors); err != nil {
		return nil, err
	}
	if err := opts.normalize(); err != nil {
		return nil, err
	}
	processors = slices.Clone(processors)
	slices.SortStableFunc(processors, func(a, b Processor[T]) int { return a.Priority - b.Priority })
	members := make([]member, len(processors))
	for i, p := range processors {
		members[i] = member{name: p.Name, priority: p.Priority, probed: p.Probe != nil}
	}
	f := &Failover[T]{
		name:       opts.Name,
		sink:       opts.Sink,
		processors: processors,
		timeout:    opts.Timeout,
		probeLimit: opts.ProbeTimeout,
		failoverIf: opts.FailoverIf,
		verbose:    opts.Verbose,
		base:       time.Now(),
		board:      newBoard(members, opts.Threshold, opts.ProbeAfter, opts.MaxProbeAfter, opts.HealthyOnly),
		timers:     make([]*time.Timer, len(processors)),
	}
	for _, m := range members {
		f.names = append(f.names, newMemberNames(m.name, m.priority))
	}
	for _, l := range f.board.levels {
		f.levels = append(f.levels, l.priority)
	}
	var err error
	f.probes, err = core.NewKeyedCoordinator(func(p probe) string { return processors[p.member].Name }, f.probe, core.Options{
		Name:           opts.Name,
		Sink:           opts.Sink,
		MaxConcurrency: len(processors),
		DropOldest:     true,
	})
	if err != nil {
		return nil, err
	}
	f.listen()
	return f, nil
}

// Do does an item: by the highest healthy priority, by the next at once if that
// fails, and so on. It returns nil when one has succeeded, and an [*Error] when all
// have failed. It has the form of [core.Work].
//
// Every attempt is given ctx, bounded by [Options.Timeout], on the goroutine that
// called Do, one after the other. When ctx ends, Do tries no further and returns its
// cause, in an [*Error] if there had been failures; the processor that had the item
// is not blamed. An error of which [Options.FailoverIf] says that it is the item's own
// fault is returned at once, as it is if it is the first. A panic passes through, as a
// failure of the processor. After Close, Do returns [core.ErrClosed].
func (f *Failover[T]) Do(ctx context.Context, item T) error {
	r := run{start: f.start(ctx)}
	defer f.unfinished(&r)
	for {
		t, err := f.next(ctx, &r)
		if err != nil {
			return err
		}
		o, err := f.attempt(ctx, t, &r, item)
		switch {
		case o == failed:
			m := &f.processors[t.member]
			r.tried |= 1 << t.member
			r.failed = append(r.failed, Attempt{m.Name, m.Priority, err})
		case o == cancelled:
			return r.stopped(ended(ctx))
		case err != nil && len(r.failed) > 0:
			m := &f.processors[t.member]
			return &Error{Attempts: append(r.failed, Attempt{m.Name, m.Priority, err})}
		default:
			return err
		}
	}
}

// run is what one item has been through.
type run struct {
	start    int // level
	accepted bool
	goesOn   bool   // it has been failed, and is to be given to the next
	tried    uint64 // set of members
	failed   []Attempt
}

// stopped is the error of an item that goes no further because its context ended.
func (r *run) stopped(cause error) error {
	if len(r.failed) == 0 {
		return cause
	}
	return &Error{r.failed, cause}
}

// next says who tries the item next, or what Do returns because nobody does.
func (f *Failover[T]) next(ctx context.Context, r *run) (ticket, error) {
	over := ctx.Err() != nil
	now := time.Since(f.base)
	r.goesOn = false
	f.mu.Lock()
	if !r.accepted {
		if f.closed {
			f.stats.Rejected++
			f.mu.Unlock()
			return ticket{}, core.ErrClosed
		}
		r.accepted = true
		f.stats.Accepted++
		f.stats.Running++
	}
	if over {
		f.stats.Running--
		f.stats.Cancelled++
		f.mu.Unlock()
		return ticket{}, r.stopped(context.Cause(ctx))
	}
	t, ok := f.board.pick(r.tried, r.start, now)
	switch {
	case ok:
		if len(r.failed) > 0 {
			f.stats.Failovers++
		}
		f.mu.Unlock()
		return t, nil
	case len(r.failed) == 0:
		f.stats.Running--
		f.stats.Refused++
		f.mu.Unlock()
		return ticket{}, ErrNoneHealthy
	}
	f.stats.Running--
	f.stats.Failed++
	f.mu.Unlock()
	err := &Error{Attempts: r.failed}
	exhausted.Raise(f.raiser(ctx), "", err)
	return ticket{}, err
}

// unfinished takes note of an item that goes no further because a handler has ended
// the goroutine.
func (f *Failover[T]) unfinished(r *run) {
	if !r.goesOn {
		return
	}
	f.mu.Lock()
	f.stats.Running--
	f.stats.Cancelled++
	f.mu.Unlock()
}

// attempt gives the item to a processor. Whatever that does, it is taken note of.
func (f *Failover[T]) attempt(ctx context.Context, t ticket, r *run, item T) (o outcome, err error) {
	defer func() {
		if o == panicked && err == nil {
			err = errPanicked // the panic itself passes through
		}
		r.goesOn = o == failed
		f.settle(ctx, t, o, err)
	}()
	o = cancelled // should a handler end the goroutine before its turn
	if n := len(r.failed); n > 0 {
		f.handOver(ctx, t.member, &r.failed[n-1])
	}
	if f.verbose {
		f.names[t.member].raise(f.names[t.member].started, f.raiser(ctx))
	}
	o = panicked
	do := f.processors[t.member].Do
	if f.timeout <= 0 {
		err = do(ctx, item)
	} else {
		bounded, cancel := context.WithTimeout(ctx, f.timeout)
		defer cancel()
		err = do(bounded, item)
	}
	return f.judge(ctx, err), err
}

// judge says what an answer tells of the processor.
func (f *Failover[T]) judge(ctx context.Context, err error) outcome {
	switch {
	case err == nil:
		return succeeded
	case ended(ctx) != nil:
		return cancelled
	case f.failoverIf != nil && !f.failoverIf(err):
		return succeeded
	}
	return failed
}

// ended is why ctx has ended, or nil. The clock counts as well: a processor that has
// passed the deadline on may return a little before the context ends.
func ended(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if at, ok := ctx.Deadline(); ok && !time.Now().Before(at) {
		return context.DeadlineExceeded
	}
	return nil
}

// settle takes note of what became of an attempt, and of the item unless it goes on.
func (f *Failover[T]) settle(ctx context.Context, t ticket, o outcome, err error) {
	now := time.Since(f.base)
	f.mu.Lock()
	c := f.board.end(t, o, err, now)
	if o != failed {
		f.stats.Running--
	}
	switch {
	case o == failed:
	case o == cancelled:
		f.stats.Cancelled++
	case o == succeeded && err == nil:
		f.stats.Succeeded++
	default:
		f.stats.Failed++
	}
	f.apply(c, f.sink)
	pending := f.news.pending()
	f.mu.Unlock()
	if pending {
		defer f.deliver() // also when a handler ends the goroutine
	}
	switch {
	case o == failed || o == panicked:
		f.tellFailed(ctx, t.member, err)
	case f.verbose && o == succeeded && err == nil:
		f.names[t.member].raise(f.names[t.member].complete, f.raiser(ctx))
	}
}

// MarkUnhealthy makes a processor unhealthy, as if it had failed too often: items
// pass it by until a probe restores it. It reports whether there is a processor of
// that name; if it is unhealthy already, nothing changes.
func (f *Failover[T]) MarkUnhealthy(name string) bool { return f.mark(name, false) }

// Reset makes a processor healthy, with no failures, and reports whether there is a
// processor of that name. Attempts and probes that are under way do not count any
// more.
func (f *Failover[T]) Reset(name string) bool { return f.mark(name, true) }

func (f *Failover[T]) mark(name string, healthy bool) bool {
	return f.markAll(func(m *member) bool { return m.name == name }, healthy, f.sink) > 0
}

// markAll sets the health of the members that are meant and returns how many are.
func (f *Failover[T]) markAll(meant func(*member) bool, healthy bool, on core.Raiser) (n int) {
	now := time.Since(f.base)
	f.mu.Lock()
	for i := range f.board.members {
		if meant(&f.board.members[i]) {
			n++
			f.apply(f.board.mark(i, healthy, now), on)
		}
	}
	f.mu.Unlock()
	f.deliver()
	return n
}

// Name is [Options.Name].
func (f *Failover[T]) Name() string { return f.name }

// Sink is where signals are raised and heeded.
func (f *Failover[T]) Sink() *core.Sink { return f.sink }

// Close ends the intake and the probes: Do returns [core.ErrClosed] from now on, the
// context of a Probe that runs is cancelled with that cause, and Close waits for it
// to return, unless it is called from inside of it. It does not wait for items, which
// run on their callers' goroutines: drain what calls Do first. It returns nil, may be
// called many times, and is required only if the sink is to outlive the Failover or a
// processor is unhealthy.
func (f *Failover[T]) Close() error {
	f.mu.Lock()
	f.closed = true
	for i, t := range f.timers {
		if t != nil {
			t.Stop()
			f.timers[i] = nil
		}
	}
	f.mu.Unlock()
	f.unhook()
	return f.probes.Close()
}
