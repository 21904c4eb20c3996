package lru

import "time"

// clock measures time in nanoseconds since the cache was made. It costs one reading of the
// monotonic clock. The first reading may be 0.
type clock struct{ base time.Time }

func (c clock) now() int64 { return int64(time.Since(c.base)) }

// Offsets that no reading has.
const (
	never = 1<<63 - 1
	gone  = -1 << 63
)

// later is the offset that lies d after at. d is not negative.
func later(at, d int64) int64 {
	if end := at + d; end >= at {
		return end
	}
	return never
}
