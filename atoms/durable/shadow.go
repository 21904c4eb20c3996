package durable

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// A Shadow is what a store in Go keeps of a [Class].Shadow, also as JSON: buckets, and what they have counted. It is a virtual queue:
// an item comes to it when it is claimed, and starts there when its tokens are there, first come first served. Times are
// microseconds of the clock of the store. The methods of a nil Shadow do nothing. It is not safe for concurrent use.
type Shadow struct{ shadowState }

type shadowState struct {
	core.ShadowStats
	Marks       [2]float64 // so many of the tokens that have come were taken, or have overflowed
	Since, Seen int64      // tokens have come since then; the time of the last change: if the clock is before it, it was set back
	At          int64      // nothing starts before
}

// longestWait bounds what is unbounded, with rates such as one token in thirty years.
const longestWait = int64(1e15)

// Use returns the shadow with these limits: s, if it has them, or one that begins to count; nil if there are none.
func (s *Shadow) Use(limits *core.Limits, now int64) *Shadow {
	switch {
	case limits == nil:
		return nil
	case s != nil && s.Limits == *limits:
		return s
	}
	return &Shadow{shadowState{core.ShadowStats{Limits: *limits}, [2]float64{-float64(limits.Rate.Burst), -float64(limits.CostRate.Burst)}, now, now, now}}
}

// Claim counts an item that is claimed, and returns how much later it would have started.
func (s *Shadow) Claim(cost, now int64) time.Duration {
	if s == nil {
		return 0
	}
	s.read(now)
	takes := [2]int64{1, cost}
	start := max(now, s.At)
	for n, r := range s.rates() {
		if takes[n] > 0 {
			start = max(start, s.when(n, s.Marks[n]+float64(min(takes[n], int64(r.Burst))), now))
		}
	}
	s.take(takes, start)
	s.At = start
	wait := time.Duration(start-now) * time.Microsecond
	if s.Started++; wait > 0 {
		s.Waited++
		s.Longest = max(s.Longest, wait)
	}
	return wait
}

// Charge takes [2]int64, also if they are not there, or gives some back.
func (s *Shadow) Charge(calls, cost, now int64) {
	if s == nil {
		return
	}
	s.read(now)
	s.take([2]int64{calls, cost}, now)
	last := int64(math.MinInt64) // tokens that came back let the items that wait start earlier
	for n := range s.rates() {
		last = max(last, s.when(n, s.Marks[n], now))
	}
	s.At = min(s.At, last)
}

// Stats are the counters.
func (s *Shadow) Stats() core.ShadowStats {
	if s == nil {
		return core.ShadowStats{}
	}
	return s.ShadowStats
}

// read goes on from the time of the last change, if the clock is before it.
func (s *Shadow) read(now int64) {
	back := max(0, s.Seen-now)
	s.Since, s.At, s.Seen = s.Since-back, s.At-back, now
}

// rates yields those that there are.
func (s *Shadow) rates() func(yield func(int, core.Rate) bool) {
	return func(yield func(int, core.Rate) bool) {
		for n, r := range [2]core.Rate{s.Limits.Rate, s.Limits.CostRate} {
			if r.PerSecond > 0 && !yield(n, r) {
				return
			}
		}
	}
}

// when is the time at which so many tokens of a rate have come.
func (s *Shadow) when(n int, come float64, now int64) int64 {
	rate := [2]float64{s.Limits.Rate.PerSecond, s.Limits.CostRate.PerSecond}[n]
	return min(s.Since+int64(max(-4e18, min(4e18, math.Floor(come/rate*1e6)))), now+longestWait)
}

func (s *Shadow) take(takes [2]int64, at int64) {
	for n, r := range s.rates() {
		if takes[n] != 0 {
			s.Marks[n] = max(s.Marks[n], r.PerSecond*float64(at-s.Since)/1e6-float64(r.Burst)) + float64(takes[n])
		}
	}
}

// shadow returns Shadow with defaults, or says what is wrong with it. Rate and CostRate have their defaults.
func (c Class) shadow(what string) (*core.Limits, error) {
	if c.Shadow == nil {
		return nil, nil
	}
	made := *c.Shadow
	what += ": Shadow"
	var errs [4]error
	if made.Limit != 0 {
		errs[0] = fmt.Errorf("durable: %s.Limit is %d, but a shadow of a durable class has rates only", what, made.Limit)
	} else if made == (core.Limits{}) {
		errs[0] = fmt.Errorf("durable: %s is empty, but must have a rate", what)
	}
	made.Limit = 0
	for n, r := range []*core.Rate{&made.Rate, &made.CostRate} {
		of, force := what+[]string{".Rate", ".CostRate"}[n], []core.Rate{c.Rate, c.CostRate}[n]
		if *r, errs[1+n] = rateOf(*r, of); force != (core.Rate{}) && (r.PerSecond > force.PerSecond || r.Burst > force.Burst) {
			errs[1+n] = fmt.Errorf("durable: %s is %v a second with a burst of %d, but must not be looser than the rate in force, which is %v with %d", of, r.PerSecond, r.Burst, force.PerSecond, force.Burst)
		}
	}
	if err := errors.Join(errs[:]...); err != nil || made == (core.Limits{}) {
		return nil, err // without limits there is no shadow
	}
	return &made, nil
}

// shadowed is what a process knows of the shadow of a class.
type shadowed struct {
	until time.Time // an item would wait until then
	told  bool      // the last signal says so
	quiet time.Time // no signal before
}

// claimed returns when an item that was claimed would start; zero: now. If it does not wait, none before it does.
func (p *pump) claimed(i Item) (until time.Time) {
	s := p.shadows[i.Class]
	if i.Shadow > 0 {
		until = time.Now().Add(i.Shadow)
		if s == nil {
			if s = new(shadowed); p.shadows == nil {
				p.shadows = map[string]*shadowed{}
			}
			p.shadows[i.Class] = s
		}
	}
	if s != nil {
		s.until = until
	}
	return until
}

// tellShadows makes signals say in which shadows items of this process begin to wait, and in which none does any more. It
// returns when to look again; zero: after a claim.
func (p *pump) tellShadows(now time.Time) (again time.Time) {
	for class, s := range p.shadows {
		waits := s.until.After(now)
		if s.told != waits && !now.Before(s.quiet) {
			change := core.ClassChange{Coordinator: p.queue.opts.Name, Class: class}
			if s.told, s.quiet = waits, now.Add(time.Second); waits {
				change.Waiting = max(1, p.late(class, now))
			}
			core.WouldThrottle.Raise(p.queue.opts.Sink, class, change)
		}
		at := s.quiet
		if s.told == waits && s.until.After(at) {
			at = s.until
		}
		if (s.told || waits) && (again.IsZero() || at.Before(again)) {
			again = at
		}
	}
	return again
}

// late is how many items of a class run here that would still wait.
func (p *pump) late(class string, now time.Time) (n int) {
	p.queue.mu.Lock()
	defer p.queue.mu.Unlock()
	for _, r := range p.queue.runs {
		if r.item.Class == class && r.until.After(now) {
			n++
		}
	}
	return n
}
