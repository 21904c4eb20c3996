package echo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/lastwords"
)

// A Source is what a [Recorder] needs of a coordinator. All coordinators of core are
// Sources, dispatchers and processors too, and the atoms that have these methods, such as
// a fixedwork.Pool. Cancel may be called many times.
type Source interface {
	lastwords.Source
	Sink() *core.Sink
}

// Options configure a [Recorder]. The zero value is the default.
type Options struct {
	// Name tells recorders apart: it is the Source of the signals that delivering
	// raises. "" means "echo".
	Name string
	// Sink is where [SignalFailed] is raised, and the signals of the function that
	// delivers; nil means the sink of the coordinator.
	Sink *core.Sink

	// Capture is the pattern of the signals that are captured, if their payload is of
	// the kind's type. "" means the signals of the kind, whatever prefix Scoped has put
	// before the name.
	Capture string
	// Activate is the pattern of the signals that start capturing: the signals that an
	// operation raised before the first of them are not captured. "" means that
	// capturing starts at once.
	Activate string
	// SkipActivation leaves out the signal that started capturing; otherwise it is
	// captured if it matches Capture.
	SkipActivation bool
	// Filter decides last what is captured; nil means everything. It is called on the
	// goroutine that evicts the operation and delays that goroutine. If it panics, the
	// coordinator counts that in its Stats, and there is no entry.
	Filter func(core.Signal) bool
	// MaxAge leaves out signals that are older when the operation leaves the window; 0
	// and negative mean no limit.
	MaxAge time.Duration
	// MaxPerOperation is how many signals of an operation are captured, the newest; 0
	// means 64, negative no limit.
	MaxPerOperation int

	// MaxQueued is how many entries may wait to be delivered before the oldest of them
	// is dropped; 0 means 1024, negative no queue. A coordinator that is closed evicts
	// its whole window at once: to lose none of that, set MaxQueued to at least the
	// number of operations that the coordinator tracks.
	MaxQueued int
	// MaxConcurrency is how many entries are delivered at once; 0 means 1, which keeps
	// them in order.
	MaxConcurrency int
}

func (o Options) resolved(c Source, kind string) Options {
	o.Name = cmp.Or(o.Name, "echo")
	o.Sink = cmp.Or(o.Sink, c.Sink())
	o.Capture = cmp.Or(o.Capture, kind+", *."+kind)
	o.MaxPerOperation = cmp.Or(o.MaxPerOperation, 64)
	o.MaxConcurrency = cmp.Or(o.MaxConcurrency, 1)
	return o
}

// A Recorder delivers entries of operations that leave a coordinator's window. Make one
// with [New]. It is a [lastwords.Relay] of entries: the coordinator keeps it alive until
// it is completed, drained, stopped or closed, and it owns a goroutine only while there
// are entries to deliver. All methods are safe for concurrent use, from the function that
// delivers as well; methods that would wait for that function then return
// [core.ErrWouldDeadlock].
//
// Flush, Drain and WaitIdle wait for the entries of operations that have left the window.
// An operation that leaves because another one has just finished may have no entry yet
// when a waiter for that other one returns; when the coordinator's Close has returned, all
// operations have.
type Recorder[P any] struct {
	*lastwords.Relay[Entry[P]]
	opts   Options
	missed atomic.Uint64
}

var _ core.Inspector = (*Recorder[int])(nil)

// New makes a recorder of the operations that leave c from now on, or says what is wrong
// with the options. Deliver gets each entry with a context that ends when the recorder is
// closed. An entry for which deliver returns an error or panics is not tried again.
//
// With a Kind[any] signals with any payload are captured, and signals with none.
func New[P any](c Source, kind core.Kind[P], deliver core.Work[Entry[P]], opts Options) (*Recorder[P], error) {
	if c == nil || deliver == nil || kind.Name() == "" {
		return nil, errors.New("echo: New needs a coordinator, a kind that core.NewKind has made, and a function that delivers entries")
	}
	r := &Recorder[P]{opts: opts.resolved(c, kind.Name())}
	var err error
	r.Relay, err = lastwords.NewRelay(c, r.entry, func(ctx context.Context, e Entry[P]) error {
		core.OperationFrom(ctx).SetKey(e.Operation.String())
		return deliver(ctx, e)
	}, core.Options{
		Name:           r.opts.Name,
		MaxConcurrency: r.opts.MaxConcurrency,
		MaxQueued:      r.opts.MaxQueued,
		OnDone:         r.done,
		Sink:           r.opts.Sink,
	})
	if err != nil {
		return nil, fmt.Errorf("echo: %w", err)
	}
	return r, nil
}

