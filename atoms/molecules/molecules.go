package molecules

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// Options configure a [Runner]. The zero value is the default.
type Options struct {
	// Name tells runners apart: it is the Source of the signals that the runs
	// raise. "" means "molecules".
	Name string
	// Order says which runs wait for each other; 0 is [OrderNone].
	Order Order
	// MaxConcurrency is how many runs go at once, of all blueprints together,
	// those included that wait for a signal; 0 means 16. With [OrderSerial] it
	// is 1.
	MaxConcurrency int
	// MaxQueued is how many runs may wait for their turn; 0 means 1024. A
	// trigger that comes when there are as many sets nothing off: it is counted
	// as Rejected, and [SignalDropped] is raised.
	MaxQueued int
	// MaxTracked is how many finished runs the runner still shows; 0 means 200,
	// negative none.
	MaxTracked int
	// MaxAge is how long it shows them; 0 means 5 minutes, negative no limit.
	MaxAge time.Duration
	// CompensateTimeout is when the context of each Compensate ends after it was
	// called; 0 means 30 seconds, negative never.
	CompensateTimeout time.Duration
}

const defaultCompensateTimeout = 30 * time.Second

// A Runner makes molecules: each signal that matches a [Blueprint] sets off a run
// of it, in the background. Make one with [New]. It listens from then on, and the
// sink keeps it alive, until it is drained or closed; while nothing runs it owns no
// goroutine. All methods are safe for concurrent use, from steps and from handlers
// as well.
//
// Each run is an operation, with the key of its trigger, which Lookup, Operations
// and Explain show, and Cancel cancels: see [State] for where it is, and
// [core.Snapshot] for what it has raised and stored.
type Runner struct {
	*reactor[*Run]
	blueprints        []*Blueprint
	compensateTimeout time.Duration
	roll              *roll

	mu      sync.Mutex
	unawait []func() // ends the subscriptions to what steps await
}

var _ core.Inspector = (*Runner)(nil)

// New makes a runner that heeds the signals raised on sink from now on, or says
// what is wrong. The blueprints are copied. It starts nothing.
//
// A signal that matches several blueprints sets off a run of each, in the order of
// the list.
func New(sink *core.Sink, blueprints []Blueprint, opts Options) (*Runner, error) {
	if sink == nil {
		return nil, errors.New("molecules: there must be a sink, not nil, whose signals set off the runs")
	}
	prepared, err := prepare(blueprints)
	if err != nil {
		return nil, err
	}
	s := settings{opts.Name, opts.Order, opts.MaxConcurrency, opts.MaxQueued, opts.MaxTracked, opts.MaxAge}
	if s.name == "" {
		s.name = "molecules"
	}
	if err := s.check(); err != nil {
		return nil, err
	}
	if opts.CompensateTimeout == 0 {
		opts.CompensateTimeout = defaultCompensateTimeout
	}
	r := &Runner{
		blueprints:        prepared,
		compensateTimeout: opts.CompensateTimeout,
		roll:              newRoll(opts.Order != OrderNone),
	}
	key := func(run *Run) string { return run.Trigger.Key }
	if r.reactor, err = newReactor(sink, key, r.run, s); err != nil {
		return nil, err
	}
	r.listen()
	return r, nil
}

// listen subscribes: to what steps await before what sets them off.
func (r *Runner) listen() {
	for _, b := range r.blueprints {
		for i := range b.Steps {
			if b.Steps[i].Await != "" {
				r.unawait = append(r.unawait, r.sink.Subscribe(b.Steps[i].Await, func(s core.Signal) {
					r.roll.note(group{b, s.Key}, i, s, nil)
				}))
			}
		}
	}
	for _, b := range r.blueprints {
		r.reactor.listen(b.On, func(s core.Signal) { r.trigger(b, s) })
	}
}

