// This file decides when the callbacks of OnPending and OnClosed are called.

package core

import (
	"github.com/ephemeralgo/ephemeral/core/internal/glob"
	"github.com/ephemeralgo/ephemeral/core/internal/hook"
)

// OnPending calls fn(true) when the number of pending operations in all lanes reaches high,
// and fn(false) when it has fallen to low. If the number is high already, OnPending calls
// fn(true) at once. The calls alternate, starting with true, and never overlap. The last call
// has the current state. A change that is over before fn can be called may be left out. Fn is
// called without a lock, on the goroutine that enqueues or on a worker's goroutine. A slow fn
// delays that goroutine, and all goroutines that enqueue items or finish operations meanwhile.
// Panics of fn are counted in [Stats]. For cancel see [signals.Sink.Subscribe]. OnPending panics if fn
// is nil, if low is negative, or if high is not greater than low.
func (c Control) OnPending(high, low int, fn func(over bool)) (cancel func()) {
	e := c.made()
	w := hook.NewWatermark("core: OnPending", high, low, fn, e.scope.Engine().Panics())
	e.mu.Lock()
	number := e.pendingMarks.Add(w)
	e.watchesPending.Store(true)
	e.collect()
	e.seeMark(w)
	e.unlock()
	return func() {
		e.mu.Lock()
		e.pendingMarks.Remove(number)
		e.watchesPending.Store(e.pendingMarks.Len() > 0)
		w.Told.Cancel()
		e.mu.Unlock()
		w.Told.Wait()
	}
}

// OnClosed calls fn once, when no operation will start any more: when Close begins, or
// when the intake has ended and all accepted items are done. Drain and Stop return
// after fn. If one of these has happened already, OnClosed calls fn at once. Use it,
// for example, to end subscriptions. Fn runs without a lock; its panics are counted in
// [Stats]. For cancel see [signals.Sink.Subscribe]. OnClosed panics if fn is nil.
func (c Control) OnClosed(fn func()) (cancel func()) {
	need(fn != nil, "OnClosed needs a function")
	e := c.made()
	h := hook.New(glob.Pattern{}, func(struct{}) { fn() })
	e.mu.Lock()
	late := e.detached
	cancel = h.Join(&e.mu, &e.onClosed)
	e.mu.Unlock()
	if late {
		e.tellClosed([]*hook.Hook[struct{}]{h})
	}
	return cancel
}
