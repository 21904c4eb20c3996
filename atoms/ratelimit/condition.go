package ratelimit

import (
	"time"

	"github.com/ephemeralgo/ephemeral/core"
)

// The condition of being limited begins when somebody is refused or has to wait, and
// ends when that has not happened for as long as the bucket takes to fill, but for a
// second at least and a minute at most. Without that span it would begin and end with
// every second request of a steady overload.
const (
	calmAtLeast = time.Second
	calmAtMost  = time.Minute
)

// A condition is held on the sink while it lasts. Everything in it is guarded by the
// lock of its limiter.
type condition struct {
	last    int64 // when somebody was refused, or had to wait no more
	on      bool  // from the first refusal until the end is told
	closed  bool
	calm    int64 // how long nobody must have been refused
	timer   *time.Timer
	release func()

	room *room
	name string
	sink *core.Sink
}

// touch says that somebody is refused or has to wait. If that is news, the caller
// unlocks and announces it.
func (c *condition) touch(now int64) (news bool) {
	if c == nil || c.closed {
		return false
	}
	c.last = now
	news = !c.on
	c.on = true
	return news
}

// calm is how long a bucket takes to fill, within bounds.
func calm(burst int64, rate float64) int64 {
	seconds := float64(burst) / rate // the rate may be 0
	return int64(max(calmAtLeast.Seconds(), min(calmAtMost.Seconds(), seconds)) * 1e9)
}

// announce begins the condition. Not locked.
func (c *condition) announce() {
	release := c.sink.Hold(SignalLimited, c.name, 0)
	c.room.mu.Lock()
	closed := c.closed
	if !closed {
		c.release = release
		c.timer = time.AfterFunc(time.Duration(c.calm), c.look)
	}
	c.room.mu.Unlock()
	if closed {
		release()
	}
}

// retime sets how long nobody must have been refused. Locked.
func (c *condition) retime(calm int64) {
	sooner := calm < c.calm
	c.calm = calm
	if sooner && c.release != nil {
		c.timer.Reset(0)
	}
}

// look ends the condition, or looks again when it might end. It is called by the
// timer.
func (c *condition) look() {
	now := c.room.now()
	c.room.mu.Lock()
	done := c.room.settle(now)
	wait := c.calm
	if c.room.line.first == nil {
		wait -= now - c.last
	}
	if c.release == nil || wait > 0 { // nil: it has ended
		if c.release != nil {
			c.timer.Reset(time.Duration(wait))
		}
		c.room.unlock(now, done)
		return
	}
	last, release := c.last, c.release
	c.release = nil
	c.room.unlock(now, done)

	release()
	c.sink.RaiseKey(SignalRecovered, c.name)

	c.room.mu.Lock()
	again := c.last != last && !c.closed
	c.on = again
	c.room.mu.Unlock()
	if again {
		c.announce()
	}
}

// close ends the condition without a word. Locked; the caller calls what it returns
// when it has unlocked.
func (c *condition) close() (release func()) {
	c.closed, c.on = true, false
	if c.timer != nil {
		c.timer.Stop()
	}
	release = c.release
	c.release = nil
	if release == nil {
		release = func() {}
	}
	return release
}
