package contributors

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"

	"github.com/ephemeralgo/ephemeral/core/signals"
)

const (
	// SignalCompleted is raised when a contributor has completed, with the name of the
	// contributor as key.
	SignalCompleted = "contributor.completed"
	// SignalFailed is raised when a contributor has failed, with the name of the
	// contributor as key.
	SignalFailed = "contributor.failed"
)

var (
	// ErrSettled is returned for a contributor that has completed or failed
	// already.
	ErrSettled = errors.New("contributors: outcome is settled already")
	// ErrUnreachable is returned by [Tracker.Wait] when too many contributors have failed. The
	// error wraps the errors of all that failed.
	ErrUnreachable = errors.New("contributors: too many have failed")
)

var errNoReason = errors.New("contributors: no reason was given")

// Options configure a [Tracker]. The zero value is the default.
type Options struct {
	// Sink is where outcomes are raised; nil means a new sink.
	Sink *signals.Sink
}

// resolved returns the options with defaults.
func (o Options) resolved() Options {
	if o.Sink == nil {
		o.Sink = signals.NewSink(signals.SinkOptions{})
	}
	return o
}

// A Tracker keeps the outcomes of a fixed set of contributors. Make one with [New].
// It owns no goroutine and needs no closing. All methods are safe for concurrent
// use.
type Tracker[R any] struct {
	opts     Options
	names    []string // in the order of New
	expected map[string]bool

	mu       sync.Mutex
	results  map[string]R
	failures map[string]error
	changed  chan struct{} // closed when an outcome comes; nil if nobody waits
}

// New makes a tracker of the contributors with these names. A name that is given
// twice is one contributor.
func New[R any](names []string, opts Options) (*Tracker[R], error) {
	t := &Tracker[R]{
		opts:     opts.resolved(),
		expected: make(map[string]bool),
		results:  make(map[string]R),
		failures: make(map[string]error),
	}
	for i, name := range names {
		if name == "" {
			return nil, fmt.Errorf(`contributors: name %d of %d is "", but the names tell contributors apart`, i+1, len(names))
		}
		if !t.expected[name] {
			t.expected[name] = true
			t.names = append(t.names, name)
		}
	}
	if len(t.names) == 0 {
		return nil, errors.New("contributors: there are no names, but there must be at least one contributor")
	}
	return t, nil
}

// Sink is where outcomes are raised.
func (t *Tracker[R]) Sink() *signals.Sink { return t.opts.Sink }

// Complete says that a contributor has completed, and raises [SignalCompleted]. It
// changes nothing and returns an error if there is no such contributor, or
// [ErrSettled] if it has completed or failed before.
func (t *Tracker[R]) Complete(name string, result R) error {
	return t.settle(name, SignalCompleted, func() { t.results[name] = result })
}

// Fail says that a contributor has failed with an error, and raises [SignalFailed]. A nil
// error means "no reason was given". It returns errors as Complete does.
func (t *Tracker[R]) Fail(name string, err error) error {
	return t.settle(name, SignalFailed, func() { t.failures[name] = cmp.Or(err, errNoReason) })
}

func (t *Tracker[R]) settle(name, signal string, record func()) error {
	if !t.expected[name] {
		return fmt.Errorf("contributors: %q is not one of the contributors", name)
	}
	t.mu.Lock()
	if t.settled(name) {
		t.mu.Unlock()
		return fmt.Errorf("%w: %q", ErrSettled, name)
	}
	record()
	changed := t.changed
	t.changed = nil
	t.mu.Unlock()
	if changed != nil {
		close(changed)
	}
	t.opts.Sink.RaiseKey(signal, name)
	return nil
}

// Wait waits until as many contributors as required have completed, and returns the
// outcomes so far. It returns an [ErrUnreachable] as soon as too many have failed.
// If ctx ends first, it returns the cause of ctx and the outcomes so far. Handlers of
// the outcomes' signals may still run when it returns. Required must be at least 1
// and at most the number of contributors.
func (t *Tracker[R]) Wait(ctx context.Context, required int) (Snapshot[R], error) {
	if required < 1 || required > len(t.names) {
		return t.Snapshot(), fmt.Errorf("contributors: %d of %d are required, want at least 1 and at most all", required, len(t.names))
	}
	for ended := false; ; {
		s, changed, err := t.look(required)
		switch {
		case changed == nil:
			return s, err
		case ended:
			return t.Snapshot(), context.Cause(ctx)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			ended = true
		}
	}
}

// look answers a waiter, or returns a channel that is closed when the next outcome
// comes.
func (t *Tracker[R]) look(required int) (Snapshot[R], <-chan struct{}, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.results) >= required {
		return t.snapshot(), nil, nil
	}
	if len(t.names)-len(t.failures) < required {
		return t.snapshot(), nil, &unreachable{required, len(t.names), maps.Clone(t.failures)}
	}
	if t.changed == nil {
		t.changed = make(chan struct{})
	}
	return Snapshot[R]{}, t.changed, nil
}

// Snapshot returns which contributors have completed, have failed and are pending.
func (t *Tracker[R]) Snapshot() Snapshot[R] {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.snapshot()
}

// snapshot copies the outcomes. The lock is held.
func (t *Tracker[R]) snapshot() Snapshot[R] {
	s := Snapshot[R]{Results: maps.Clone(t.results), Failures: maps.Clone(t.failures)}
	for _, name := range t.names {
		if !t.settled(name) {
			s.Pending = append(s.Pending, name)
		}
	}
	return s
}

// settled reports whether a contributor has an outcome. The lock is held.
func (t *Tracker[R]) settled(name string) bool {
	_, completed := t.results[name]
	_, failed := t.failures[name]
	return completed || failed
}
