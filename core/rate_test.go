package core_test

import (
	"math"
	"strings"
	"testing"

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