// entry makes the entry of an operation, if it has raised anything to capture.
func (r *Recorder[P]) entry(s core.Snapshot) (e Entry[P], ok bool) {
	e = Entry[P]{
		Operation: s.ID, Key: s.Key, Status: s.Status, Pinned: s.Pins > 0,
		Finished: s.Finished, Finalized: time.Now(),
	}
	if s.Err != nil {
		e.Err = s.Err.Error()
	}
	active := r.opts.Activate == ""
	for _, s := range s.Signals {
		skip := false
		if !active && s.Matches(r.opts.Activate) {
			active, skip = true, r.opts.SkipActivation
		}
		tooOld := r.opts.MaxAge > 0 && e.Finalized.Sub(s.Time) > r.opts.MaxAge
		if !active || skip || tooOld || !s.Matches(r.opts.Capture) {
			continue
		}
		if p, ok := payload[P](s); ok && (r.opts.Filter == nil || r.opts.Filter(s)) {
			e.Captures = append(e.Captures, Capture[P]{s, p})
		}
	}
	if limit := r.opts.MaxPerOperation; limit > 0 && len(e.Captures) > limit {
		e.Missed = len(e.Captures) - limit
		e.Captures = append([]Capture[P](nil), e.Captures[e.Missed:]...)
		r.missed.Add(uint64(e.Missed))
	}
	return e, len(e.Captures) > 0
}

// payload returns the payload of a signal if it is a P. No payload is one if P is any.
func payload[P any](s core.Signal) (p P, ok bool) {
	if s.Payload() == nil {
		_, ok = any(&p).(*any)
		return p, ok
	}
	p, ok = s.Payload().(P)
	return p, ok
}

// done raises the failure of an entry that was not delivered.
func (r *Recorder[P]) done(s core.Snapshot) {
	if s.Status != core.StatusSucceeded {
		e := s.Item.(Entry[P])
		r.Failed().Raise(r.opts.Sink, e.Operation.String(), Failure[P]{e, s.Err})
	}
}

// Failed is the kind of [SignalFailed]: to get the entries that were not delivered,
// subscribe to it on the sink. A handler is called on the goroutine that gave up on the
// entry, and delays it. When Flush, Drain, Stop or Close has returned, the handlers have
// been called for the entries that it waits for; called by a handler, these methods return
// [core.ErrWouldDeadlock]. A handler must not give an entry that was dropped back to Add:
// the queue is still full, so an entry would be dropped again, and so on.
func (r *Recorder[P]) Failed() core.Kind[Failure[P]] { return core.NewKind[Failure[P]](SignalFailed) }

// Stats returns the counters of the entries, see [lastwords.Relay]. SignalsDropped also
// counts the signals that MaxPerOperation left out.
func (r *Recorder[P]) Stats() core.Stats {
	s := r.Relay.Stats()
	s.SignalsDropped += r.missed.Load()
	return s
}

// An Entry is what was captured of an operation.
type Entry[P any] struct {
	Operation core.OperationID `json:"operation"`
	Key       string           `json:"key,omitempty"`
	Status    core.Status      `json:"status"`
	Err       string           `json:"error,omitempty"` // of the body, or why it did not run
	Pinned    bool             `json:"pinned,omitempty"`
	Finished  time.Time        `json:"finished,omitzero"`
	Finalized time.Time        `json:"finalized"` // when it left the window
	Captures  []Capture[P]     `json:"captures"`  // oldest first; at least one
	// Missed is how many older signals [Options.MaxPerOperation] left out.
	Missed int `json:"missed,omitempty"`
}

// A Capture is one signal of an operation and its payload.
type Capture[P any] struct {
	Signal  core.Signal `json:"signal"`
	Payload P           `json:"payload"`
}

// A Failure is an entry that was not delivered, and why: the error of the function, a
// [*core.PanicError] if it panicked, [core.ErrDropped] when there was no room for the
// entry, [core.ErrStopped] or [core.ErrClosed].
type Failure[P any] struct {
	Entry Entry[P]
	Err   error
}

// SignalFailed is raised, with the operation's id as key and a [Failure] as payload, for
// every entry that is not delivered; see [Recorder.Failed].
const SignalFailed = "echo.failed"
