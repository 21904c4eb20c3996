package ratelimit_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/ratelimit"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

func TestCommands(t *testing.T) {
	sink := signals.NewSink(signals.SinkOptions{})
	l := newLimiter(t, core.Rate{PerSecond: 10, Burst: 5}, ratelimit.Options{Sink: sink})
	for _, c := range []struct {
		signal string
		rate   float64
		burst  int
	}{
		{ratelimit.CommandSet + ":50", 50, 5},
		{ratelimit.CommandSet + ": 12.5 ", 12.5, 5},
		{ratelimit.CommandIncrease + ":2.5", 15, 5},
		{ratelimit.CommandIncrease + ":0.25", 15.25, 5},
		{ratelimit.CommandDecrease + ":5.25", 10, 5},
		{ratelimit.CommandDecrease + ":2e9", 1, 5}, // no lower
		{ratelimit.CommandSet + ":0.5", 0.5, 5},
		{ratelimit.CommandSet + ":0", 0, 5},
		{ratelimit.CommandIncrease + ":3", 3, 5},
		{ratelimit.CommandBurst + ":7.9", 3, 7},
		{ratelimit.CommandBurst + ":1e2", 3, 100},
		{"api." + ratelimit.CommandSet + ":4", 4, 100},
		{"app:" + ratelimit.CommandBurst + ":9", 4, 9},
		{ratelimit.RateApplied.Name(), 4, 9},
	} {
		sink.Raise(c.signal)
		assert.Equal(t, c.rate, l.Rate(), c.signal)
		assert.Equal(t, c.burst, l.Burst(), c.signal)
	}
	assert.False(t, sink.Has(ratelimit.CommandRejected.Name()))
	l.Allow()
	sink.Raise(ratelimit.CommandReset)
	assert.Equal(t, 9.0, l.Tokens())
}

// A command that cannot be obeyed changes nothing, and a signal names the value and the rule.
func TestRejectedCommands(t *testing.T) {
	sink := signals.NewSink(signals.SinkOptions{})
	l := newLimiter(t, core.Rate{PerSecond: 0.5, Burst: 5}, ratelimit.Options{Name: "api", Sink: sink})
	var got error
	ratelimit.CommandRejected.Subscribe(sink, func(s signals.Signal, err error) {
		assert.Equal(t, "api", s.Key)
		got = err
	})
	const number = "must be a decimal number such as 12.5 or 1e3"
	const rate = "must be 0, which pauses, or from 1e-9 to 1e9 per second"
	cases := []struct{ command, value, rule string }{
		{ratelimit.CommandSet, "-1", "must not be negative"},
		{ratelimit.CommandSet, "1e400", number},
		{ratelimit.CommandSet, "2e9", rate},
		{ratelimit.CommandSet, "1e-10", rate},
		{ratelimit.CommandSet, "", number},
		{ratelimit.CommandIncrease, "-5", "must not be negative"},
		{ratelimit.CommandIncrease, "0", "must be more than 0"},
		{ratelimit.CommandIncrease, "1e9", rate},
		{ratelimit.CommandDecrease, "-5", "must not be negative"},
		{ratelimit.CommandDecrease, "1", "a decrease does not go below 1 per second"},
		{ratelimit.CommandBurst, "0", "must be at least 1 and at most 2^40"},
		{ratelimit.CommandBurst, "0.9", "must be at least 1 and at most 2^40"},
		{ratelimit.CommandBurst, "1e13", "must be at least 1 and at most 2^40"},
		{ratelimit.CommandBurst, "-3", "must not be negative"},
		{ratelimit.CommandDecrease, "2e9", "a decrease does not go below 1 per second"},
	}
	for _, c := range cases {
		sink.Raise(c.command + ":" + c.value)
		assert.EqualError(t, got, fmt.Sprintf("ratelimit: %s:%q: the value %s", c.command, c.value, c.rule))
	}

	assert.Equal(t, 0.5, l.Rate())
	assert.Equal(t, 5, l.Burst())
	require.NoError(t, l.SetRate(ratelimit.Unlimited))
	sink.Raise(ratelimit.CommandDecrease + ":1")
	assert.ErrorContains(t, got, "the rate is unlimited: set it first")
}

