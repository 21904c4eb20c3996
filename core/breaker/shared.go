package breaker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ephemeralgo/ephemeral/core/guard"
	"github.com/ephemeralgo/ephemeral/core/outbox"
)

// ErrOpen matches every [OpenError].
var ErrOpen = errors.New("breaker: the circuit is open")

// An OpenError says that a breaker allows no call.
type OpenError struct {
	Name     string        // of the breaker
	Failures int           // that count
	Wait     time.Duration // time until calls are allowed; 0 if all trials run already
}

// RetryAfter is Wait. If package retry is told to retry this error, it waits for that long.
func (e *OpenError) RetryAfter() time.Duration { return e.Wait }

func (e *OpenError) Error() string {
	if e.Wait == 0 {
		return fmt.Sprintf("breaker: %s is half-open, and as many trials run as may", e.Name)
	}
	return fmt.Sprintf("breaker: %s is open after %d failures, for another %v", e.Name, e.Failures, e.Wait)
}

// Is reports whether target is [ErrOpen].
func (e *OpenError) Is(target error) bool { return target == ErrOpen }

// ResultOf returns the result of a call with that error. If countIf is nil or panics, all errors
// are failures, except those that match [context.Canceled]. An error that stands for no failure (see
// [guard.Failed]) is Neutral, and countIf is not asked.
func ResultOf(err error, countIf func(error) bool) Result {
	if err == nil {
		return Success
	}
	if !guard.Failed(err) {
		return Neutral
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
		return Failure
	case cancelled:
		return Neutral
	}
	return Success
}

// A Shared is a [Breaker] for many goroutines. It reads the time from package time. Make one
// with [NewShared]. All methods are safe for concurrent use. While it is closed, Begin is an
// atomic load. It owns no goroutine and needs no Close.
type Shared struct {
	trials   int // 0: the breaker closes by itself, without trials
	rated    bool
	onChange func(s State, closesIn time.Duration, why string) // one call at a time, in order, under no lock
	shown    func() bool
	base     time.Time
	present  atomic.Pointer[period]
	changes  outbox.Outbox

	mu      sync.Mutex
	rule    *Breaker
	forced  bool // open until Over(false)
	stopped bool // closed for ever
}

// A period is the time from one change of the state to the next.
type period struct {
	state  State
	until  time.Duration // end of the period, since base; 0: it does not end by itself
	permit Permit        // permit of calls while the breaker is closed

	running atomic.Int64 // trials of a half-open period
	before  *period      // of an open period: the one before, whose calls begin until told or shown
	told    atomic.Bool  // onChange has returned
}

// A Call is a call that was allowed. Give it back with [Shared.End], once.
type Call struct {
	in     *period
	permit Permit
}

// NewShared makes a closed breaker, or says what is wrong with the options. After each change
// of the state it calls onChange. The arguments are the state, how long the breaker stays
// open, and a text for people that says why the state has changed.
//
// Some callers look at what onChange shows to others before they make a call. They shall not
// be refused because they looked just before. So after the breaker has opened, calls begin
// as before, as many at once, until shown returns true or onChange has returned. Their
// results do not count. nil means that the breaker refuses calls at once.
func NewShared(onChange func(s State, closesIn time.Duration, why string), shown func() bool, opts Options) (*Shared, error) {
	rule, err := New(opts)
	if err != nil {
		return nil, err
	}
	s := &Shared{trials: max(0, opts.Trials), rated: opts.Rate > 0, onChange: onChange, shown: shown, base: time.Now(), rule: rule}
	permit, _ := rule.Allow(s.base)
	s.present.Store(&period{state: Closed, permit: permit})
	return s, nil
}

// Begin begins a call if one is allowed.
func (s *Shared) Begin() (c Call, ok bool) {
	p := s.present.Load()
	if p.state == Open {
		s.State() // the open period may have ended
	}
	for {
		p = s.present.Load()
		late := p.before != nil && !p.told.Load() && s.shown != nil && !s.shown()
		if late {
			p = p.before
		}
		c = Call{in: p, permit: p.permit}
		switch {
		case p.state != HalfOpen:
			return c, p.state == Closed
		case late:
			if ok = p.running.Add(1) <= int64(s.trials); !ok {
				p.running.Add(-1)
			}
			return c, ok
		}
		s.change("", func(now time.Time) {
			c.permit, ok = s.rule.Allow(now)
			if c.in = s.present.Load(); ok && c.in.state == HalfOpen {
				c.in.running.Add(1)
			}
		})
		if ok || c.in == p {
			return c, ok
		}
	}
}

