package retry

import (
	"math"
	"math/rand/v2"
	"time"
)

// A Backoff returns the delay before the next attempt. Its parameter is the number of the
// attempt that has failed, from 1. It is not called after the last attempt. A delay of 0
// means that the next attempt starts at once. A negative delay means stop: the call gives up. A Backoff must be safe for concurrent use.
type Backoff func(attempt int) time.Duration

// Constant always waits for d. A negative d means stop.
func Constant(d time.Duration) Backoff {
	return func(int) time.Duration { return d }
}

// Linear waits for step after the first attempt, for twice step after the second attempt, and
// so on. The limit is the longest [time.Duration]. A negative step means stop.
func Linear(step time.Duration) Backoff {
	return func(attempt int) time.Duration {
		switch {
		case step <= 0:
			return step
		case time.Duration(attempt) > longest/step:
			return longest
		default:
			return step * time.Duration(attempt)
		}
	}
}

// Exponential waits for initial after the first attempt. Each further delay is multiplier
// times the delay before it. The limit is the longest [time.Duration], so set
// [Options.MaxDelay]. A negative initial means stop. Exponential panics if multiplier is
// negative or not a number.
func Exponential(initial time.Duration, multiplier float64) Backoff {
	if !(multiplier >= 0) {
		panic("retry: Exponential needs a multiplier that is not negative")
	}
	return func(attempt int) time.Duration {
		if initial <= 0 {
			return initial
		}
		d := float64(initial) * math.Pow(multiplier, float64(attempt-1))
		if !(d < float64(longest)) {
			return longest
		}
		return time.Duration(d)
	}
}

const longest = time.Duration(math.MaxInt64)

// FullJitter, for [Options.Jitter], returns a random delay from 0 to d. So callers that failed
// together do not come back together. The names and a comparison are in "Exponential Backoff And
// Jitter" by Marc Brooker (AWS Architecture Blog, 2015): FullJitter makes the fewest calls.
func FullJitter(d time.Duration) time.Duration {
	if d <= 0 {
		return d
	}
	return time.Duration(rand.Uint64N(uint64(d) + 1))
}

// EqualJitter, for [Options.Jitter], returns a random delay from d/2 to d. Use it if there must
// always be a pause.
func EqualJitter(d time.Duration) time.Duration {
	return d/2 + FullJitter(d-d/2)
}
