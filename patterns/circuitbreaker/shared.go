package circuitbreaker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ephemeralgo/ephemeral/core/breaker"
	"github.com/ephemeralgo/ephemeral/core/outbox"
)

// ErrOpen matches every [OpenError].
var ErrOpen = errors.New("circuitbreaker: circuit is open")

// An OpenError says that a breaker allows no call.
type OpenError struct {
	Name       string        // of the breaker
	Failures   int           // that count
	RetryAfter time.Duration // until calls are allowed; 0 if as many probes run as may
}

func (e *OpenError) Error() string {
	return fmt.Sprintf("circuitbreaker: %s is open after %d failures, for another %v", e.Name, e.Failures, e.RetryAfter)
}

// Is reports whether target is [ErrOpen].
func (e *OpenError) Is(target error) bool { return target == ErrOpen }

// resultOf is the result of a call with that error. Without countIf all errors are failures
// but those that match [context.Canceled].
func resultOf(err error, countIf func(error) bool) breaker.Result {
	if err == nil {
		return breaker.Success
	}
	cancelled := errors.Is(err, context.Canceled)
	switch {
	case countIf == nil && !cancelled || countIf != nil && countIf(err):
		return breaker.Failure
	case cancelled:
		return breaker.Neutral
	}
	return breaker.Success
}

// A shared is a [breaker.Breaker] that many goroutines use. While it is closed, begin is an
// atomic load. It knows nothing of signals.
type shared struct {
	probes   bool // without, it closes by itself
	rated    bool
	onChange func(s breaker.State, closesIn time.Duration) // one call at a time, in order, under no lock
	base     time.Time
	present  atomic.Pointer[period]
	changes  outbox.Outbox

	mu      sync.Mutex
	rule    *breaker.Breaker
	forced  bool // open until over(false)
	stopped bool // closed for ever
}

// A period is the time from one change of the state to the next.
type period struct {
	state  breaker.State
	until  time.Duration  // when it ends, since base; 0: not by itself
	permit breaker.Permit // of calls, if it is closed
}

// A call is one that was allowed.
type call struct {
	in     *period
	permit breaker.Permit
}

// newShared makes a closed breaker.
func newShared(opts breaker.Options, onChange func(breaker.State, time.Duration)) (*shared, error) {
	rule, err := breaker.New(opts)
	if err != nil {
		return nil, err
	}
	s := &shared{probes: opts.Probes > 0, rated: opts.Rate > 0, onChange: onChange, base: time.Now(), rule: rule}
	permit, _ := rule.Allow(s.base)
	s.present.Store(&period{state: breaker.Closed, permit: permit})
	return s, nil
}

// begin begins a call if one is allowed.
func (s *shared) begin() (c call, ok bool) {
	c.in = s.present.Load()
	if c.permit = c.in.permit; c.in.state == breaker.Closed {
		return c, true
	}
	if s.state() == breaker.Open {
		return c, false
	}
	s.change(func(now time.Time) {
		c.permit, ok = s.rule.Allow(now)
		c.in = s.present.Load()
	})
	return c, ok
}

// allow is begin for a call that ends with a function. Only the first end counts.
func (s *shared) allow() (end func(breaker.Result) (counts bool), ok bool) {
	c, ok := s.begin()
	var ended atomic.Bool
	return func(r breaker.Result) bool { return !ended.Swap(true) && s.end(c, r) }, ok
}

// end ends a call, and reports whether it is a failure that counts: with probes, the failure
// of a call that began before the last change of the state does not.
func (s *shared) end(c call, r breaker.Result) (counts bool) {
	if r != breaker.Success || c.in.state != breaker.Closed {
		s.change(func(now time.Time) {
			counts = r == breaker.Failure && (c.in == s.present.Load() || !s.probes)
			s.rule.Done(c.permit, now, r)
		})
	} else if s.rated {
		now := s.now()
		s.mu.Lock()
		s.rule.Done(c.permit, now, r)
		s.mu.Unlock()
	}
	return counts
}

// over opens it: with probes for OpenFor, unless it is open, without until over(false).
func (s *shared) over(over bool) {
	s.change(func(now time.Time) {
		if s.forced = over && !s.probes; over && s.probes && s.rule.State(now) != breaker.Open {
			s.rule.Trip(now)
		}
	})
}

// trip opens it for OpenFor.
func (s *shared) trip() { s.change(func(now time.Time) { s.rule.Trip(now) }) }

// reset closes it.
func (s *shared) reset() { s.change(func(time.Time) { s.rule.Reset(); s.forced = false }) }

// stop closes it for ever.
func (s *shared) stop() { s.change(func(time.Time) { s.stopped = true }) }

// state is the state now. It costs a lock only where it has changed by itself.
func (s *shared) state() breaker.State {
	if p := s.present.Load(); p.until == 0 || time.Since(s.base) < p.until {
		return p.state
	}
	s.change(func(time.Time) {})
	return s.present.Load().state
}

// closesIn is for how much longer it is open; 0 if over keeps it open.
func (s *shared) closesIn() time.Duration {
	if p := s.present.Load(); p.until > 0 {
		return max(0, p.until-time.Since(s.base))
	}
	return 0
}

func (s *shared) now() time.Time { return s.base.Add(time.Since(s.base)) } // costs half of what time.Now does

// change changes the rule, and then calls onChange for what has changed by that or by time.
func (s *shared) change(how func(now time.Time)) {
	s.mu.Lock()
	now := s.now()
	s.look(now)
	how(now)
	s.look(now)
	s.mu.Unlock()
	s.changes.Run()
}

// look begins a new period if the state is another one, or open until another time. The
// lock is held.
func (s *shared) look(now time.Time) {
	if s.stopped || !s.probes && s.rule.State(now) == breaker.HalfOpen {
		s.rule.Reset()
		s.forced = s.forced && !s.stopped
	}
	state, lease, until := s.rule.State(now), s.rule.ClosesIn(now), time.Duration(0)
	if s.forced {
		state, lease = breaker.Open, 0
	}
	if lease > 0 {
		until = now.Sub(s.base) + lease
	}
	if last := s.present.Load(); last.state == state && last.until == until {
		return
	}
	p := &period{state: state, until: until}
	if state == breaker.Closed {
		p.permit, _ = s.rule.Allow(now)
	}
	s.present.Store(p)
	s.changes.Add(func() { s.onChange(state, lease) })
}
