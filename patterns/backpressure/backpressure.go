package backpressure

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/outbox"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// Pattern matches the signals that defer the items of a coordinator that [New] made. For a
// coordinator with the name db, [Watch] holds the signal "backpressure.db".
//
//ephemeral:raises backpressure.*
const Pattern = prefix + "*"

const prefix = "backpressure."

// New makes a coordinator that starts no item while a signal that matches [Pattern] is
// present on opts.Sink. Opts.Sink must be set. All other options of a coordinator
// apply, too. [core.Options.DeferOn] may name more signals.
//
// A held signal defers items until it is released. A raised signal defers them until it is
// retracted or leaves the sink, but each item for at most [core.Options.MaxDefer]. After
// that, the item runs, and [core.SignalForced] is raised.
//
// Do not [Watch] a coordinator of New: its own items could not start, so the number of
// pending items would never fall. For a stage in the middle, use [core.NewCoordinator], and
// name only the signals of later stages in DeferOn.
func New[T any](work core.Work[T], opts core.Options) (*core.Coordinator[T], error) {
	if opts.Sink == nil {
		return nil, errors.New("backpressure: Options.Sink is nil, but must be the sink on which " + Pattern + " is raised or held")
	}
	opts.DeferOn += ", " + Pattern
	return core.NewCoordinator(work, opts)
}

// Watermarks say when a coordinator has too many pending items. The zero value is the
// default.
type Watermarks struct {
	// High is the number of pending items at which the signal is held. 0 means 100.
	High int
	// Low is the number of pending items at which the signal is released. Low must be less
	// than High. 0 means a quarter of High. A negative number means that no pending item may
	// be left.
	Low int
}

func (w Watermarks) resolved() (Watermarks, error) {
	w.High = cmp.Or(w.High, 100)
	w.Low = max(0, cmp.Or(w.Low, w.High/4))
	if w.High <= w.Low {
		return w, fmt.Errorf("backpressure: Watermarks.High is %d, but must be more than 0 and than Low, which is %d", w.High, w.Low)
	}
	return w, nil
}

// A Target is a coordinator of any kind, such as a [core.Coordinator].
type Target interface {
	Name() string
	Sink() *signals.Sink
	OnPending(high, low int, fn func(over bool)) (cancel func())
	OnClosed(fn func()) (cancel func())
}

// Watch holds the signal "backpressure.NAME" on the sink of the coordinator NAME while the
// coordinator has too many pending items: see [Watermarks]. The watch ends when stop is
// called, or when the coordinator ends. The signal is held and released by the goroutine that
// enqueues or starts the item. Stop may be called many times, from anywhere. Watch panics if
// the watermarks are not valid.
func Watch(on Target, marks Watermarks) (stop func()) {
	marks, err := marks.resolved()
	if err != nil {
		panic(err)
	}
	var effects outbox.Outbox // stop may be called during Hold
	release := func() {}
	hold := func(over bool) {
		effects.Add(func() {
			release()
			if over {
				release = on.Sink().Hold(prefix+on.Name(), "", 0)
			}
		})
		effects.Run()
	}
	cancel := on.OnPending(marks.High, marks.Low, hold)
	end := func() {
		cancel()
		hold(false)
	}
	forget := on.OnClosed(end)
	return func() {
		forget()
		end()
	}
}