// trigger sets off a run of b, on the goroutine that raises s.
func (r *Runner) trigger(b *Blueprint, s core.Signal) {
	if _, ok := s.Payload().(Event); ok || r.own(s) || !r.wants(b, s) {
		return
	}
	run := &Run{Trigger: s, blueprint: b, news: make(chan struct{}, 1)}
	first, cancelled, err := r.roll.enter(run, func() (core.OperationID, error) { return r.coordinator.TryEnqueue(run) })
	switch {
	case err == core.ErrClosed:
	case err != nil:
		r.drop(b, s, err)
	case cancelled != nil:
		r.never(run, cancelled)
	case first || !r.roll.ordered:
		r.catchUp(run)
	}
	r.stopAwaitingIfDone() // it may have been the last to enter, with its run already at the end
}

// wants asks When.
func (r *Runner) wants(b *Blueprint, s core.Signal) (wants bool) {
	if b.When == nil {
		return true
	}
	returned := false
	defer func() { // the panic itself is the sink's to count
		if !returned {
			r.drop(b, s, errWhenPanicked)
		}
	}()
	wants = b.When(s)
	returned = true
	return wants
}

func (r *Runner) drop(b *Blueprint, s core.Signal, why error) {
	kindDropped.Raise(r.sink.Because(s), s.Key, Event{Blueprint: b.Name, Err: why})
}

// catchUp looks for signals that the run awaits and that were raised after its
// trigger but before it was listed, such as by a handler that was called earlier.
func (r *Runner) catchUp(run *Run) {
	for i := range run.blueprint.Steps {
		if pattern := run.blueprint.Steps[i].Await; pattern != "" {
			for s := range r.sink.Sense(core.Query{Pattern: pattern, AfterSeq: run.Trigger.Seq}) {
				if s.Key == run.Trigger.Key {
					r.roll.note(run.group(), i, s, run)
				}
			}
		}
	}
}

// leave is the end of a run.
func (r *Runner) leave(run *Run) {
	r.roll.leave(run)
	r.stopAwaitingIfDone()
}

// never tells of a run that was cancelled before it began.
func (r *Runner) never(run *Run, cause error) {
	defer r.leave(run)
	kindCancelled.Raise(r.sink.Because(run.Trigger), run.Trigger.Key, Event{Blueprint: run.blueprint.Name, Run: run.id, Err: cause})
}

// Cancel keeps a run from starting, or cancels its context, with that cause; nil
// means [core.ErrCancelled]. Then its steps come to an end, those that were done
// are compensated, and it counts as cancelled, unless all were done. Cancel does
// not wait for that. It reports false if there was nothing to cancel.
func (r *Runner) Cancel(id core.OperationID, cause error) bool {
	if cause == nil {
		cause = core.ErrCancelled
	}
	if !r.coordinator.Cancel(id, cause) {
		return false
	}
	if run, ok := r.roll.claim(id, cause); ok {
		r.never(run, cause)
	}
	return true
}

// Complete ends the listening: signals set off no more runs. Those that wait still
// run, and get the signals that their steps await.
func (r *Runner) Complete() {
	r.reactor.Complete()
	r.roll.close()
	r.stopAwaitingIfDone()
}

// Drain is Complete, and then waits until all runs are finished. When ctx ends
// first it returns its cause; the runs go on. From inside a step it returns
// [core.ErrWouldDeadlock] and changes nothing.
func (r *Runner) Drain(ctx context.Context) error {
	if r.isInside(ctx) {
		return core.ErrWouldDeadlock
	}
	r.Complete()
	return r.coordinator.Flush(ctx)
}

// Close ends the listening, cancels the runs that go, with the cause
// [core.ErrClosed], accounts for those that wait as cancelled, and returns when the
// steps have returned and what was done is compensated. From inside a step or a
// handler it does not wait. It returns nil.
func (r *Runner) Close() error {
	r.stopListening()
	err := r.coordinator.Close()
	for _, run := range r.roll.claimAll() {
		r.never(run, core.ErrClosed)
	}
	r.roll.close()
	r.stopAwaitingIfDone()
	return err
}

// stopAwaitingIfDone ends the listening to what steps await when the last run has
// ended.
func (r *Runner) stopAwaitingIfDone() {
	if !r.roll.empty() {
		return
	}
	r.mu.Lock()
	unawait := r.unawait
	r.unawait = nil
	r.mu.Unlock()
	for _, cancel := range unawait {
		cancel()
	}
}
