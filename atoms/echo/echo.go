package echo

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// A Source is what a [Recorder] needs of a coordinator; all of core are, dispatchers
// and processors too, and the atoms that have these methods, such as a fixedwork.Pool.
// Cancel may be called many times.
type Source interface {
	OnFinalized(func(core.Snapshot)) (cancel func())
	Sink() *core.Sink
}

// Options configure a [Recorder]. The zero value is the default.
type Options struct {
	// Name tells recorders apart: the Source of the signals that delivering
	// raises. "" means "echo".
	Name string
	// Sink is where [SignalFailed] is raised, and what the function raises; nil
	// means that of the coordinator.
	Sink *core.Sink

	// Capture is the pattern of the signals that are captured, if they have a
	// payload of the kind's type. "" means those of the kind, whatever is in
	// front of the name when an operation raises it Scoped.
	Capture string
	// Activate is the pattern of the signals that open an operation's mouth:
	// what it raised before the first of them is not captured. "" means that
	// everything is.
	Activate string
	// SkipActivation leaves out the signal that did that; otherwise it is
	// captured if it is one of those.
	SkipActivation bool
	// Filter has the last say on what is captured; nil means everything. It is
	// called on the goroutine that evicts the operation, which waits for it. If
	// it panics, the coordinator counts that in its Stats, and there is no entry.
	Filter func(core.Signal) bool
	// MaxAge leaves out signals that are older when the operation leaves the
	// window; 0 and negative mean no limit.
	MaxAge time.Duration
	// MaxPerOperation is how many signals of an operation are captured, the
	// newest; 0 means 64.
	MaxPerOperation int

	// MaxOperations is how many entries may wait to be delivered before the
	// oldest of them is dropped; 0 means 256. A coordinator that is closed lets
	// its whole window go at once: to lose none of that, let as many wait as the
	// coordinator tracks.
	MaxOperations int
	// MaxConcurrency is how many entries are delivered at once; 0 means 1, by
	// which they keep their order.
	MaxConcurrency int
}

// A Recorder delivers the last words of operations that leave a coordinator's window.
// Make one with [New]. It is kept alive by the coordinator until it is completed,
// drained or closed, and owns a goroutine only while there are entries to deliver.
// All methods are safe for concurrent use, from the function that delivers as well;
// those that would wait for it then return [core.ErrWouldDeadlock].
type Recorder[P any] struct {
	entries *core.Coordinator[*parcel[P]]
	capture capturer[P]
	sink    *core.Sink
	unhook  func()
	missed  atomic.Uint64

	mu      sync.Mutex
	last    uint64
	parcels map[string]*parcel[P]           // that wait
	begun   map[core.OperationID]*parcel[P] // that are being delivered
}

// parcel is an entry on its way. Its id is the key of the operation that delivers it
// until that begins, by which it is found when it never does.
type parcel[P any] struct {
	id    string
	entry Entry[P]
}

var _ core.Lifecycle = (*Recorder[int])(nil)

// New makes a recorder of the operations that leave c from now on, or says what is
// wrong with the options. Deliver is given each entry with a context that ends when
// the recorder is closed; an entry for which it returns an error or panics is not
// tried again.
//
// With a Kind[any] signals of any payload are captured, and plain ones.
func New[P any](c Source, kind core.Kind[P], deliver core.Work[Entry[P]], opts Options) (*Recorder[P], error) {
	switch {
	case c == nil:
		return nil, errors.New("echo: New needs a coordinator to hear of, not nil")
	case kind.Name() == "":
		return nil, errors.New("echo: New needs a kind that core.NewKind has made, not the zero one")
	case deliver == nil:
		return nil, errors.New("echo: New needs a function that delivers entries, not nil")
	case opts.MaxPerOperation < 0:
		return nil, fmt.Errorf("echo: MaxPerOperation is %d, it must not be negative", opts.MaxPerOperation)
	case opts.MaxOperations < 0:
		return nil, fmt.Errorf("echo: MaxOperations is %d, it must not be negative", opts.MaxOperations)
	case opts.MaxConcurrency < 0:
		return nil, fmt.Errorf("echo: MaxConcurrency is %d, it must not be negative", opts.MaxConcurrency)
	}
	if opts.Name == "" {
		opts.Name = "echo"
	}
	if opts.Sink == nil {
		opts.Sink = c.Sink()
	}
	if opts.Capture == "" {
		opts.Capture = kind.Name() + ", *." + kind.Name()
	}
	if opts.MaxPerOperation == 0 {
		opts.MaxPerOperation = 64
	}
	if opts.MaxOperations == 0 {
		opts.MaxOperations = 256
	}
	if opts.MaxConcurrency == 0 {
		opts.MaxConcurrency = 1
	}
	r := &Recorder[P]{
		capture: capturer[P]{
			pattern:        opts.Capture,
			activate:       opts.Activate,
			skipActivation: opts.SkipActivation,
			filter:         opts.Filter,
			maxAge:         opts.MaxAge,
			max:            opts.MaxPerOperation,
		},
		sink:    opts.Sink,
		parcels: map[string]*parcel[P]{},
		begun:   map[core.OperationID]*parcel[P]{},
	}
	var err error
	r.entries, err = core.NewKeyedCoordinator((*parcel[P]).key, func(ctx context.Context, p *parcel[P]) error {
		r.begin(core.OperationFrom(ctx), p)
		return deliver(ctx, p.entry)
	}, core.Options{
		Name:           opts.Name,
		MaxConcurrency: opts.MaxConcurrency,
		MaxQueued:      opts.MaxOperations,
		DropOldest:     true, // so that nobody waits
		MaxTracked:     -1,   // so that failures are known at once
		EchoCapacity:   -1,
		Sink:           opts.Sink,
	})
	if err != nil {
		return nil, fmt.Errorf("echo: %w", err)
	}
	r.entries.OnFinalized(r.arrived)
	r.unhook = c.OnFinalized(func(s core.Snapshot) { r.Record(s) }) // it counts what comes too late
	return r, nil
}

