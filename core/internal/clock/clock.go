// Package clock measures time in nanoseconds since a base, and has alarms.
package clock

import (
	"math"
	"time"
)

// Alarm is a timer that is set at most once at a time.
type Alarm struct {
	timer *time.Timer
	At    int64
	Armed bool
	Last  int64 // when it rang last
}

// Set makes the alarm ring at that time, unless it already rings earlier.
func (a *Alarm) Set(c Clock, at int64, ring func()) {
	if a.Armed && a.At <= at {
		return
	}
	a.Armed, a.At = true, at
	d := time.Duration(at - c.Now())
	if a.timer == nil {
		a.timer = time.AfterFunc(d, ring)
	} else {
		a.timer.Reset(d)
	}
}

func (a *Alarm) Stop() {
	if a.timer != nil {
		a.timer.Stop()
	}
	a.Armed = false
}

// Clock measures time in nanoseconds since a base. That costs one monotonic
// reading; time.Now costs two readings. The first reading is 1, so 0 can mean
// "not yet".
type Clock struct{ base time.Time }

func New() Clock { return Clock{base: time.Now().Add(-1)} }

func (c Clock) Now() int64 { return int64(time.Since(c.base)) }

// Never is the offset of an event that does not come.
const Never = math.MaxInt64

// MaxDuration is the largest Duration.
const MaxDuration = time.Duration(1<<63 - 1)

// Wall converts an offset to a time for users.
func (c Clock) Wall(offset int64) time.Time {
	if offset == 0 || offset == Never {
		return time.Time{}
	}
	return c.base.Add(time.Duration(offset))
}

// Later returns at plus span, or never.
func Later(at, span int64) int64 {
	if end := at + span; span != Never && end >= at {
		return end
	}
	return Never
}

// Offset is the inverse of wall.
func (c Clock) Offset(t time.Time) int64 { return int64(t.Sub(c.base)) }
