package core

import (
	"math"
	"sync"
	"time"
)

// alarm is a timer that is set at most once at a time.
type alarm struct {
	timer *time.Timer
	at    int64
	armed bool
	last  int64 // when it last rang
}

// set lets the alarm ring at that time, or earlier if it is set to earlier.
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

// clock measures time as nanoseconds since a base of its own, which costs one
// monotonic reading instead of the two of time.Now. The first reading is 1, so
// that 0 is free to mean "not yet".
type clock struct{ base time.Time }

func newClock() clock { return clock{base: time.Now().Add(-1)} }

func (c clock) now() int64 { return int64(time.Since(c.base)) }

// never is the offset of what does not come.
const never = math.MaxInt64

// wall is the time at offset, for the edge of the library.
func (c clock) wall(offset int64) time.Time {
	if offset == 0 || offset == never {
		return time.Time{}
	}
	return c.base.Add(time.Duration(offset))
}

// later is the offset that lies span after at, or never.
func later(at, span int64) int64 {
	if end := at + span; span != never && end >= at {
		return end
	}
	return never
}

// offset is the inverse of wall.
func (c clock) offset(t time.Time) int64 { return int64(t.Sub(c.base)) }

// spinMutex is a [sync.Mutex] for sections of a few dozen nanoseconds. A goroutine that finds it
// locked looks again after pauses in which the holder, and others on the same
// processor, get dozens of sections done; it queues only after the last. See
// docs/adr/0009.
type spinMutex struct{ sync.Mutex }

// All pauses together take some 40 microseconds, about as long as a goroutine takes to
// park and to be woken under load. The first is as long as dozens of raises.
const (
	spinTries = 4
	spinPause = 8000 // rounds of an empty loop; each pause is twice as long as the one before
)

// Lock locks the mutex.
func (m *spinMutex) Lock() {
	if !m.TryLock() {
		m.lockSlow()
	}
}

func (m *spinMutex) lockSlow() {
	for try := range spinTries {
		for range spinPause << try {
		}
		if m.TryLock() {
			return
		}
	}
	m.Mutex.Lock()
}
