package molecules

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// An Order says which of the things that signals set off wait for each other.
type Order int

const (
	// OrderNone lets them go side by side. Those that have to wait take turns
	// by key, so that a key with many does not hold up the others.
	OrderNone Order = iota
	// OrderPerKey lets those of one key go one after the other, in the order of
	// the signals; what has no key is one key as well.
	OrderPerKey
	// OrderSerial lets all go one after the other, in the order of the signals.
	OrderSerial
)

func (o Order) String() string {
	switch o {
	case OrderNone:
		return "none"
	case OrderPerKey:
		return "per key"
	case OrderSerial:
		return "serial"
	}
	return fmt.Sprintf("Order(%d)", int(o))
}

// settings are the options that Runner and Trigger share.
type settings struct {
	name           string
	order          Order
	maxConcurrency int
	maxQueued      int
	maxTracked     int
	maxAge         time.Duration
}

// reactor is what a Runner and a Trigger share: a coordinator of what signals set
// off, and the subscriptions that feed it.
type reactor[T any] struct {
	sink        *core.Sink
	coordinator *core.Coordinator[T]

	mu       sync.Mutex
	over     bool // listens no more
	unlisten []func()
}

func newReactor[T any](sink *core.Sink, key func(T) string, work core.Work[T], s settings) (*reactor[T], error) {
	opts := core.Options{
		Name:           s.name,
		MaxConcurrency: s.maxConcurrency,
		MaxQueued:      s.maxQueued,
		MaxTracked:     s.maxTracked,
		MaxAge:         s.maxAge,
		Sink:           sink,
	}
	var (
		c   *core.Coordinator[T]
		err error
	)
	switch s.order {
	case OrderNone:
		opts.MaxPerKey = opts.MaxConcurrency
		c, err = core.NewKeyedCoordinator(key, work, opts)
	case OrderPerKey:
		c, err = core.NewKeyedCoordinator(key, work, opts)
	case OrderSerial:
		opts.MaxConcurrency = 1
		c, err = core.NewCoordinator(work, opts)
	}
	if err != nil {
		return nil, fmt.Errorf("molecules: %w", err)
	}
	return &reactor[T]{sink: sink, coordinator: c}, nil
}

// check fills in the default of the concurrency, and finds what is wrong.
func (s *settings) check() error {
	switch {
	case s.order < OrderNone || s.order > OrderSerial:
		return fmt.Errorf("molecules: Options.Order is %v, which is none of the constants", s.order)
	case s.maxConcurrency < 0:
		return fmt.Errorf("molecules: Options.MaxConcurrency is %d, but must not be negative", s.maxConcurrency)
	case s.order == OrderSerial && s.maxConcurrency > 1:
		return fmt.Errorf("molecules: Options.MaxConcurrency is %d, but with OrderSerial there is only one at a time", s.maxConcurrency)
	}
	if s.maxConcurrency == 0 {
		s.maxConcurrency = defaultMaxConcurrency
	}
	return nil
}

const defaultMaxConcurrency = 16

// listen subscribes, unless it is over.
func (r *reactor[T]) listen(pattern string, fn func(core.Signal)) {
	cancel := r.sink.Subscribe(pattern, fn)
	r.mu.Lock()
	over := r.over
	if !over {
		r.unlisten = append(r.unlisten, cancel)
	}
	r.mu.Unlock()
	if over {
		cancel()
	}
}

// stopListening ends the subscriptions, for good. Handlers that run are waited
// for, so not under the lock.
func (r *reactor[T]) stopListening() {
	r.mu.Lock()
	r.over = true
	unlisten := r.unlisten
	r.unlisten = nil
	r.mu.Unlock()
	for _, cancel := range unlisten {
		cancel()
	}
}

// own reports whether s is what the coordinator itself, or an operation without
// naming a cause, has raised, or one of those signals that every operation raises
// while somebody listens: these must not set anything off, or a pattern such as
// "*" would never come to rest.
func (r *reactor[T]) own(s core.Signal) bool {
	if s.Name == core.SignalStarted || s.Name == core.SignalStopped {
		return true
	}
	if s.Operation == 0 || s.Depth() > 0 || s.Source != r.coordinator.Name() {
		return false
	}
	_, own := r.coordinator.Lookup(s.Operation)
	return own
}

// Name is the Source of the signals that are raised.
func (r *reactor[T]) Name() string { return r.coordinator.Name() }

// Sink is the sink whose signals are heeded.
func (r *reactor[T]) Sink() *core.Sink { return r.sink }

// Stats returns the counters, read as one cut. Each signal that set something off
// is in exactly one of them; those that found the queue full are Rejected.
func (r *reactor[T]) Stats() core.Stats { return r.coordinator.Stats() }

// Lookup returns what is known of an operation that waits, runs, or has finished
// not long ago.
func (r *reactor[T]) Lookup(id core.OperationID) (core.Snapshot, bool) {
	return r.coordinator.Lookup(id)
}

// Operations walks the operations that q selects, in the order in which they were
// set off. Each bears the key of the signal that did; with [OrderSerial], once it
// has begun.
func (r *reactor[T]) Operations(q core.OperationQuery) iter.Seq[core.Snapshot] {
	return r.coordinator.Operations(q)
}

// Explain says why an operation waits.
func (r *reactor[T]) Explain(id core.OperationID) (core.Explanation, bool) {
	return r.coordinator.Explain(id)
}

// OnFinalized calls fn with the last snapshot of every operation that leaves the
// window, exactly once each, also when it is closed; see
// [core.Coordinator.OnFinalized].
func (r *reactor[T]) OnFinalized(fn func(core.Snapshot)) (cancel func()) {
	return r.coordinator.OnFinalized(fn)
}

// Flush waits until everything set off so far is finished; not for what that sets
// off in turn. When ctx ends first it returns its cause. From inside it returns
// [core.ErrWouldDeadlock].
func (r *reactor[T]) Flush(ctx context.Context) error { return r.coordinator.Flush(ctx) }

// Complete ends the listening: signals set nothing more off.
func (r *reactor[T]) Complete() {
	r.coordinator.Complete()
	r.stopListening()
}

// Drain is Complete, and then waits until everything set off is finished. When ctx
// ends first it returns its cause, and the rest goes on. From inside it returns
// [core.ErrWouldDeadlock] and changes nothing.
func (r *reactor[T]) Drain(ctx context.Context) error {
	if r.isInside(ctx) {
		return core.ErrWouldDeadlock
	}
	r.Complete()
	return r.coordinator.Flush(ctx)
}

// isInside reports whether what has been set off would wait for itself.
func (r *reactor[T]) isInside(ctx context.Context) bool {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return r.coordinator.Flush(ctx) == core.ErrWouldDeadlock
}

// Cancel keeps what a signal has set off from starting, or cancels its context,
// with that cause; nil means [core.ErrCancelled]. It reports false if there was
// nothing to cancel.
func (r *reactor[T]) Cancel(id core.OperationID, cause error) bool {
	return r.coordinator.Cancel(id, cause)
}

// Close ends the listening, cancels what runs, with the cause [core.ErrClosed],
// accounts for what waits as cancelled, and waits for what runs to return; from
// inside, or from a handler, it does not wait. It returns nil.
func (r *reactor[T]) Close() error {
	r.stopListening()
	return r.coordinator.Close()
}