// A command starts at the start of the name, or after a dot or a colon. The payload of a
// command is not searched for another one.
func TestCommandsHaveBoundaries(t *testing.T) {
	sink := signals.NewSink(signals.SinkOptions{})
	l := newLimiter(t, core.Rate{PerSecond: 10, Burst: 5}, ratelimit.Options{Sink: sink})
	for _, name := range []string{
		"prorate.limit.set:5", "rate.limit.set", "rate.limit.settle:5", "xrate.limit.reset", "rate.limit.reset:1",
		"rate.limit.set:rate.limit.burst:1", "rate.limit.burst:rate.limit.set:1", "rate.limit.set:rate.limit.reset",
	} {
		l.Allow()
		sink.Raise(name)
		assert.Equal(t, 10.0, l.Rate(), name)
		assert.Equal(t, 5, l.Burst(), name)
		assert.Less(t, l.Tokens(), 5.0, name)
	}
	assert.Equal(t, 3, sink.Count(ratelimit.CommandRejected.Name()), "three were commands")
}

// A command with a key is for the limiter of that name only.
func TestCommandsAddressOneByName(t *testing.T) {
	sink := signals.NewSink(signals.SinkOptions{})
	api := newLimiter(t, core.Rate{PerSecond: 10}, ratelimit.Options{Name: "api", Sink: sink})
	db := newLimiter(t, core.Rate{PerSecond: 10}, ratelimit.Options{Name: "db", Sink: sink})
	ignores := newLimiter(t, core.Rate{PerSecond: 10}, ratelimit.Options{Name: "db", Sink: sink, IgnoreCommands: true})
	rates := func() [3]float64 { return [3]float64{api.Rate(), db.Rate(), ignores.Rate()} }
	sink.RaiseKey(ratelimit.CommandSet+":5", "api")
	assert.Equal(t, [3]float64{5, 10, 10}, rates())
	sink.RaiseKey(ratelimit.CommandSet+":7", "db")
	assert.Equal(t, [3]float64{5, 7, 10}, rates())
	sink.RaiseKey(ratelimit.CommandSet+":1", "nobody")
	assert.Equal(t, [3]float64{5, 7, 10}, rates())
	sink.Raise(ratelimit.CommandIncrease + ":1")
	assert.Equal(t, [3]float64{6, 8, 10}, rates())
}

// A limiter does not obey the signals that it raises itself, so no reset is endless.
func TestOwnSignalsAreNoCommands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := signals.NewSink(signals.SinkOptions{MaxAge: -1})
		raised := coretest.Watch(t, sink, "*")
		l := newLimiter(t, core.Rate{PerSecond: 10, Burst: 5}, ratelimit.Options{Name: "api", Sink: sink})
		l.Reset()
		sink.Raise(ratelimit.CommandReset)
		require.NoError(t, l.SetRate(12.5))
		require.NoError(t, l.SetBurst(6))
		sink.Raise(ratelimit.CommandSet + ":1")
		sink.Raise(ratelimit.CommandBurst + ":x")
		drain(l)
		time.Sleep(time.Hour)
		for _, s := range raised.ExpectExactly(
			ratelimit.CommandReset,
			ratelimit.RateApplied.Name(),
			ratelimit.BurstApplied.Name(),
			ratelimit.CommandSet+":1", ratelimit.RateApplied.Name(),
			ratelimit.CommandBurst+":x", ratelimit.CommandRejected.Name(),
			ratelimit.SignalLimited, ratelimit.SignalRecovered,
		) {
			switch s.Name {
			case ratelimit.RateApplied.Name(), ratelimit.BurstApplied.Name():
				assert.Equal(t, "api", s.Key)
			}
		}
		var changes []ratelimit.Change
		for _, change := range ratelimit.RateApplied.Sense(sink, signals.Query{}) {
			changes = append(changes, change)
		}
		assert.Equal(t, []ratelimit.Change{{12.5, 5}, {1, 6}}, changes)
	})
}

