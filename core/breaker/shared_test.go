package breaker_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core/breaker"
	"github.com/ephemeralgo/ephemeral/core/coretest"
)

type change struct {
	state    breaker.State
	closesIn time.Duration
}

// shared makes a breaker and returns its changes so far, newest last.
func shared(t testing.TB, opts breaker.Options) (*breaker.Shared, *[]change) {
	t.Helper()
	changes := new([]change)
	s, err := breaker.NewShared(func(s breaker.State, closesIn time.Duration, _ string) {
		*changes = append(*changes, change{s, closesIn})
	}, opts)
	if err != nil {
		t.Fatal(err)
	}
	return s, changes
}

// A Shared does the same as a Breaker with the same calls. Without probes it closes instead
// of being half-open. While Over says so, it is open. Each change is told, in order.
func TestSharedLikeBreaker(t *testing.T) {
	states := map[breaker.State]int{}
	for seed := range uint64(200) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 9))
			opts := breaker.Options{Threshold: -1, Window: 10 * time.Second, Rate: float64(rng.IntN(3)) / 4, MinCalls: 1 + rng.IntN(4), OpenFor: 5 * time.Second, Probes: rng.IntN(4)}
			s, changes := shared(t, opts)
			ref, probes, forced := made(t, opts), opts.Probes > 0, false
			type call struct {
				breaker.Call
				breaker.Permit
				period int // number of changes when the call began
			}
			var calls []call
			for range 300 {
				state, closesIn := ref.State(time.Now()), ref.ClosesIn(time.Now())
				if state == breaker.HalfOpen && !probes {
					ref.Reset()
					state = breaker.Closed
				}
				if forced {
					state, closesIn = breaker.Open, 0
				}
				states[state]++
				if rng.IntN(2) == 0 { // otherwise the next call notices changes by time
					check(t, "state", s.State(), state)
					check(t, "closes in", s.ClosesIn(), closesIn)
					told := breaker.Closed
					if n := len(*changes); n > 0 {
						told = (*changes)[n-1].state
					}
					check(t, "state that was told", told, state)
				}
				switch n := rng.IntN(20); {
				case n < 3:
					time.Sleep(time.Duration(rng.IntN(3000)) * time.Millisecond)
				case n == 3:
					s.Trip()
					ref.Trip(time.Now())
				case n == 4:
					s.Reset()
					ref.Reset()
					forced = false
				case n == 5 && probes:
					s.Over(true)
					if state != breaker.Open {
						ref.Trip(time.Now())
					}
				case n == 5:
					forced = !forced
					s.Over(forced)
				case n < 14 || len(calls) == 0:
					c, ok := s.Begin()
					permit, want := ref.Allow(time.Now())
					check(t, "allowed", ok, want && !forced)
					if ok {
						calls = append(calls, call{c, permit, len(*changes)})
					}
				default:
					i := rng.IntN(len(calls))
					c, r := calls[i], breaker.Result(rng.IntN(3))
					calls = append(calls[:i], calls[i+1:]...)
					counts := r == failure && (!probes || c.period == len(*changes))
					check(t, "counts", s.End(c.Call, r), counts)
					ref.Done(c.Permit, time.Now(), r)
				}
				if t.Failed() {
					t.Fatalf("seed %d: %+v", seed, opts)
				}
			}
			s.Over(true)
			s.Stop()
			s.Trip()
			check(t, "state", s.State(), breaker.Closed)
		})
	}
	coretest.Check(t, len(states) == 3, "states seen: %v", states)
}

// However many goroutines call, there are never more probes than allowed. Only the first
// end of a call counts.
func TestSharedProbesOfManyGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, changes := shared(t, breaker.Options{Threshold: -1, Probes: 3})
		s.Trip()
		time.Sleep(30 * time.Second)
		var all sync.WaitGroup
		begun := make(chan func(breaker.Result) bool, 50)
		for range cap(begun) {
			all.Go(func() {
				if end, ok := s.Allow(); ok {
					begun <- end
				}
			})
		}
		all.Wait()
		check(t, "probes", len(begun), 3)
		first := <-begun
		first(success)
		check(t, "a second end counts", first(failure), false)
		for range 2 {
			all.Go(func() { (<-begun)(success) })
		}
		all.Wait()
		check(t, "state", s.State(), breaker.Closed)
		check(t, "changes", len(*changes), 3)
	})
}

// An error decides the result of a call. The error of a cancelled call counts neither way.
func TestResultOf(t *testing.T) {
	cancelled, other := errors.Join(context.Canceled), errors.New("other")
	never, always := func(error) bool { return false }, func(error) bool { return true }
	for i, c := range []struct {
		err     error
		countIf func(error) bool
		want    breaker.Result
	}{
		{nil, always, success}, {other, nil, failure}, {other, never, success}, {other, always, failure},
		{cancelled, nil, neutral}, {cancelled, never, neutral}, {cancelled, always, failure},
	} {
		if got := breaker.ResultOf(c.err, c.countIf); got != c.want {
			t.Errorf("case %d: got %v, want %v", i, got, c.want)
		}
	}
}
