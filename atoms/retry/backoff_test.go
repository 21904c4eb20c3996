package retry_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/ephemeralgo/ephemeral/atoms/retry"
)

const longest = time.Duration(math.MaxInt64)

func TestBackoffs(t *testing.T) {
	const s = time.Second
	for name, c := range map[string]struct {
		backoff retry.Backoff
		want    map[int]time.Duration
	}{
		"constant":          {retry.Constant(s), map[int]time.Duration{1: s, 2: s, math.MaxInt: s}},
		"linear":            {retry.Linear(s), map[int]time.Duration{1: s, 2: 2 * s, 60: 60 * s}},
		"linear, too long":  {retry.Linear(10 * s), map[int]time.Duration{math.MaxInt: longest}}, // also if int has 32 bits
		"linear, huge":      {retry.Linear(longest), map[int]time.Duration{1: longest, 2: longest}},
		"linear, none":      {retry.Linear(0), map[int]time.Duration{1: 0, math.MaxInt: 0}},
		"linear, negative":  {retry.Linear(-longest), map[int]time.Duration{1: -longest, 3: -longest}},
		"doubling":          {retry.Exponential(s, 2), map[int]time.Duration{1: s, 2: 2 * s, 3: 4 * s, 10: 512 * s, 64: longest, math.MaxInt: longest}},
		"one and a half":    {retry.Exponential(s, 1.5), map[int]time.Duration{1: s, 2: 1500 * time.Millisecond, 3: 2250 * time.Millisecond}},
		"shrinking":         {retry.Exponential(s, 0.5), map[int]time.Duration{1: s, 2: s / 2, 3: s / 4, 100: 0}},
		"once":              {retry.Exponential(s, 0), map[int]time.Duration{1: s, 2: 0}},
		"endless":           {retry.Exponential(1, math.Inf(1)), map[int]time.Duration{1: 1, 2: longest}},
		"exponential, none": {retry.Exponential(0, 2), map[int]time.Duration{1: 0, math.MaxInt: 0}},
		"negative":          {retry.Exponential(-s, 2), map[int]time.Duration{1: -s, 2: -s}},
	} {
		for attempt, want := range c.want {
			assert.Equal(t, want, c.backoff(attempt), "%s: %d", name, attempt)
		}
	}
}

func TestJitters(t *testing.T) {
	for _, d := range []time.Duration{1, 2, 3, time.Second, longest} {
		least, most := d, time.Duration(0)
		for range 2000 {
			full := retry.FullJitter(d)
			assert.True(t, 0 <= full && full <= d)
			least, most = min(least, full), max(most, full)
			equal := retry.EqualJitter(d)
			assert.True(t, d/2 <= equal && equal <= d)
		}
		assert.LessOrEqual(t, least, d/100)
		assert.GreaterOrEqual(t, most, d-d/100)
	}
	for _, d := range []time.Duration{0, -1, math.MinInt64} {
		assert.LessOrEqual(t, retry.FullJitter(d), time.Duration(0))
		assert.LessOrEqual(t, retry.EqualJitter(d), time.Duration(0))
	}
}