// A handler of the signals of a limiter may call its methods.
func TestHandlersMayCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := signals.NewSink(signals.SinkOptions{})
		l := newLimiter(t, core.Rate{PerSecond: 10, Burst: 1}, ratelimit.Options{Sink: sink})
		calls := 0
		sink.Subscribe("rate.limit.*", func(s signals.Signal) {
			calls++
			l.Stats()
			l.Allow()
			switch s.Name {
			case ratelimit.RateApplied.Name():
				if calls == 1 {
					l.SetRate(3)
				}
			case ratelimit.SignalRecovered:
				l.Close()
			}
		})
		sink.Raise(ratelimit.CommandSet + ":2")
		assert.Equal(t, 3.0, l.Rate())
		drain(l)
		time.Sleep(time.Hour)
		assert.Error(t, l.Wait(t.Context()), "closed by the handler")
	})
}

// The signals are about a span of time, not about single requests.
func TestLimitedAndRecovered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := signals.NewSink(signals.SinkOptions{})
		raised := coretest.Watch(t, sink, "*")
		l := newLimiter(t, core.Rate{PerSecond: 10, Burst: 20}, ratelimit.Options{Name: "api", Sink: sink}) // full in 2 s
		for range 20 {
			l.Allow()
		}
		raised.None()
		assert.False(t, l.Allow())
		assert.Equal(t, "api", raised.ExpectExactly(ratelimit.SignalLimited)[0].Key)
		for range 1000 { // overload: every second request is refused
			time.Sleep(50 * time.Millisecond)
			l.Allow()
			assert.True(t, sink.Has(ratelimit.SignalLimited))
		}
		raised.None()
		require.NoError(t, l.Wait(t.Context()))
		last := time.Now()
		for sink.Has(ratelimit.SignalLimited) { // all pass
			time.Sleep(100 * time.Millisecond)
			l.Allow()
			synctest.Wait()
		}
		assert.Equal(t, 2*time.Second, time.Since(last))
		assert.Equal(t, "api", raised.ExpectExactly(ratelimit.SignalRecovered)[0].Key)
		assert.False(t, l.Sink().Has(ratelimit.SignalLimited))

		// A limiter is limited as long as a request is queued.
		drain(l)
		r := l.ReserveN(20)
		time.Sleep(time.Millisecond)
		raised.ExpectExactly(ratelimit.SignalLimited)
		require.NoError(t, l.SetRate(0.1)) // the bucket fills in 200 s, but recovery takes a minute at most
		time.Sleep(r.Delay() + time.Minute - 1)
		assert.True(t, sink.Has(ratelimit.SignalLimited))
		time.Sleep(time.Minute + 1)
		assert.False(t, sink.Has(ratelimit.SignalLimited))

		l.AllowN(21)
		l.Close()
		assert.False(t, sink.Has(ratelimit.SignalLimited), "a closed limiter is not limited")
		assert.False(t, l.Sink().Has(ratelimit.SignalLimited))
	})
}

// A gate does not wait for the minute that the old rate would have taken.
func TestRecoversByTheNewRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := signals.NewSink(signals.SinkOptions{MaxAge: -1})
		l := newLimiter(t, core.Rate{PerSecond: 0.1, Burst: 10}, ratelimit.Options{Sink: sink}) // full in 100 s
		drain(l)
		require.NoError(t, l.SetRate(5)) // in 2 s
		time.Sleep(2*time.Second - 1)
		assert.True(t, sink.Has(ratelimit.SignalLimited))
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		assert.False(t, sink.Has(ratelimit.SignalLimited))
		assert.Equal(t, 1, sink.Count(ratelimit.SignalRecovered))

		drain(l)
		time.Sleep(1500 * time.Millisecond)
		require.NoError(t, l.SetBurst(5)) // the bucket fills in 1 s, and 1.5 s have passed
		synctest.Wait()
		assert.False(t, sink.Has(ratelimit.SignalLimited))
		time.Sleep(time.Hour)
		assert.Equal(t, 2, sink.Count(ratelimit.SignalRecovered))
	})
}
