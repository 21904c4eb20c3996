package molecules

import (
	"context"
	"errors"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/guard"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// A Runner starts a run of a [Blueprint], in the background, for each signal that matches the
// blueprint. Make one with [New]. It listens, and its sink keeps it alive, until you call
// Complete, Drain, Stop or Close. It owns no goroutine while nothing runs. All methods are safe
// for concurrent use, also from steps and from handlers.
//
// Each run is an operation with the key of the run's trigger. With [OrderSerial] the operation
// gets that key when it begins. Lookup, Operations and Explain show the operation; its value "molecule"
// says which step the run has reached. Cancel cancels a run that has steps left: the context of
// the current step ends, the completed steps are compensated, and the run counts as cancelled.
//
// A Runner has all methods of [core.Control]. SetMaxConcurrency does not change
// [Options.Order]. At most [Options.MaxConcurrency] runs of one key run at the same time,
// even if SetMaxConcurrency sets more.
type Runner struct {
	*listener
	coordinator       *core.Coordinator[*Run]
	blueprints        []*Blueprint
	compensateTimeout time.Duration
	runs              runs
}

var (
	_ core.Inspector = (*Runner)(nil)
	_ core.Lifecycle = (*Runner)(nil)
)

// New makes a runner, which listens to the signals of sink from now on. If a blueprint or an
// option is wrong, New returns an error. It copies the blueprints.
//
// If a signal matches several blueprints, it starts a run of each, in the order of the list.
func New(sink *signals.Sink, blueprints []Blueprint, opts Options) (*Runner, error) {
	if sink == nil {
		return nil, errors.New("molecules: the sink of a runner is nil, there must be one")
	}
	prepared, err := prepare(blueprints)
	if err != nil {
		return nil, err
	}
	if opts, err = opts.resolved(); err != nil {
		return nil, err
	}
	r := &Runner{
		blueprints:        prepared,
		compensateTimeout: opts.CompensateTimeout,
		runs:              runs{order: opts.Order, groups: make(map[group][]*Run)},
	}
	config := opts.coordinator(sink)
	config.OnDone = r.done
	key := func(run *Run) string { return opts.key(run.Trigger) }
	r.coordinator = core.Must(core.NewKeyedCoordinator(key, r.run, config)) // the options are valid
	r.listener = &listener{Control: r.coordinator.Control}
	for _, b := range r.blueprints { // subscribe to awaited signals first, because a trigger may cause one
		for i := range b.Steps {
			if pattern := b.Steps[i].Await; pattern != "" {
				receive := func(s signals.Signal) { r.runs.receive(group{b, s.Key}, i, s) }
				r.OnClosed(sink.Subscribe(pattern, receive))
			}
		}
	}
	for _, b := range r.blueprints {
		r.cancels = append(r.cancels, sink.Subscribe(b.On, func(s signals.Signal) { r.trigger(b, s) }))
	}
	return r, nil
}

// trigger starts a run of b, on the goroutine that raises s.
func (r *Runner) trigger(b *Blueprint, s signals.Signal) {
	if _, ok := s.Payload().(Event); ok || r.ignores(s) || !r.matches(b, s) {
		return
	}
	run := &Run{Trigger: s, blueprint: b, wake: make(chan struct{}, 1)}
	if b.awaits() {
		r.runs.add(run)
		r.catchUp(run)
	}
	if _, err := r.coordinator.TryEnqueue(context.Background(), run); err != nil {
		r.runs.remove(run)
		if !guard.Is(err, core.ErrClosed) {
			r.drop(b, s, err)
		}
	}
}

// matches calls When, if there is one.
func (r *Runner) matches(b *Blueprint, s signals.Signal) bool {
	returned := false
	defer func() {
		if !returned { // the sink counts the panic
			r.drop(b, s, errWhenPanicked)
		}
	}()
	match := b.When == nil || b.When(s)
	returned = true
	return match
}

func (r *Runner) drop(b *Blueprint, s signals.Signal, why error) {
	signals.NewKind[Event](SignalDropped).Raise(r.Sink().Because(s), s.Key, Event{Blueprint: b.Name, Err: why})
}

// catchUp finds awaited signals of a new run that came too early: they were raised after the
// trigger, but before the runner received the trigger. A handler that was called before the
// runner can do that.
func (r *Runner) catchUp(run *Run) {
	for i := range run.blueprint.Steps {
		pattern := run.blueprint.Steps[i].Await
		if pattern == "" {
			continue
		}
		for s := range r.Sink().Sense(signals.Query{Pattern: pattern, AfterSeq: run.Trigger.Seq}) {
			if s.Key == run.Trigger.Key {
				r.runs.receive(run.group(), i, s)
			}
		}
	}
}

// done is called after each run, even if the run was cancelled before it began.
func (r *Runner) done(s core.Snapshot) {
	if run := s.Item.(*Run); run.op == nil { // it never began
		r.runs.remove(run)
		signals.NewKind[Event](SignalCancelled).Raise(r.Sink().Because(run.Trigger), run.Trigger.Key, Event{Blueprint: run.Blueprint(), Run: s.ID, Err: s.Err})
	}
}
