package ratelimit_test

import (
	"context"
	"encoding/json"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/ratelimit"
	"github.com/ephemeralgo/ephemeral/core"
)

func newGroup(t testing.TB, opts ratelimit.GroupOptions, limits ...ratelimit.Limit) *ratelimit.Group {
	t.Helper()
	g, err := ratelimit.NewGroup(limits, opts)
	require.NoError(t, err)
	t.Cleanup(func() { g.Close() })
	return g
}

var requestsAndTokens = []ratelimit.Limit{{Name: "requests", Rate: 1, Burst: 5}, {Name: "tokens", Rate: 100, Burst: 1000}}

func TestGroupAllOrNothing(t *testing.T) {
	g := newGroup(t, ratelimit.GroupOptions{}, requestsAndTokens...)
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, ratelimit.GroupOptions{}, requestsAndTokens...)
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
	assert.Panics(t, func() { g.SetRate("nothing", 1) })
}

// Who waits for one limit holds nothing of the other: a burst saved up meanwhile is
// not used twice.
func TestGroupHoldsNothingWhileItWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, ratelimit.GroupOptions{}, requestsAndTokens...)
		require.True(t, g.Allow(0, 1000))
		begin := time.Now()
		out := make(chan served, 2)
		for i, costs := range [][]int{{3, 500}, {3, 1}} {
			go func() {
				err := g.Wait(t.Context(), costs...)
				out <- served{i, time.Since(begin), err}
			}()
			synctest.Wait()
		}
		time.Sleep(5*time.Second - 1)
		assert.Equal(t, 5.0, g.Tokens("requests"))
		assert.Equal(t, 2, g.Stats().Waiting)
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		assert.Equal(t, 2.0, g.Tokens("requests"), "taken when it is used, not before")
		time.Sleep(time.Minute)
		assert.Equal(t, served{0, 5 * time.Second, nil}, <-out)
		assert.Equal(t, served{1, 6 * time.Second, nil}, <-out)
	})
}

func TestGroupReserveAndAdjust(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, ratelimit.GroupOptions{}, requestsAndTokens...)
		r := g.Reserve(1, 300)
		require.NoError(t, r.Wait(t.Context()))
		r.Adjust(1, 1200) // more than there was
		assert.Equal(t, -200.0, g.Tokens("tokens"))
		r2 := g.Reserve(1, 100)
		assert.Equal(t, 3*time.Second, r2.Delay())
		r3 := g.Reserve(1, 100)
		assert.Equal(t, 4*time.Second, r3.Delay())
		r.Adjust(1, 1000)
		assert.Equal(t, time.Second, r2.Delay())
		assert.Equal(t, 2*time.Second, r3.Delay())
		r2.Cancel()
		assert.Equal(t, time.Second, r3.Delay())
		assert.NoError(t, r3.Wait(t.Context()))
		r.Cancel()
		r3.Adjust(0, 0)
		time.Sleep(time.Minute)
		assert.Equal(t, 1000.0, g.Tokens("tokens"))
		assert.Equal(t, 5.0, g.Tokens("requests"))
	})
}

func TestGroupDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, ratelimit.GroupOptions{MaxWaiting: 2}, requestsAndTokens...)
		require.True(t, g.Allow(5, 1000))
		g.Reserve(3, 100) // 3 s, by requests
		g.Reserve(1, 700) // 8 s, by tokens
		ctx, cancel := context.WithTimeout(t.Context(), 9*time.Second)
		defer cancel()
		var late *ratelimit.DeadlineError
		require.ErrorAs(t, g.Wait(ctx, 1, 101), &late)
		assert.Equal(t, 9010*time.Millisecond, late.Wait)
		assert.ErrorIs(t, g.Wait(t.Context(), 1, 1), core.ErrFull)
	})
}

func TestGroupControl(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := core.NewSink(core.SinkOptions{})
		g := newGroup(t, ratelimit.GroupOptions{Name: "llm", Sink: sink}, requestsAndTokens...)
		sink.Raise(ratelimit.CommandSet + ":7")
		sink.RaiseKey(ratelimit.CommandSet+":7", "llm")
		sink.RaiseKey(ratelimit.CommandSet+":50", "tokens")
		sink.RaiseKey(ratelimit.CommandBurst+":3", "requests")
		require.NoError(t, g.SetRate("requests", 2))
		require.NoError(t, g.SetBurst("tokens", 900))
		assert.Error(t, g.SetBurst("tokens", 0))
		assert.Error(t, g.SetRate("tokens", math.NaN()))
		want := []ratelimit.LimitStats{{"requests", 3, 2, 3}, {"tokens", 900, 50, 900}}
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
		_, err := json.Marshal(g.Stats())
		assert.NoError(t, err)
	})
}

func TestGroupOptions(t *testing.T) {
	ok := ratelimit.Limit{Name: "a", Rate: 1}
	for name, limits := range map[string][]ratelimit.Limit{
		"none":     {},
		"many":     make([]ratelimit.Limit, 65),
		"no name":  {{Rate: 1}},
		"twice":    {ok, ok},
		"rate":     {{Name: "a", Rate: -1}},
		"burst":    {{Name: "a", Rate: 1, Burst: -1}},
		"rate NaN": {ok, {Name: "b", Rate: math.NaN()}},
	} {
		_, err := ratelimit.NewGroup(limits, ratelimit.GroupOptions{})
		assert.ErrorContains(t, err, "ratelimit: ", name)
	}
	_, err := ratelimit.NewGroup([]ratelimit.Limit{ok}, ratelimit.GroupOptions{MaxWaiting: -1})
	assert.ErrorContains(t, err, "MaxWaiting")
}

func TestGroupEverythingAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, ratelimit.GroupOptions{MaxWaiting: 20}, ratelimit.Limit{Name: "a", Rate: 1000, Burst: 5}, ratelimit.Limit{Name: "b", Rate: 3000, Burst: 9})
		var all sync.WaitGroup
		for i := range 20 {
			all.Go(func() {
				for j := range 30 {
					switch (i + j) % 3 {
					case 0:
						g.Allow(1, j%5)
					case 1:
						ctx, cancel := context.WithTimeout(t.Context(), time.Duration(j)*time.Millisecond)
						time.AfterFunc(time.Duration(i+j)*time.Microsecond*100, cancel)
						g.Wait(ctx, 2, j%9)
						cancel()
					case 2:
						r := g.Reserve(i%5, 3)
						time.Sleep(time.Duration(i) * time.Millisecond)
						r.Cancel()
					}
				}
			})
		}
		all.Wait()
		time.Sleep(time.Second)
		s := g.Stats()
		assert.EqualValues(t, 20*30, s.Allowed+s.Denied+s.Cancelled)
		assert.Zero(t, s.Waiting)
		assert.Equal(t, 5.0, s.Limits[0].Tokens)
		assert.Equal(t, 9.0, s.Limits[1].Tokens)
	})
}
