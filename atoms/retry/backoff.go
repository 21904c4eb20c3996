package retry

import (
	"math"
	"math/rand/v2"
	"time"
)

// A Backoff says how long to wait after an attempt has failed. It gets the number of that
// attempt, 1 for the first, and is called only if there is another attempt. A delay of 0
// means at once. A negative delay means stop: there is no other attempt, and the call
// gives up with [ErrStopped]. Many goroutines may call it, so it must not keep state
// without a lock.
type Backoff func(attempt int) time.Duration

// Constant always waits for d. A negative d stops.
func Constant(d time.Duration) Backoff {
	return func(int) time.Duration { return d }
}

// Linear waits for step after the first attempt, twice that after the second, and so
// on; as long as a [time.Duration] can be when that is too long for one. A negative
// step stops.
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

// Exponential waits for initial after the first attempt and each time multiplier
// times as long as the time before; as long as a [time.Duration] can be when that is
// too long for one, so set [Options.MaxDelay]. A negative initial stops. It panics if
// multiplier is negative or not a number.
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

// FullJitter replaces a delay by a random one between 0 and it, so that callers that
// failed together do not come back together. It and [EqualJitter] are for
// [Options.Jitter]; their names, and a comparison, are in "Exponential Backoff And
// Jitter" by Marc Brooker (AWS Architecture Blog, 2015), which finds that this one
// makes the fewest calls.
func FullJitter(d time.Duration) time.Duration {
	if d <= 0 {
		return d
	}
	return time.Duration(rand.Uint64N(uint64(d) + 1))
}

// EqualJitter replaces a delay by a random one between half of it and all of it, if there
// must be some pause.
func EqualJitter(d time.Duration) time.Duration {
	return d/2 + FullJitter(d-d/2)
}
