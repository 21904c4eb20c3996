package core

import "time"

// clock measures time as nanoseconds since a base of its own, which costs one
// monotonic reading instead of the two of time.Now. The first reading is 1, so
// that 0 is free to mean "not yet".
type clock struct{ base time.Time }

func newClock() clock { return clock{base: time.Now().Add(-1)} }

func (c clock) now() int64 { return int64(time.Since(c.base)) }

// wall is the time at offset, for the edge of the library.
func (c clock) wall(offset int64) time.Time {
	if offset == 0 {
		return time.Time{}
	}
	return c.base.Add(time.Duration(offset))
}

// later is the offset that lies span after at, or the last there is.
func later(at, span int64) int64 {
	if end := at + span; end >= at {
		return end
	}
	return 1<<63 - 1
}

// offset is the inverse of wall.
func (c clock) offset(t time.Time) int64 { return int64(t.Sub(c.base)) }