// Allow is Begin for a call that ends with a function. Only the first end counts.
func (s *Shared) Allow() (end func(Result) (counts bool), ok bool) {
	c, ok := s.Begin()
	var ended atomic.Bool
	return func(r Result) bool { return ok && !ended.Swap(true) && s.End(c, r) }, ok
}

// End ends a call, and reports whether it is a failure that counts. With trials, the failure
// of a call that began before the last change of the state does not count.
func (s *Shared) End(c Call, r Result) (counts bool) {
	if c.in.state == HalfOpen {
		c.in.running.Add(-1)
	}
	if r != Success || c.in.state != Closed {
		why := "enough trials have succeeded"
		switch {
		case r == Failure && c.in.state == HalfOpen:
			why = "a trial has failed"
		case r == Failure:
			why = "too many calls have failed"
		}
		s.change(why, func(now time.Time) {
			counts = r == Failure && (c.in == s.present.Load() || s.trials == 0)
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

// Over(true) opens the breaker because a count is over a limit. With trials, it opens for OpenFor, unless it is open already.
// Without trials, it stays open until Over(false).
func (s *Shared) Over(over bool) {
	why := "too many failures in the window"
	if !over {
		why = "fewer failures in the window"
	}
	s.change(why, func(now time.Time) {
		if s.forced = over && s.trials == 0; over && s.trials > 0 && s.rule.State(now) != Open {
			s.rule.Trip(now)
		}
	})
}

// Trip opens the breaker for OpenFor.
func (s *Shared) Trip() {
	s.change("it was opened by a call of Trip", func(now time.Time) { s.rule.Trip(now) })
}

// Reset closes it.
func (s *Shared) Reset() {
	s.change("it was closed by a call of Reset", func(time.Time) { s.rule.Reset(); s.forced = false })
}

// Stop closes the breaker for ever.
func (s *Shared) Stop() { s.change("it has ended", func(time.Time) { s.stopped = true }) }

// State returns the present state. It takes a lock only if the state has changed by itself.
func (s *Shared) State() State {
	if p := s.present.Load(); p.until == 0 || time.Since(s.base) < p.until {
		return p.state
	}
	s.change("", func(time.Time) {})
	return s.present.Load().state
}

// ClosesIn returns how much longer the breaker is open; 0 if Over keeps it open.
func (s *Shared) ClosesIn() time.Duration {
	if p := s.present.Load(); p.until > 0 {
		return max(0, p.until-time.Since(s.base))
	}
	return 0
}

func (s *Shared) now() time.Time { return s.base.Add(time.Since(s.base)) } // costs half as much as time.Now

// change changes the rule. Then it calls onChange for all changes of the state, by the rule
// or by time.
func (s *Shared) change(why string, how func(now time.Time)) {
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
func (s *Shared) look(now time.Time, why string) {
	if s.stopped || s.trials == 0 && s.rule.State(now) == HalfOpen {
		s.rule.Reset()
		s.forced = s.forced && !s.stopped
	}
	state, lease, until := s.rule.State(now), s.rule.ClosesIn(now), time.Duration(0)
	if s.forced {
		state, lease = Open, 0
	}
	if lease > 0 {
		until = now.Sub(s.base) + lease
	}
	last := s.present.Load()
	if last.state == state && last.until == until {
		return
	}
	p := &period{state: state, until: until}
	switch {
	case state == Closed:
		p.permit, _ = s.rule.Allow(now)
	case state == Open && last.state == Open:
		p.before = last.before
	case state == Open:
		p.before = last
	}
	s.present.Store(p)
	s.changes.Add(func() {
		defer p.told.Store(true)
		s.onChange(state, lease, why)
	})
}
