package circuitbreaker

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ephemeralgo/ephemeral/core/breaker"
	"github.com/ephemeralgo/ephemeral/core/guard"
	"github.com/ephemeralgo/ephemeral/core/outbox"
)

// A shared is a [breaker.Breaker] for many goroutines. It reads the time from package time.
// While it is closed, begin is an atomic load. It owns no goroutine.
type shared struct {
	trials   int // 0: the breaker closes by itself, without trials
	rated    bool
	shadow   bool                                                      // all calls are allowed
	onChange func(s breaker.State, closesIn time.Duration, why string) // one call at a time, in order, under no lock
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
	until  time.Duration  // end of the period, since base; 0: it does not end by itself
	permit breaker.Permit // permit of calls while the breaker is closed
}

// A call is a call that was allowed. Give it to end, once. The zero call was allowed only because the breaker is a
// shadow: its end counts nothing.
type call struct {
	in     *period
	permit breaker.Permit
}

// newShared makes a closed breaker, or says what is wrong with the options. After each change
// of the state it calls onChange. The arguments are the state, how long the breaker stays
// open, and a text for people that says why the state has changed.
func newShared(onChange func(s breaker.State, closesIn time.Duration, why string), opts breaker.Options) (*shared, error) {
	shadow := opts.Shadow
	opts.Shadow = false
	rule, err := breaker.New(opts)
	if err != nil {
		return nil, err
	}
	s := &shared{trials: max(0, opts.Trials), rated: opts.Rate > 0, shadow: shadow, onChange: onChange, base: time.Now(), rule: rule}
	permit, _ := rule.Allow(s.base)
	s.present.Store(&period{state: breaker.Closed, permit: permit})
	return s, nil
}

// begin begins a call if one is allowed.
func (s *shared) begin() (c call, ok bool) {
	if c, ok = s.beginAllowed(); !ok && s.shadow {
		return call{}, true
	}
	return c, ok
}

func (s *shared) beginAllowed() (c call, ok bool) {
	p := s.present.Load()
	if p.state == breaker.Open {
		s.state() // the open period may have ended
	}
	for {
		p = s.present.Load()
		c = call{in: p, permit: p.permit}
		if p.state != breaker.HalfOpen {
			return c, p.state == breaker.Closed
		}
		s.change("", func(now time.Time) {
			c.permit, ok = s.rule.Allow(now)
			c.in = s.present.Load()
		})
		if ok || c.in == p {
			return c, ok
		}
	}
}

// end ends a call, and reports whether it is a failure that counts. With trials, the failure
// of a call that began before the last change of the state does not count.
func (s *shared) end(c call, r breaker.Result) (counts bool) {
	if c.in == nil {
		return false
	}
	if r != breaker.Success || c.in.state != breaker.Closed {
		why := "enough trials have succeeded"
		switch {
		case r == breaker.Failure && c.in.state == breaker.HalfOpen:
			why = "a trial has failed"
		case r == breaker.Failure:
			why = "too many calls have failed"
		}
		s.change(why, func(now time.Time) {
			counts = r == breaker.Failure && (c.in == s.present.Load() || s.trials == 0)
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

// over(true) opens the breaker because a count is over a limit. With trials, it opens for OpenFor, unless it is open already.
// Without trials, it stays open until over(false).
func (s *shared) over(over bool) {
	why := "too many failures in the window"
	if !over {
		why = "fewer failures in the window"
	}
	s.change(why, func(now time.Time) {
		if s.forced = over && s.trials == 0; over && s.trials > 0 && s.rule.State(now) != breaker.Open {
			s.rule.Trip(now)
		}
	})
}

// trip opens the breaker for OpenFor.
func (s *shared) trip() {
	s.change("it was opened by a call of Trip", func(now time.Time) { s.rule.Trip(now) })
}

// reset closes it.
func (s *shared) reset() {
	s.change("it was closed by a call of Reset", func(time.Time) { s.rule.Reset(); s.forced = false })
}

// stop closes the breaker for ever.
func (s *shared) stop() { s.change("it has ended", func(time.Time) { s.stopped = true }) }

// state returns the present state. It takes a lock only if the state has changed by itself.
func (s *shared) state() breaker.State {
	if p := s.present.Load(); p.until == 0 || time.Since(s.base) < p.until {
		return p.state
	}
	s.change("", func(time.Time) {})
	return s.present.Load().state
}

// closesIn returns how much longer the breaker is open; 0 if over keeps it open.
func (s *shared) closesIn() time.Duration {
	if p := s.present.Load(); p.until > 0 {
		return max(0, p.until-time.Since(s.base))
	}
	return 0
}

func (s *shared) now() time.Time { return s.base.Add(time.Since(s.base)) } // costs half as much as time.Now

// change changes the rule. Then it calls onChange for all changes of the state, by the rule
// or by time.
func (s *shared) change(why string, how func(now time.Time)) {
	s.mu.Lock()
	now := s.now()
	s.look(now, "it has been open for long enough")
	how(now)
	s.look(now, why)
	s.mu.Unlock()
	s.changes.Run()
}

// look begins a new period if the state, or the end of the open state, has changed. The
// lock is held.
func (s *shared) look(now time.Time, why string) {
	if s.stopped || s.trials == 0 && s.rule.State(now) == breaker.HalfOpen {
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
	last := s.present.Load()
	if last.state == state && last.until == until {
		return
	}
	p := &period{state: state, until: until}
	if state == breaker.Closed {
		p.permit, _ = s.rule.Allow(now)
	}
	s.present.Store(p)
	s.changes.Add(func() { s.onChange(state, lease, why) })
}

// resultOf returns the result of a call with that error. If countIf is nil or panics, all errors
// are failures, except those that match [context.Canceled]. An error that stands for no failure (see
// [guard.Failed]) is neutral, and countIf is not asked.
func resultOf(err error, countIf func(error) bool) breaker.Result {
	if err == nil {
		return breaker.Success
	}
	if !guard.Failed(err) {
		return breaker.Neutral
	}
	cancelled := guard.Is(err, context.Canceled)
	failed := !cancelled
	if countIf != nil {
		if is, panicked := guard.Value("CountIf", func() bool { return countIf(err) }); panicked == nil {
			failed = is
		}
	}
	switch {
	case failed:
		return breaker.Failure
	case cancelled:
		return breaker.Neutral
	}
	return breaker.Success
}
