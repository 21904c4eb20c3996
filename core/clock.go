package core

import (
	"math"
	"time"
)

// alarm is a timer that is set at most once at a time.
type alarm struct {
	timer *time.Timer
	at    int64
	armed bool
	last  int64 // when it rang last
}

// set makes the alarm ring at that time, unless it already rings earlier.
func (a *alarm) set(c clock, at int64, ring func()) {
	if a.armed && a.at <= at {
		return
	}
	a.armed, a.at = true, at
	d := time.Duration(at - c.now())
	if a.timer == nil {
		a.timer = time.AfterFunc(d, ring)
	} else {
		a.timer.Reset(d)
	}
}

func (a *alarm) stop() {
	if a.timer != nil {
		a.timer.Stop()
	}
	a.armed = false
}

// clock measures time in nanoseconds since a base. That costs one monotonic
// reading; time.Now costs two readings. The first reading is 1, so 0 can mean
// "not yet".
type clock struct{ base time.Time }

func newClock() clock { return clock{base: time.Now().Add(-1)} }

func (c clock) now() int64 { return int64(time.Since(c.base)) }

// never is the offset of an event that does not come.
const never = math.MaxInt64

// maxDuration is the largest Duration.
const maxDuration = time.Duration(1<<63 - 1)

// wall converts an offset to a time for users.
func (c clock) wall(offset int64) time.Time {
	if offset == 0 || offset == never {
		return time.Time{}
	}
	return c.base.Add(time.Duration(offset))
}

// later returns at plus span, or never.
func later(at, span int64) int64 {
	if end := at + span; span != never && end >= at {
		return end
	}
	return never
}

// offset is the inverse of wall.
func (c clock) offset(t time.Time) int64 { return int64(t.Sub(c.base)) }
