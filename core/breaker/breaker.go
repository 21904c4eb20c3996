package breaker

import (
	"cmp"
	"time"

	"github.com/ephemeralgo/ephemeral/core/internal/check"
)

// Options configure a [Breaker]. The zero value is the default: it opens after five
// failures in a row, for 30 seconds, and then allows one trial.
type Options struct {
	// Threshold is how many failures open the breaker: in a row, or within Window if
	// there is one. 0 means 5, or none if there is a Rate; negative means none.
	Threshold int
	// Window is how long a result counts. It slides in ten steps, so that a result counts
	// for at least nine tenths of it. 0 means 30 seconds if there is a Rate and none
	// otherwise, negative means none.
	Window time.Duration
	// Rate is the share of the calls in Window that must fail to open the breaker: 0.5 is
	// half of them. It is checked when a call fails. 0 or negative means none.
	Rate float64
	// MinCalls is how many calls there must be in Window before Rate matters. 0 means 20,
	// negative no minimum.
	MinCalls int
	// OpenFor is how long the breaker stays open. 0 means 30 seconds, negative none: the
	// next call is a trial.
	OpenFor time.Duration
	// Trials is how many calls a half-open breaker allows at once, and how many must
	// succeed to close it. 0 or negative means 1. Trials that have no result when OpenFor
	// has passed since the newest of them began are lost, and others may begin. If
	// OpenFor is negative, lost trials are not replaced.
	Trials int
	// Shadow: the breaker counts and changes its state as others do, but it allows every call, so that you see what it
	// would do. The results of calls that it would not have allowed do not count.
	Shadow bool
}

// resolved returns the options with defaults in place of zeroes, and 0 in place of none.
func (o Options) resolved() (Options, error) {
	if o.Rate > 0 {
		o.Threshold = cmp.Or(o.Threshold, -1)
		o.Window = max(parts, cmp.Or(o.Window, 30*time.Second))
	}
	o.Threshold = max(0, cmp.Or(o.Threshold, 5))
	o.Window = max(0, o.Window)
	o.MinCalls = max(0, cmp.Or(o.MinCalls, 20))
	o.OpenFor = max(0, cmp.Or(o.OpenFor, 30*time.Second))
	o.Trials = max(1, o.Trials)
	tooHigh := !(o.Rate <= 1) // true also for NaN
	return o, check.Error(tooHigh, "breaker: Options.Rate is %v, but must be at most 1, which is all calls", o.Rate)
}

// A State says what a breaker does with calls.
type State string

const (
	// Closed allows all calls.
	Closed State = "closed"
	// Open allows none.
	Open State = "open"
	// HalfOpen allows [Options.Trials] calls, to see whether they succeed again.
	HalfOpen State = "half-open"
)

// A Result is what a call has shown.
type Result uint8

const (
	// Success: the call did what it should.
	Success Result = iota
	// Failure: the call did not.
	Failure
	// Neutral: the call has shown nothing, for example because it was cancelled.
	Neutral
)

// A Permit is what [Breaker.Allow] gives to a call that may be made. The call gives it
// back once, with [Breaker.Done]. Results with the zero Permit do not count.
type Permit struct{ round uint64 }

// A Breaker counts the results of calls and says whether the next one may be made. Make
// one with [New]. It is not safe for concurrent use. Its methods take the present time,
// which must not go back from one call to the next.
type Breaker struct {
	opts      Options // resolved
	state     State   // the state after the last change; see State
	until     time.Time
	round     uint64 // round of new permits; changes with the state, and when trials are lost
	oldest    uint64 // the first round of the present state
	trying    int    // trials that have no result yet
	succeeded int    // trials that have
	newest    int64  // the number of the present part of Window
	parts     [parts]counts
	total     counts // of parts
}

// parts is the number of parts of Window. The place of a part is its number modulo parts.
const parts = 10

type counts struct{ calls, failures int }

