package adaptiverate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/guard"
	"github.com/ephemeralgo/ephemeral/core/outbox"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// Pattern matches the signals that contain a time to wait, such as "rate-limit:500ms". The
// time begins when the signal is raised. [signals.ParseRetryAfter] reads it. If it cannot, as in
// "rate-limit:soon", the signal has no effect.
const Pattern = name + ":*"

// name is raised as well, for code that looks for limits of any length.
const name = "rate-limit"

// SignalLimited is the start of the name of the signal that is held while no item may start.
// For a coordinator with the name api, the signal is "rate.limited.api".
//
//ephemeral:raises rate.limited.*
//ephemeral:raises rate-limit
//ephemeral:raises rate-limit:*
const SignalLimited = "rate.limited"

// retryAfter is an error with the time to wait before the next call.
type retryAfter interface {
	error
	RetryAfter() time.Duration
}

// New makes a coordinator that obeys the newest signal on its sink that matches [Pattern]:
// until the time in the signal has passed, no item starts. The signal may be older than the
// coordinator.
//
// If work returns an error with a method RetryAfter() time.Duration, or an error that wraps
// one, and the result is above 0, the operation raises "rate-limit" and "rate-limit:Nms". N
// is the result in milliseconds, rounded up.
//
// The default of Name is "adaptiverate". [core.Options.DeferOn] may name more signals. A
// shared sink keeps the coordinator in memory until it is drained, stopped or closed.
func New[T any](work core.Work[T], opts core.Options) (*core.Coordinator[T], error) {
	if work == nil {
		return nil, errors.New("adaptiverate: New needs a function")
	}
	opts.Name = cmp.Or(opts.Name, "adaptiverate")
	fact := SignalLimited + "." + opts.Name
	if !signals.Match(fact, fact) {
		return nil, fmt.Errorf("adaptiverate: Options.Name is %q, but must be a name without commas and without blanks around it", opts.Name)
	}
	opts.DeferOn += "," + fact
	c, err := core.NewCoordinator(reporting(work), opts)
	if err != nil {
		return nil, fmt.Errorf("adaptiverate: %w", err)
	}
	l := &limit{sink: c.Sink(), fact: fact, release: func() {}}
	stop := l.sink.Follow(Pattern, l.follow)
	c.OnClosed(func() {
		stop()
		l.set(math.MaxUint64, 0) // nothing is newer
	})
	return c, nil
}

// reporting returns work that raises a signal if the error has a time to wait.
func reporting[T any](work core.Work[T]) core.Work[T] {
	return func(ctx context.Context, item T) error {
		err := work(ctx, item)
		if d, _ := guard.Ask(err, retryAfter.RetryAfter); d > 0 {
			ms := min((d-1).Milliseconds()+1, math.MaxInt64/int64(time.Millisecond))
			core.OperationFrom(ctx).Raise(name)
			core.OperationFrom(ctx).Raise(fmt.Sprintf("%s:%dms", name, ms))
		}
		return err
	}
}

// limit is the held signal of a coordinator.
type limit struct {
	sink    *signals.Sink
	fact    string
	effects outbox.Outbox

	// Used by one effect at a time.
	newest  uint64 // Seq of the signal that counts
	release func()
}

// follow takes the time from a signal.
func (l *limit) follow(s signals.Signal) {
	if d, ok := signals.ParseRetryAfter(s.Name); ok {
		l.set(s.Seq, time.Until(s.Time)+d)
	}
}

// set holds the signal for the remaining time, if there is any. It holds the new signal
// before it releases the old one, so that no item starts in between.
func (l *limit) set(seq uint64, left time.Duration) {
	l.effects.Add(func() {
		if seq <= l.newest {
			return
		}
		l.newest = seq
		old := l.release
		if l.release = func() {}; left > 0 {
			l.release = l.sink.Hold(l.fact, "", left)
		}
		old()
	})
	l.effects.Run()
}
