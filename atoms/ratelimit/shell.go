package ratelimit

import (
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// A shell is what a Limiter and a Group have in common: a room and all around it.
type shell struct {
	counts    counts
	condition condition
	room      room

	_  cacheLine
	mu mutex
	_  cacheLine

	inLine      atomic.Int64
	name        string
	sink        *core.Sink
	unsubscribe func()
}

// open makes the shell around buckets. It does not subscribe yet.
func (s *shell) open(name string, sink *core.Sink, maxWaiting int, buckets []bucket) {
	if sink == nil {
		sink = core.NewSink(core.SinkOptions{})
	}
	s.name, s.sink, s.unsubscribe = name, sink, func() {}
	s.room = room{
		name:       name,
		mu:         &s.mu,
		begin:      time.Now(),
		maxWaiting: int64(maxWaiting),
		waiting:    &s.inLine,
		counts:     &s.counts,
		limited:    &s.condition,
		alarm:      never,
		line:       line{buckets: buckets},
	}
	s.condition = condition{room: &s.room, name: name, sink: sink}
	s.calm()
}

// calm tells the condition how long the slowest bucket takes to fill.
func (s *shell) calm() {
	longest := int64(0)
	for i := range s.room.line.buckets {
		m := s.room.line.buckets[i].meter
		longest = max(longest, calm(m.burst, m.rate))
	}
	s.condition.retime(longest)
}

// Name is the name in the options: the key of the signals it raises.
func (s *shell) Name() string { return s.name }

// Sink is where it raises its signals and hears commands.
func (s *shell) Sink() *core.Sink { return s.sink }

// part is one bucket of a shell.
type part struct {
	s    *shell
	name string
	b    *bucket
}

func (p part) changeRate(on core.Raiser, next func(rate float64) (float64, string)) (rule string) {
	r := &p.s.room
	now := r.now()
	p.s.mu.Lock()
	if r.closed {
		p.s.mu.Unlock()
		return ""
	}
	rate, rule := next(p.b.meter.rate)
	if rule != "" {
		p.s.mu.Unlock()
		return rule
	}
	done := r.change(now, func() { p.b.meter.setRate(now, rate) })
	p.s.calm()
	change := p.b.meter.change()
	r.unlock(now, done)
	RateApplied.Raise(on, p.name, change)
	return ""
}

func (p part) changeBurst(on core.Raiser, burst int64) {
	r := &p.s.room
	now := r.now()
	p.s.mu.Lock()
	if r.closed {
		p.s.mu.Unlock()
		return
	}
	done := r.change(now, func() { p.b.meter.setBurst(now, burst) })
	p.s.calm()
	change := p.b.meter.change()
	r.unlock(now, done)
	BurstApplied.Raise(on, p.name, change)
}

func (p part) Reset() {
	r := &p.s.room
	now := r.now()
	p.s.mu.Lock()
	done := r.change(now, func() { p.b.fill(now) })
	r.unlock(now, done)
}

func (m *meter) change() Change { return Change{m.rate, int(m.burst)} }

func (p part) setRate(rate float64) error {
	rate, err := checkRate(rate)
	if err != nil {
		return err
	}
	p.changeRate(p.s.sink, func(float64) (float64, string) { return rate, "" })
	return nil
}

func (p part) setBurst(burst int) error {
	if err := checkBurst("SetBurst", burst); err != nil {
		return err
	}
	p.changeBurst(p.s.sink, int64(burst))
	return nil
}

func (p part) tokens() float64 {
	r := &p.s.room
	now := r.now()
	p.s.mu.Lock()
	done := r.settle(now)
	level := p.b.meter.level(p.b.mark, now)
	r.unlock(now, done)
	return level.float()
}

// PauseFor lets nothing pass for so long from now on, whatever is in the bucket,
// and nothing comes into it meanwhile: what a server asks for that says
// Retry-After. Who waits goes on waiting. Of two pauses the one that ends later
// counts; a pause of 0 or less ends them.
func (s *shell) PauseFor(d time.Duration) {
	r := &s.room
	now := r.now()
	until := now + max(0, min(int64(d), forward))
	s.mu.Lock()
	done := r.change(now, func() {
		for i := range r.line.buckets {
			r.line.buckets[i].meter.pause(now, until)
		}
	})
	r.unlock(now, done)
}

// Close stops heeding commands. Those who wait return an error that is
// [core.ErrClosed], and so does whoever comes later; Allow says no. It returns nil.
func (s *shell) Close() error {
	s.unsubscribe()
	r := &s.room
	now := r.now()
	s.mu.Lock()
	release := s.condition.close()
	done := r.close(now)
	for i := range r.line.buckets {
		r.line.buckets[i].meter.span = 0
	}
	r.unlock(now, done)
	release()
	return nil
}

// reserve makes a reservation.
func (s *shell) reserve(costs ...int) *Reservation {
	r := &Reservation{room: &s.room}
	r.place.setCosts(costs)
	now := s.room.now()
	s.mu.Lock()
	s.room.enter(now, &r.place, never)
	return r
}

// checkRate returns the rate as it is kept.
func checkRate(rate float64) (float64, error) {
	if rate >= Unlimited {
		return Unlimited, nil
	}
	if !(rate == 0 || rate >= MinRate && rate <= MaxRate) { // not NaN either
		return 0, fmt.Errorf("ratelimit: rate must be 0, which pauses, from %g to %g tokens per second, or Unlimited, not %g",
			MinRate, MaxRate, rate)
	}
	return math.Abs(rate), nil // -0 is 0
}

func checkBurst(field string, burst int) error {
	if burst < 1 || int64(burst) > maxBurst {
		return fmt.Errorf("ratelimit: %s %s, not %d", field, ruleBurst, burst)
	}
	return nil
}

// defaults of options.
const (
	defaultName       = "ratelimit"
	defaultBurst      = 20
	defaultMaxWaiting = 10_000
	mostWaiting       = 1 << 20
)

func checkMaxWaiting(n *int) error {
	if *n == 0 {
		*n = defaultMaxWaiting
	}
	if *n < 0 || *n > mostWaiting {
		return fmt.Errorf("ratelimit: MaxWaiting must be at least 1 and at most %d, not %d", mostWaiting, *n)
	}
	return nil
}
