package backpressure

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/outbox"
)

// Pattern matches the signals that defer the items of a coordinator that [New] made. The
// fact that [Watch] holds for the coordinator called db is "backpressure.db".
const Pattern = prefix + "*"

const prefix = "backpressure."

// New makes a coordinator that starts no item while a signal that matches [Pattern] is
// present on opts.Sink, which must be set. The options are those of every coordinator, and
// [core.Options.DeferOn] may name more signals. A held signal defers items until it is
// released. A raised one defers them until it is retracted or has aged, but each item at
// most for [core.Options.MaxDefer]; then it runs all the same, and [core.SignalForced] is
// raised.
//
// Do not [Watch] the coordinator on the same sink: its own items could not start, so the
// number of pending items would never fall. A stage that is watched itself names the later stages in DeferOn of
// [core.NewCoordinator] instead.
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
	// High is how many pending items there must be to hold the fact. 0 means 100.
	High int
	// Low is how few there must be to release it: fewer than High. 0 means a quarter of
	// High, negative none.
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
	Sink() *core.Sink
	OnPending(high, low int, fn func(over bool)) (cancel func())
	OnClosed(fn func()) (cancel func())
}

// Watch holds a fact, "backpressure." and the name of the coordinator, on the sink of the
// coordinator while it has too many pending items, from one watermark to the other. It does
// so until stop is called or the coordinator has come to its end. The fact is held and
// released on the goroutine that enqueues or that of a worker. Stop may be called many
// times, from anywhere. Watch panics if the watermarks are not valid.
func Watch(on Target, marks Watermarks) (stop func()) {
	marks, err := marks.resolved()
	if err != nil {
		panic(err)
	}
	var effects outbox.Outbox // stop may be called while the fact is being held
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
