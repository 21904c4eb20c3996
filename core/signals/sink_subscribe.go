package signals

import (
	"sync/atomic"

	"github.com/ephemeralgo/ephemeral/core/internal/frames"
	"github.com/ephemeralgo/ephemeral/core/internal/glob"
	"github.com/ephemeralgo/ephemeral/core/internal/hook"
)

// blocking reports whether this goroutine is inside a call of OnBlocked.
func blocking() bool { return frames.Of(blockedFunction, 1) > 0 }

var blockedFunction = frames.Prefix() + "(*Sink).tellBlocked"

// A Retraction says that a signal was taken back: by [Sink.Retract], by the operation that
// raised it, or by its release.
type Retraction struct {
	Signal Signal
	//ephemeral:none
	Pattern string // the pattern that retracted it; "" if it was retracted by its name or by its release
}

// Subscribe calls fn for every signal that is recorded from now on and whose name matches
// pattern. It calls fn on the raiser's goroutine, before Raise returns. Handlers are
// called in the order of subscription. No lock is held: fn may raise, sense, subscribe,
// enqueue and close. While fn blocks, the raiser waits. So a slow consumer slows its
// producer. If the raiser should not wait, let fn enqueue the work on a coordinator. A
// panic of fn is counted in [SinkStats] and has no other effect.
//
// A pattern such as "operation.*" makes coordinators on the sink raise [SignalStarted] and
// [SignalStopped] for every operation. The pattern "*" does not. A handler of "*" gets
// these signals only while another pattern makes the coordinators raise them.
//
// Fn must return or panic: it must not end the goroutine with [runtime.Goexit], and so not call FailNow of a
// test. Cancel waits for running calls of fn. Inside a handler it does not wait. After cancel,
// no call of fn starts. A handler whose pattern matches nothing, like "", is never
// called. Subscribe panics if fn is nil.
//
//ephemeral:pattern {pattern}
func (s *Sink) Subscribe(pattern string, fn func(Signal)) (cancel func()) {
	need(fn != nil, "Subscribe needs a function")
	return hook.New(glob.Compile(pattern), fn).Attach(&s.mu, watching[*subscription]{&s.names.routes, &s.names.subs})
}

func (s *Sink) tellBlocked(blocked Signal, why BlockReason) {
	tell := hook.New(glob.Pattern{}, func(b Signal) { s.rules.onBlocked(b, why) })
	hook.Deliver([]*subscription{tell}, false, &blocked, &s.panics)
}

// SubscribeRetracted calls fn for every signal that matches pattern and is taken back: by
// [Sink.Retract], by its operation, or by the release of a held signal. Ageing, eviction
// and the end of a lease are no retractions. It calls fn on the goroutine that retracts.
// The rules of [Sink.Subscribe] hold for fn and cancel. SubscribeRetracted panics if fn
// is nil.
//
//ephemeral:pattern {pattern}
func (s *Sink) SubscribeRetracted(pattern string, fn func(Retraction)) (cancel func()) {
	need(fn != nil, "SubscribeRetracted needs a function")
	return hook.New(glob.Compile(pattern), fn).Attach(&s.mu, watching[*hook.Hook[Retraction]]{of: &s.retractions})
}

// tellRetracted tells the subscribers that a signal was taken back. No lock is held.
func (s *Sink) tellRetracted(signal Signal, by string) {
	s.mu.Lock()
	hooks := find[*hook.Hook[Retraction]](&s.retractions, nil, signal.Name)
	s.mu.Unlock()
	s.tell(hooks, signal, by, &s.panics)
}

// tell calls hooks with a retraction, unless handlers are nested too deep. The lock guards the
// hooks, but not the list.
func (s *Sink) tell(hooks []*hook.Hook[Retraction], signal Signal, by string, panics *atomic.Uint64) {
	if len(hooks) == 0 {
		return
	}
	s.mu.Lock()
	crowded := hook.Crowded(hooks)
	s.mu.Unlock()
	if crowded {
		if hook.TooDeep() {
			s.blocked.Add(1)
			return
		}
		s.mu.Lock()
		hook.Calm(hooks)
		s.mu.Unlock()
	}
	r := Retraction{Signal: signal, Pattern: by}
	hook.Deliver(hooks, false, &r, panics)
}
