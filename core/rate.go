// This file decides which rates there can be.

package core

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"github.com/ephemeralgo/ephemeral/core/bucket"
)

// A Rate is how many tokens come in each second, and how many there can be at once. A token is
// the permission for one call, or for one of what calls cost, such as a byte. It is the word for
// rates in all modules. Within T seconds, what waits for tokens gets
// at most PerSecond x T + Burst of them: in one second, PerSecond + Burst. What the zero value
// means is up to the option with this type.
type Rate struct {
	// PerSecond is how many tokens come in each second, from 1e-9 to 1e9. 0 means what the
	// comment of the option says. It must not be negative, infinite or NaN.
	PerSecond float64
	// Burst is how many tokens there are after a quiet time. This number of calls may begin
	// at once. 0 means 20. It must not be negative or more than 2^40.
	Burst int
}

// PerMinute is the rate of n tokens a minute, with the default Burst: after a quiet time, n + 20
// calls may begin in the first minute. If a server allows no more than n in any minute, use
// [AtMost]. The n tokens come in within a minute, and not a nanosecond later.
func PerMinute(n float64) Rate {
	rate := n / 60
	if math.FMA(rate, 60, -n) < 0 { // the rate was rounded down: tokens would come late
		rate = math.Nextafter(rate, bucket.Unlimited)
	}
	return Rate{PerSecond: rate}
}

// AtMost is the rate with which never more than n calls begin in any window of the length per:
// Burst is 1, and the calls begin per/n apart. So n calls that are due at once take the whole
// window. If n or per is not positive, the rate is not valid. It is for calls: a call that costs more
// than 1 counts as its cost, and may begin as soon as 1 token is there.
func AtMost(n int, per time.Duration) Rate {
	if n <= 0 || per <= 0 {
		return Rate{PerSecond: min(-1, float64(n)), Burst: 1}
	}
	rate := float64(n) / per.Seconds()
	if math.FMA(rate, per.Seconds(), -float64(n)) > 0 { // the rate was rounded up: tokens would come early
		rate = math.Nextafter(rate, 0)
	}
	return Rate{PerSecond: rate, Burst: 1}
}

// Resolved returns the rate with the default burst, or an error if it is not valid. It is for
// packages with options of this type. [bucket.Unlimited] is valid here.
func (r Rate) Resolved() (Rate, error) {
	r.Burst = cmp.Or(r.Burst, 20)
	if rule := bucket.RateRule(r.PerSecond); rule != "" && r.PerSecond != bucket.Unlimited {
		return r, fmt.Errorf("core: rate is %g, but %s", r.PerSecond, rule)
	}
	if r.Burst < 0 || int64(r.Burst) > bucket.MaxBurst {
		return r, fmt.Errorf("core: burst is %d, but must be at least 1 and at most 2^40", r.Burst)
	}
	r.PerSecond = math.Abs(r.PerSecond) // -0 is 0
	return r, nil
}