// New makes a closed breaker, or says what is wrong with the options.
func New(opts Options) (*Breaker, error) {
	opts, err := opts.resolved()
	if err != nil {
		return nil, err
	}
	return &Breaker{opts: opts, state: Closed, round: 1, oldest: 1}, nil
}

// Allow reports whether a call may be made now. If so, it returns a permit: with Shadow, the zero Permit for a call that
// would not be allowed.
func (b *Breaker) Allow(now time.Time) (p Permit, ok bool) {
	b.become(b.State(now))
	full := b.trying >= b.opts.Trials
	switch {
	case b.state == Closed:
		return Permit{b.round}, true
	case b.state == Open || full && (b.opts.OpenFor == 0 || now.Before(b.until)):
		return Permit{}, b.opts.Shadow
	case full:
		b.round++
		b.trying = 0
	}
	b.trying++
	b.until = now.Add(b.opts.OpenFor)
	return Permit{b.round}, true
}

// Done gives a permit back with the result of the call, and reports whether that has
// opened or closed the breaker. The result of a call that began before the last change of
// the state does not count. The result of a lost trial counts if it comes before the next
// change.
func (b *Breaker) Done(p Permit, now time.Time, r Result) (changed bool) {
	if p.round < b.oldest {
		return false
	}
	if p.round == b.round && b.state == HalfOpen {
		b.trying--
	}
	b.become(b.State(now))
	before := b.state
	switch {
	case r == Neutral || before == Open:
	case r == Failure:
		b.count(now, 1)
		if before == HalfOpen || b.failsTooMuch() {
			b.Trip(now)
		}
	case before == HalfOpen && b.succeeded+1 < b.opts.Trials:
		b.succeeded++
	case before == HalfOpen || b.opts.Window == 0: // a success ends the failures in a row
		b.Reset()
	default:
		b.count(now, 0)
	}
	return b.state != before
}

// Trip opens the breaker for OpenFor, whatever its state.
func (b *Breaker) Trip(now time.Time) {
	b.until = now.Add(b.opts.OpenFor)
	b.become(Open)
}

// Reset closes the breaker, whatever its state, and forgets all results.
func (b *Breaker) Reset() {
	b.parts, b.total = [parts]counts{}, counts{}
	b.become(Closed)
}

// State returns the present state.
func (b *Breaker) State(now time.Time) State {
	if b.state == Open && !now.Before(b.until) {
		return HalfOpen
	}
	return b.state
}

// ClosesIn returns how much longer the breaker is open; 0 if it is not open.
func (b *Breaker) ClosesIn(now time.Time) time.Duration {
	if b.State(now) != Open {
		return 0
	}
	return b.until.Sub(now)
}

// Failures returns how many failures count now: in Window, or in a row. Failed trials are
// included.
func (b *Breaker) Failures(now time.Time) int {
	b.slide(now)
	return b.total.failures
}

func (b *Breaker) failsTooMuch() bool {
	byRate := b.opts.Rate > 0 && b.total.calls >= b.opts.MinCalls && float64(b.total.failures) >= b.opts.Rate*float64(b.total.calls)
	return byRate || b.opts.Threshold > 0 && b.total.failures >= b.opts.Threshold
}

func (b *Breaker) become(s State) {
	if s != b.state {
		b.round++
		b.state, b.oldest, b.trying, b.succeeded = s, b.round, 0, 0
	}
}

// count counts a result in the present part of Window.
func (b *Breaker) count(now time.Time, failures int) {
	b.slide(now)
	part := &b.parts[b.newest%parts]
	part.calls++
	part.failures += failures
	b.total.calls++
	b.total.failures += failures
}

// slide forgets the parts that have left Window.
func (b *Breaker) slide(now time.Time) {
	present := now.UnixNano() / int64(cmp.Or(b.opts.Window/parts, 1<<63-1))
	for b.newest = max(b.newest, present-parts); b.newest < present; {
		b.newest++
		part := &b.parts[b.newest%parts]
		b.total.calls -= part.calls
		b.total.failures -= part.failures
		*part = counts{}
	}
}
