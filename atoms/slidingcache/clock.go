package slidingcache

import "time"

// clock measures time as nanoseconds since a base of its own. The first reading may
// be 0.
type clock struct{ base time.Time }

func newClock() clock { return clock{time.Now()} }

func (c clock) now() int64 { return int64(time.Since(c.base)) }

// never is later than any reading.
const never = 1<<63 - 1

// later is the offset that lies span, which is not negative, after at.
func later(at, span int64) int64 {
	if end := at + span; end >= at {
		return end
	}
	return never
}
