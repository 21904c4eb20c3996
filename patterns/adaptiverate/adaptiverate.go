package adaptiverate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/outbox"
)

// Pattern matches the signals that say how long no item may start, counted from when they
// were raised: as [core.ParseRetryAfter] reads them. Others, such as "rate-limit:soon", have
// no effect.
const Pattern = name + ":*"

// name is raised as well, for code that asks for it.
const name = "rate-limit"

// SignalLimited, a dot and the name of the coordinator is the name of the fact that is held
// while no item may start: "rate.limited.api" for one called api.
const SignalLimited = "rate.limited"

// retryAfter is an error that says how long not to call the server again.
type retryAfter interface {
	error
	RetryAfter() time.Duration
}

// New makes a coordinator that starts no item before the time that the newest signal on its
// sink says that matches [Pattern], also one that was raised before. When work returns an
// error that has, or wraps one that has, a method RetryAfter() time.Duration with a result
// above 0, its operation raises "rate-limit" and such a signal, in whole milliseconds,
// rounded up.
//
// The default of Name is "adaptiverate", and [core.Options.DeferOn] may name more signals. A
// sink that is shared keeps the coordinator alive until it is drained, stopped or closed,
// and then has no trace of it.
func New[T any](work core.Work[T], opts core.Options) (*core.Coordinator[T], error) {
	if work == nil {
		return nil, errors.New("adaptiverate: New needs a function")
	}
	opts.Name = cmp.Or(opts.Name, "adaptiverate")
	fact := SignalLimited + "." + opts.Name
	if !core.Match(fact, fact) {
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

// reporting is work that raises a signal for an error that says how long to wait.
func reporting[T any](work core.Work[T]) core.Work[T] {
	return func(ctx context.Context, item T) error {
		err := work(ctx, item)
		if limited, ok := errors.AsType[retryAfter](err); ok {
			if d := limited.RetryAfter(); d > 0 {
				ms := min((d-1).Milliseconds()+1, math.MaxInt64/int64(time.Millisecond))
				core.OperationFrom(ctx).Raise(name)
				core.OperationFrom(ctx).Raise(fmt.Sprintf("%s:%dms", name, ms))
			}
		}
		return err
	}
}

// limit is the fact that a coordinator holds.
type limit struct {
	sink    *core.Sink
	fact    string
	effects outbox.Outbox

	// Used by one effect at a time.
	newest  uint64 // Seq of the signal that counts
	release func()
}

// follow lets a signal replace older ones.
func (l *limit) follow(s core.Signal) {
	if d, ok := core.ParseRetryAfter(s.Name); ok {
		l.set(s.Seq, time.Until(s.Time)+d)
	}
}

// set holds the fact for what is left, if that is above 0. The new fact comes before the
// old one goes, so that no item starts in between.
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