func (p *parcel[P]) key() string { return p.id }

// Record accepts the last words of an operation from elsewhere, such as another
// coordinator's OnFinalized; if there are none it does nothing. It never waits: when
// the queue is full the oldest entry is dropped. It returns [core.ErrClosed] after
// Complete, Drain and Close.
func (r *Recorder[P]) Record(s core.Snapshot) error {
	now := time.Now()
	captures, missed := r.capture.capture(s.Signals, now)
	if len(captures) == 0 {
		return nil
	}
	r.missed.Add(uint64(missed))
	e := Entry[P]{
		Operation: s.ID, Key: s.Key, Status: s.Status, Pinned: s.Pins > 0,
		Finished: s.Finished, Finalized: now,
		Captures: captures, Missed: missed,
	}
	if s.Err != nil {
		e.Err = s.Err.Error()
	}
	p := r.wrap(e)
	_, err := r.entries.TryEnqueue(p)
	if err != nil {
		r.take(0, p.id)
	}
	return err
}

func (r *Recorder[P]) wrap(e Entry[P]) *parcel[P] {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last++
	p := &parcel[P]{strconv.FormatUint(r.last, 36), e}
	r.parcels[p.id] = p
	return p
}

// begin makes o the operation that delivers p. From now on its key is for those who
// read what it raises.
func (r *Recorder[P]) begin(o *core.Operation, p *parcel[P]) {
	r.mu.Lock()
	delete(r.parcels, p.id)
	r.begun[o.ID()] = p
	r.mu.Unlock()
	o.SetKey(p.entry.Operation.String())
}

// take ends the way of the parcel of an operation, which has begun or has that key.
func (r *Recorder[P]) take(o core.OperationID, key string) *parcel[P] {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p, ok := r.begun[o]; ok {
		delete(r.begun, o)
		return p
	}
	p := r.parcels[key]
	delete(r.parcels, key)
	return p
}

// arrived is told of each entry that is delivered, or not.
func (r *Recorder[P]) arrived(s core.Snapshot) {
	p := r.take(s.ID, s.Key)
	if p != nil && s.Status != core.StatusSucceeded {
		r.Failed().Raise(r.sink, p.entry.Operation.String(), Failure[P]{p.entry, s.Err})
	}
}

// Failed is the kind of [SignalFailed]: to be handed the entries that could not be
// delivered, subscribe to it on the sink. They come on the goroutine that gave up on
// them, which waits; when Close has returned, all have come. One that was dropped
// must not be given to Record there: it would be dropped again, or another for it,
// and so on.
func (r *Recorder[P]) Failed() core.Kind[Failure[P]] { return core.NewKind[Failure[P]](SignalFailed) }

// Stats returns the recorder's counters: entries that were delivered have Succeeded,
// the others have Failed, were Dropped because the queue was full, or Cancelled by
// Close; those that came later still were Rejected. SignalsDropped counts what
// MaxPerOperation left out.
func (r *Recorder[P]) Stats() core.Stats {
	s := r.entries.Stats()
	s.SignalsDropped += r.missed.Load()
	return s
}

// Name is [Options.Name].
func (r *Recorder[P]) Name() string { return r.entries.Name() }

// Sink is where [SignalFailed] is raised.
func (r *Recorder[P]) Sink() *core.Sink { return r.sink }

// Complete ends the intake: operations that leave from now on are not recorded. What
// has been is still delivered.
func (r *Recorder[P]) Complete() {
	r.unhook()
	r.entries.Complete()
}

// Flush waits until all entries so far, of operations that have left the window, are
// delivered, dropped or have failed. When ctx ends first it returns its cause. An
// operation that leaves because it, or another one, has just finished may not have
// its entry yet when who waits for that one is told; when the coordinator's Close has
// returned, all have.
func (r *Recorder[P]) Flush(ctx context.Context) error { return r.entries.Flush(ctx) }

// Drain ends the intake, as Complete does, and waits as Flush does. Close the
// coordinator first, so that what is left in its window is recorded.
func (r *Recorder[P]) Drain(ctx context.Context) error {
	err := r.entries.Drain(ctx)
	if errors.Is(err, core.ErrWouldDeadlock) {
		return err
	}
	r.unhook()
	return err
}

// Close ends the intake, cancels the context of the entries that are being delivered,
// hands out those that wait as failures, see [SignalFailed], and waits for the
// function that delivers to return; called by that function or a handler it does not
// wait. It returns nil.
func (r *Recorder[P]) Close() error {
	r.unhook()
	return r.entries.Close()
}
