package core_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/bucket"
	"github.com/ephemeralgo/ephemeral/core/coretest"
)

func TestRate(t *testing.T) {
	for _, c := range []struct {
		rate core.Rate
		want string // in the error, or ""
	}{
		{core.Rate{}, ""},
		{core.Rate{PerSecond: bucket.Unlimited}, ""},
		{core.Rate{PerSecond: -1}, "core: rate is -1, but must be 0"},
		{core.Rate{PerSecond: math.NaN()}, "core: rate is NaN, but"},
		{core.Rate{PerSecond: math.Inf(1)}, "core: rate is +Inf, but"},
		{core.PerMinute(math.Inf(-1)), "core: rate is -Inf, but"},
		{core.AtMost(0, time.Second), "core: rate is -1, but must be 0"},
		{core.AtMost(-3, time.Second), "core: rate is -3, but must be 0"},
		{core.AtMost(3, 0), "core: rate is -1, but must be 0"},
		{core.Rate{PerSecond: 1e-10}, "core: rate is 1e-10, but"},
		{core.Rate{PerSecond: 1e10}, "core: rate is 1e+10, but"},
		{core.Rate{PerSecond: 1, Burst: -1}, "core: burst is -1, but must be at least 1"},
	} {
		got, err := c.rate.Resolved()
		if c.want == "" {
			coretest.Check(t, err == nil && got == (core.Rate{PerSecond: c.rate.PerSecond, Burst: 20}), "%v: %v, %v", c.rate, got, err)
		} else if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%v: %v", c.rate, err)
		}
	}
}

// Exactly this many tokens come within a minute: not one more, and none a nanosecond later.
func TestPerMinuteIsExact(t *testing.T) {
	const minute = 60e9
	for n := int64(1); n < 100_000; n += 7 {
		m, mark := bucket.Start(0, core.PerMinute(float64(n)).PerSecond, n), bucket.Mark{}
		m.Take(&mark, 0, n)
		if at := m.Due(mark, n, 0); at != minute {
			t.Fatalf("%d a minute: all are there at %d", n, at)
		}
	}
}

// No window of the length per has more than n calls, however they come. Callers that are always
// there get n in each.
func TestAtMostInAnyWindow(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	for range 2000 {
		n, per := 1+rnd.IntN(50), time.Duration(1+rnd.Int64N(int64(time.Minute)))
		rate, err := core.AtMost(n, per).Resolved()
		if err != nil {
			continue // more than 1e9 a second
		}
		m, mark := bucket.Start(0, rate.PerSecond, int64(rate.Burst)), bucket.Mark{}
		m.Fill(0)
		var begun []int64
		for now := int64(0); len(begun) < 3*n; {
			if now = m.Due(mark, 1, now); !m.Take(&mark, now, 1) {
				t.Fatalf("%d in %v: no token at %d, when it is due", n, per, now)
			}
			begun = append(begun, now)
			if rnd.IntN(4) == 0 {
				now += rnd.Int64N(int64(per))
			}
		}
		for i := n; i < len(begun); i++ {
			if span := begun[i] - begun[i-n]; span < int64(per) {
				t.Fatalf("%d in %v: %d calls within %v", n, per, n+1, time.Duration(span))
			}
		}
	}
}
