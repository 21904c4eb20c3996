package ratelimit_test

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/ratelimit"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

func newGroup(t testing.TB, opts ratelimit.Options, limits ...ratelimit.Limit) *ratelimit.Group {
	t.Helper()
	g, err := ratelimit.NewGroup(limits, opts)
	require.NoError(t, err)
	t.Cleanup(func() { g.Close() })
	return g
}

var requestsAndTokens = []ratelimit.Limit{{Name: "requests", Rate: core.Rate{PerSecond: 1, Burst: 5}}, {Name: "tokens", Rate: core.Rate{PerSecond: 100, Burst: 1000}}}

func TestGroupAllOrNothing(t *testing.T) {
	g := newGroup(t, ratelimit.Options{}, requestsAndTokens...)
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, ratelimit.Options{}, requestsAndTokens...)
		assert.True(t, g.Allow(1, 1000))
		assert.False(t, g.Allow(1, 1))
		assert.Equal(t, 4.0, g.Tokens("requests"), "nothing of one without the other")
		assert.True(t, g.Allow(4, 0))
		time.Sleep(time.Second)
		assert.False(t, g.Allow(2, 1))
		assert.Equal(t, 100.0, g.Tokens("tokens"))
		assert.False(t, g.Allow(6, 0))
		assert.ErrorIs(t, g.Wait(t.Context(), 1, 1001), ratelimit.ErrExceedsBurst)
	})
	assert.Panics(t, func() { g.Allow(1) })
	assert.Panics(t, func() { g.Wait(t.Context(), 1, 2, 3) })
	assert.Panics(t, func() { g.Reserve(1, -2) })
	assert.Panics(t, func() { g.Tokens("nothing") })
	for _, err := range []error{g.SetRate("nothing", 1), g.SetBurst("nothing", 1)} {
		assert.EqualError(t, err, `ratelimit: group "ratelimit" has no limit "nothing", only ["requests" "tokens"]`)
	}
}

func TestGroupControl(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := signals.NewSink(signals.SinkOptions{})
		g := newGroup(t, ratelimit.Options{Name: "llm", Sink: sink}, requestsAndTokens...)
		sink.Raise(ratelimit.CommandSet + ":7")
		sink.RaiseKey(ratelimit.CommandSet+":7", "llm")
		sink.RaiseKey(ratelimit.CommandSet+":50", "tokens")
		sink.RaiseKey(ratelimit.CommandBurst+":3", "requests")
		require.NoError(t, g.SetRate("requests", 2))
		require.NoError(t, g.SetBurst("tokens", 900))
		assert.Error(t, g.SetBurst("tokens", 0))
		assert.Error(t, g.SetRate("tokens", math.NaN()))
		want := []ratelimit.LimitState{{"requests", 3, 2, 3}, {"tokens", 900, 50, 900}}
		assert.Equal(t, want, g.Stats().Limits)
		assert.Equal(t, 2, sink.Count(ratelimit.SignalApplied))

		require.True(t, g.Allow(3, 900))
		done := make(chan error)
		go func() { done <- g.Wait(t.Context(), 1, 100) }()
		synctest.Wait()
		assert.Equal(t, 1, sink.Count(ratelimit.SignalLimited))
		require.NoError(t, g.SetRate("tokens", 0))
		time.Sleep(time.Hour)
		g.Reset()
		assert.ErrorContains(t, func() error {
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			return g.Wait(ctx, 1, 1)
		}(), "paused")
		require.NoError(t, g.SetRate("tokens", ratelimit.Unlimited))
		assert.NoError(t, <-done)
		g.PauseFor(time.Minute)
		assert.False(t, g.Allow(1, 1))
		time.Sleep(time.Minute)
		assert.True(t, g.Allow(1, 1e6))
		assert.Contains(t, g.Stats().String(), `"limits":[{"name":"requests"`)
	})
}

func TestGroupOptions(t *testing.T) {
	ok := ratelimit.Limit{Name: "a", Rate: core.Rate{PerSecond: 1}}
	for name, limits := range map[string][]ratelimit.Limit{
		"none":     {},
		"no name":  {{Rate: core.Rate{PerSecond: 1}}},
		"blank":    {{Name: "\t ", Rate: core.Rate{PerSecond: 1}}},
		"twice":    {ok, ok},
		"rate":     {{Name: "a", Rate: core.Rate{PerSecond: -1}}},
		"burst":    {{Name: "a", Rate: core.Rate{PerSecond: 1, Burst: -1}}},
		"rate NaN": {ok, {Name: "b", Rate: core.Rate{PerSecond: math.NaN()}}},
	} {
		_, err := ratelimit.NewGroup(limits, ratelimit.Options{})
		assert.ErrorContains(t, err, "ratelimit: ", name)
	}
	_, err := ratelimit.NewGroup([]ratelimit.Limit{ok, {Name: "b"}}, ratelimit.Options{})
	assert.EqualError(t, err, `ratelimit: PerSecond must not be 0, which would pause the group until SetRate (limit 1, "b")`)
}
