package circuitbreaker

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/breaker"
)

type change struct {
	state    breaker.State
	closesIn time.Duration
}

// madeShared makes a breaker and returns its changes so far, newest last.
func madeShared(t testing.TB, opts breaker.Options) (*shared, *[]change) {
	t.Helper()
	changes := new([]change)
	s, err := newShared(func(s breaker.State, closesIn time.Duration, _ string) {
		*changes = append(*changes, change{s, closesIn})
	}, opts)
	require.NoError(t, err)
	return s, changes
}

// A shared breaker does what a Breaker with the same calls does. Without trials it closes instead of
// being half-open, and while over says so it is open. Each change is told, in order.
func TestSharedLikeBreaker(t *testing.T) {
	states := map[breaker.State]int{}
	for seed := range uint64(200) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 9))
			opts := breaker.Options{Threshold: -1, Window: 10 * time.Second, Rate: float64(rng.IntN(3)) / 4, MinCalls: 1 + rng.IntN(4), OpenFor: 5 * time.Second, Trials: rng.IntN(4)}
			s, changes := madeShared(t, opts)
			ref, trials, forced := core.Must(breaker.New(opts)), opts.Trials > 0, false
			type both struct {
				call
				breaker.Permit
				period int // number of changes when it began
			}
			var calls []both
			for range 300 {
				state, closesIn := ref.State(time.Now()), ref.ClosesIn(time.Now())
				if state == breaker.HalfOpen && !trials {
					ref.Reset()
					state = breaker.Closed
				}
				if forced {
					state, closesIn = breaker.Open, 0
				}
				states[state]++
				if rng.IntN(2) == 0 { // or else another call sees what time has changed
					assert.Equal(t, state, s.state(), "state")
					assert.Equal(t, closesIn, s.closesIn(), "closes in")
					told := breaker.Closed
					if n := len(*changes); n > 0 {
						told = (*changes)[n-1].state
					}
					assert.Equal(t, state, told, "state that was told")
				}
				switch n := rng.IntN(20); {
				case n < 3:
					time.Sleep(time.Duration(rng.IntN(3000)) * time.Millisecond)
				case n == 3:
					s.trip()
					ref.Trip(time.Now())
				case n == 4:
					s.reset()
					ref.Reset()
					forced = false
				case n == 5 && trials:
					s.over(true)
					if state != breaker.Open {
						ref.Trip(time.Now())
					}
				case n == 5:
					forced = !forced
					s.over(forced)
				case n < 14 || len(calls) == 0:
					c, ok := s.begin()
					permit, want := ref.Allow(time.Now())
					assert.Equal(t, want && !forced, ok, "allowed")
					if ok {
						calls = append(calls, both{c, permit, len(*changes)})
					}
				default:
					i := rng.IntN(len(calls))
					c, r := calls[i], breaker.Result(rng.IntN(3))
					calls = append(calls[:i], calls[i+1:]...)
					counts := r == breaker.Failure && (!trials || c.period == len(*changes))
					assert.Equal(t, counts, s.end(c.call, r), "counts")
					ref.Done(c.Permit, time.Now(), r)
				}
				if t.Failed() {
					t.Fatalf("seed %d: %+v", seed, opts)
				}
			}
			s.over(true)
			s.stop()
			s.trip()
			assert.Equal(t, breaker.Closed, s.state(), "state")
		})
	}
	assert.Len(t, states, 3)
}

// later is no failure, like durable.Snooze.
type later struct{}

func (later) Error() string { return "later" }
func (later) Failed() bool  { return false }

// What an error says about the call: cancelled ones say nothing.
func TestResultOf(t *testing.T) {
	cancelled, other := errors.Join(context.Canceled), errors.New("other")
	never, always := func(error) bool { return false }, func(error) bool { return true }
	for i, c := range []struct {
		err     error
		countIf func(error) bool
		want    breaker.Result
	}{
		{nil, always, breaker.Success}, {other, nil, breaker.Failure}, {other, never, breaker.Success}, {other, always, breaker.Failure},
		{fmt.Errorf("wrapped: %w", later{}), always, breaker.Neutral},
		{cancelled, nil, breaker.Neutral}, {cancelled, never, breaker.Neutral}, {cancelled, always, breaker.Failure},
	} {
		assert.Equal(t, c.want, resultOf(c.err, c.countIf), i)
	}
}

// If countIf panics, the default decides.
func TestCountIfPanics(t *testing.T) {
	panics := func(error) bool { panic("countIf") }
	assert.Equal(t, breaker.Failure, resultOf(errors.New("failed"), panics))
	assert.Equal(t, breaker.Neutral, resultOf(context.Canceled, panics))
}
